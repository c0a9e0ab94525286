"""The passage that an answer names: how passages are numbered in a prompt, and how the number is read."""

import re
from collections.abc import Sequence

from medexam.signatures.answer_format import find_answers

OPENING = "["
"""What stands before the number of a passage, behind a space."""
CLOSING = "]"
_CITED = re.compile(r"\[\s*(\d{1,3})\s*\]")


def number_passages(texts: Sequence[str]) -> str:
    """The texts behind their numbers from 1, a blank line apart."""
    return "\n\n".join(f"{OPENING}{number}{CLOSING} {text}" for number, text in enumerate(texts, start=1))


def count_numbered(shown: str, count: int) -> int:
    """How many of `count` numbered passages a text still begins, where it was cut at its end."""
    starts = (f"{OPENING}{number}{CLOSING} " for number in range(1, count + 1))
    return sum(shown.startswith(start) or f"\n\n{start}" in shown for start in starts)


def drop_citations(reply: str) -> str:
    """Return a reply without the numbers of passages, which are none of options."""
    return _CITED.sub("", reply)


def read_citation(reply: str, count: int) -> int | None:
    """The number that stands in square brackets behind the last answer of a reply; 0 says that no passage supports it.

    None without an answer or a number behind it, and for a number above `count`, the passages that were shown.
    """
    answers = find_answers(reply)
    found = _CITED.search(reply, answers[-1][1]) if answers else None
    cited = int(found.group(1)) if found else None
    return cited if cited is not None and cited <= count else None
