"""Marks in an explanation that tell the right option, such as "(answer 4 correct)": found, and taken out.

Goenaga et al. (2023) call texts without them unstructured (table 11): a model that has learnt the marks need not read.
"""

import re
from dataclasses import replace

from medexam_companions.casimedicos.squad import SpanAnswer, SpanItem

_OPTION = r"(?:respuestas?|resp|opci[oó]n(?:es)?|answers?|options?|alternativas?|r|a|o)"
_NUMBERS = r"(?:n[.º°]?\s*)?\d(?:\s*(?:,|y|e|and|&)\s*\d)*"
_VERDICT = r"(?:in)?(?:correct[oa]?s?|ciert[oa]s?|fals[oae]s?|verdader[oa]s?|true|wrong|right)"
_LINK = r"(?:\s*(?:es|son|is|are|:|,|-|=)\s*|\s*)"
_MARK = re.compile(
    rf"\s*[(\[]\s*(?:{_OPTION}\.?\s*{_NUMBERS}{_LINK}{_VERDICT}|{_OPTION}{_LINK}{_VERDICT}{_LINK}{_NUMBERS}"
    rf"|{_VERDICT}{_LINK}{_OPTION}?\.?\s*{_NUMBERS}|{_NUMBERS}{_LINK}{_VERDICT})\s*\.?\s*[)\]]",
    re.IGNORECASE,
)


def without_marks(item: SpanItem) -> SpanItem:
    """Return the item without the marks in its context that tell the right option, and the blanks before them.

    A mark that is all of an answer stays, and so do all marks if an answer does not stand at its offset.
    """
    ends = [(answer.start, answer.start + len(answer.text)) for answer in item.answers]
    marks = [
        (start, end)
        for start, end in ([] if item.is_misplaced else (match.span() for match in _MARK.finditer(item.context)))
        if not any(start <= first and last <= end for first, last in ends)
    ]

    def shift(place: int) -> int:
        return place - sum(min(end, place) - start for start, end in marks if start < place)

    context = item.context
    for start, end in reversed(marks):
        context = context[:start] + context[end:]
    answers = tuple(SpanAnswer(context[shift(first) : shift(last)], shift(first)) for first, last in ends)
    return replace(item, context=context, answers=answers) if marks else item
