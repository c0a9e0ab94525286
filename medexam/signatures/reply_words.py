"""What words do in a reply: those of `reply_words.yaml`, by what they do, in all languages."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple, cast

from medexam.specs import parse_yaml

CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Signs that stand beside each other without a space."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_IS_CJK = re.compile(f"[{CJK}]")


class _Group(NamedTuple):
    whole: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    phrases: tuple[str, ...]
    signs: tuple[str, ...]
    """What is looked for beside letters too."""


@cache
def load_reply_words() -> Mapping[str, Mapping[str, str]]:
    """Return the words by what they do and by language; `numbers` is a list."""
    text = (resources.files("medexam.signatures") / "reply_words.yaml").read_text(encoding="utf-8")
    return cast("Mapping[str, Mapping[str, str]]", parse_yaml(text, "reply_words.yaml"))


@cache
def words_of(*groups: str) -> list[str]:
    """Return the words of groups, the longest first."""
    rows = (row for group in groups for row in load_reply_words()[group].values())
    return sorted({word.replace("_", " ") for row in rows for word in row.split()}, key=len, reverse=True)


def names(text: str, *groups: str) -> bool:
    """Return whether a text has a word of one of the groups."""
    lower = text.lower()
    words = _WORD.findall(lower)
    spaced = f" {' '.join(words)} "
    return any(
        not group.whole.isdisjoint(words)
        or any(word.startswith(group.starts) or word.endswith(group.ends) for word in words)
        or any(phrase in spaced for phrase in group.phrases)
        or any(sign in lower for sign in group.signs)
        for group in map(_group, groups)
    )


@cache
def pattern_of(*groups: str) -> re.Pattern[str]:
    """Compile what finds the whole words of groups; "anything but" is no "but"."""
    words = [re.escape(word) if _IS_CJK.match(word) else rf"\b{re.escape(word)}\b" for word in words_of(*groups)]
    return re.compile(rf"(?<!thing\s)(?<!\ball\s)(?:{'|'.join(words)})", re.IGNORECASE)


@cache
def _group(name: str) -> _Group:
    words = words_of(name)
    signs = tuple(word for word in words if _IS_CJK.match(word) or not word.strip("*")[0].isalpha())
    plain = [word for word in words if word not in signs]
    return _Group(
        whole=frozenset(plain),
        starts=tuple(word[:-1] for word in plain if word.endswith("*")),
        ends=tuple(word[1:] for word in plain if word.startswith("*")),
        phrases=tuple(f" {word} " for word in plain if " " in word),
        signs=signs,
    )
