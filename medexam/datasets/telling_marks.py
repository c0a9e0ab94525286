"""Marks in an explanation that tell the right option, such as "(answer 4 correct)": found, and taken out.

Goenaga et al. (2023) call texts without them unstructured (table 11): a model that has learnt the marks need not read.
"""

import re

_OPTION = r"(?:respuestas?|resp|opci[oó]n(?:es)?|answers?|options?|alternativas?|r|a|o)"
_NUMBERS = r"(?:n[.º°]?\s*)?\d(?:\s*(?:,|y|e|and|&)\s*\d)*"
_VERDICT = r"(?:in)?(?:correct[oa]?s?|ciert[oa]s?|fals[oae]s?|verdader[oa]s?|true|wrong|right)"
_LINK = r"(?:\s*(?:es|son|is|are|:|,|-|=)\s*|\s*)"
_MARK = re.compile(
    rf"\s*[(\[]\s*(?:{_OPTION}\.?\s*{_NUMBERS}{_LINK}{_VERDICT}|{_OPTION}{_LINK}{_VERDICT}{_LINK}{_NUMBERS}"
    rf"|{_VERDICT}{_LINK}{_OPTION}?\.?\s*{_NUMBERS}|{_NUMBERS}{_LINK}{_VERDICT})\s*\.?\s*[)\]]",
    re.IGNORECASE,
)


def find_marks(text: str) -> list[tuple[int, int]]:
    """Find the marks of a text, each with the blanks before it: first character and the one after the last."""
    return [match.span() for match in _MARK.finditer(text)]
