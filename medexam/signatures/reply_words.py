"""What words do in a reply: those of `reply_words.yaml`, by what they do, in all languages."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import cast

from medexam.specs import parse_yaml

CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Signs that stand beside each other without a space."""
OPTION = "[\ue000-\uf8ff]"
"""What the lenient reader writes for an option."""


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
    return pattern_of(*groups).search(text.lower()) is not None


@cache
def pattern_of(*groups: str) -> re.Pattern[str]:
    """Compile what finds the words of groups in a text of small letters."""
    whole, parts = list[str](), list[str]()
    for word in words_of(*groups):
        is_part = re.match(rf"[{CJK}]|\W", word)
        (parts if is_part else whole).append(
            re.escape(word.lstrip("*")).replace(r"\*", r"\w*").replace(r"\ ", r"\W{1,3}")
        )
    return re.compile("|".join([rf"\b(?:{'|'.join(whole)})\b", *parts]))


@cache
def roles() -> Mapping[str, str]:
    """Return what each word of a statement does."""
    return {word: group for group in reversed([*load_reply_words()][:9]) for word in words_of(group)}


@cache
def numerals() -> Mapping[str, int]:
    """Return the place of the option that each word for a number stands for."""
    return {word: place for place, words in enumerate(load_reply_words()["numbers"]) for word in words.split()}


@cache
def word_pattern() -> re.Pattern[str]:
    """Compile what finds a word, an option, or a sign that makes a sentence no statement, in small letters."""
    joined = [word for word in (*roles(), *numerals()) if " " in word or re.match(f"[{CJK}]", word)]
    joined = [*map(re.escape, sorted(joined, key=len, reverse=True))]
    return re.compile("|".join([*joined, pattern("word").pattern]), re.VERBOSE)


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Compile one of the patterns."""
    text = load_reply_words()["patterns"][name].replace("OPTION", OPTION).replace("SIGNS", CJK)
    return re.compile(text, re.VERBOSE)


def write_out(text: str) -> str:
    """Return a text with words for its abbreviations, which end no sentence."""
    words = {"boxed": ", answer ", "gone": ""}
    return pattern("abbreviation").sub(lambda match: words.get(group := str(match.lastgroup), f" {group} "), text)
