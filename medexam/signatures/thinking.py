"""The thinking of reasoning models, which is no part of the answer: text between `<think>` and `</think>`, or in
gpt-oss's channel `analysis`.

It is told apart as vLLM's parsers `qwen3`, `deepseek_r1` and of gpt-oss's format do, except that a reply without any
mark has no thinking: those take it for thinking that was cut off, since they know their model.
"""

import re

_OPENING, _CLOSING = "<think>", "</think>"
_CLOSED = re.compile(rf"\s*(?:{_OPENING})?(?P<thinking>.*?){_CLOSING}\s*", re.DOTALL | re.IGNORECASE)
_OPEN = re.compile(rf"\s*{_OPENING}(?P<thinking>.*)\Z", re.DOTALL | re.IGNORECASE)
_CHANNEL = re.compile(
    r"<\|channel\|>(?P<head>[^<]*)(?:<\|constrain\|>[^<]*)?<\|message\|>(?P<text>.*?)"
    r"(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)


def split_thinking(reply: str) -> tuple[str | None, str]:
    """A reply as (thinking, what was said after it); thinking is None when there is none.

    Chat templates that open the block themselves leave a reply with `</think>` alone; everything before it is
    thinking. A block that was never closed is all thinking: such a reply was cut off before it said anything.
    """
    if channels := list(_CHANNEL.finditer(reply)):
        return _split_channels(channels)
    if (closed := _CLOSED.match(reply)) is not None:
        return closed["thinking"].strip() or None, reply[closed.end() :]
    if (cut := _OPEN.match(reply)) is not None:
        return cut["thinking"].strip() or None, ""
    return None, reply


def join_thinking(thinking: str, said: str) -> str:
    """The text that `split_thinking` takes apart."""
    return f"{_OPENING}\n{thinking}\n{_CLOSING}\n\n{said}"


def is_cut_in_thinking(reply: str | None, finish_reason: str | None) -> bool:
    """Whether a reply ended at its budget before it said anything but thoughts."""
    if finish_reason != "length" or not reply:
        return False
    thinking, said = split_thinking(reply)
    return thinking is not None and not said.strip()


def _split_channels(channels: list[re.Match[str]]) -> tuple[str | None, str]:
    """gpt-oss's channels: what is called is neither thought nor said."""
    thinking, said = [], []
    for channel in channels:
        name, _, recipient = channel["head"].strip().partition(" ")
        if name == "analysis":
            thinking.append(channel["text"])
        elif name == "final" or (name == "commentary" and not recipient):
            said.append(channel["text"])
    return "\n".join(thinking).strip() or None, "".join(said).strip()
