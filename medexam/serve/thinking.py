"""Blocks of thinking in what a model reads and writes: whether a prompt leaves one open, and where a reply closes it.

What a reply means is not known here.
"""

import re

OPENING, CLOSING = "<think>", "</think>"
_LEFT_OPEN = re.compile(rf"{OPENING}\s*\Z")
_BEGINS = re.compile(rf"\s*{OPENING}\s*")
CLOSED_EARLY = f"\n{CLOSING}\n\n"
"""What ends thinking that has used up its budget."""
CLOSED = "closed before a choice"
"""What is recorded of a chat template that leaves a block open."""


def is_open(prompt: str) -> bool:
    """Return whether a prompt ends with a block that the reply is to fill."""
    return _LEFT_OPEN.search(prompt) is not None


def append(prompt: str, prefill: str, *, choosing: bool = False) -> str:
    """Append a reply's first words to the prompt; a block that both open is opened once.

    `choosing`: a choice follows, which is no thought, so a block that only the prompt opens is closed before the words.
    """
    if not _LEFT_OPEN.search(prompt):
        return prompt + prefill
    opening = _BEGINS.match(prefill)
    if opening is not None:
        return prompt + prefill[opening.end() :]
    return prompt + (CLOSED_EARLY if choosing and CLOSING not in prefill else "") + prefill


def find_thinking(reply: str, *, opened: bool) -> tuple[str, bool] | None:
    """Find what a reply thinks, and whether it closes its block; None if it does not think.

    `opened`: the prompt left a block open.
    """
    opening = _BEGINS.match(reply)
    if opening is None and not opened:
        return None
    thinking, closed, _ = reply[opening.end() if opening else 0 :].partition(CLOSING)
    return thinking, bool(closed)


def whole_reply(reply: str, *, opened: bool) -> str:
    """Add the mark that opens its block to a reply, if the prompt that left one open has that mark already."""
    return OPENING + reply if opened and _BEGINS.match(reply) is None else reply
