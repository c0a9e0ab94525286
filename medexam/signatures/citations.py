"""The passage that an answer names: how passages are numbered in a prompt, and how the number is read."""

import re
from collections.abc import Sequence

from medexam.signatures.answer_format import find_answers

OPENING = "["
"""What stands before the number of a passage, behind a space."""
CLOSING = "]"
_CITED = re.compile(r"\[\s*(\d{1,3})\s*\]")


def number_passages(texts: Sequence[str]) -> str:
    """Write the texts behind their numbers from 1, a blank line apart."""
    return "\n\n".join(f"{OPENING}{number}{CLOSING} {text}" for number, text in enumerate(texts, start=1))


def count_numbered(text: str, count: int) -> int:
    """Count those of `count` numbered passages that a text still begins, where it was cut at its end."""
    starts = (f"{OPENING}{number}{CLOSING} " for number in range(1, count + 1))
    return sum(text.startswith(start) or f"\n\n{start}" in text for start in starts)


def drop_citations(reply: str) -> str:
    """Return a reply without the numbers of passages, which are none of options."""
    return _CITED.sub("", reply)


def read_citation(reply: str, count: int) -> int | None:
    """Read the number that stands in square brackets behind the last answer of a reply. 0 says that no passage supports
    the answer.

    None without an answer or a number behind it, and for a number above `count`, the passages that were shown.
    """
    answers = find_answers(reply)
    match = _CITED.search(reply, answers[-1][1]) if answers else None
    number = int(match.group(1)) if match else None
    return number if number is not None and number <= count else None
