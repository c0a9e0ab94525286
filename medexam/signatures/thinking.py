"""The thinking of reasoning models: text between `<think>` and `</think>`, which is no part of the answer."""

import re

_CLOSED = re.compile(r"\s*(?:<think>)?(?P<thinking>.*?)</think>\s*", re.DOTALL | re.IGNORECASE)
_OPEN = re.compile(r"\s*<think>(?P<thinking>.*)\Z", re.DOTALL | re.IGNORECASE)


def split_thinking(reply: str) -> tuple[str | None, str]:
    """A reply as (thinking, what was said after it); thinking is None when there is none.

    Chat templates that open the block themselves leave a reply with `</think>` alone; everything before it is
    thinking. A block that was never closed is all thinking: such a reply was cut off before it said anything.
    """
    if (closed := _CLOSED.match(reply)) is not None:
        return closed["thinking"].strip() or None, reply[closed.end() :]
    if (cut := _OPEN.match(reply)) is not None:
        return cut["thinking"].strip() or None, ""
    return None, reply


def join_thinking(thinking: str, said: str) -> str:
    """The text that `split_thinking` takes apart."""
    return f"<think>\n{thinking}\n</think>\n\n{said}"
