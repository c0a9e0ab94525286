"""The questions of a page as compressed blocks, which the browser opens one at a time.

A block is JSON under gzip under base64, since a page that is opened from the disk can fetch nothing and a page's text
holds no bytes. `index` has what the list and its filters need of every question, `stems` the words that are searched,
and each of `part-0`, `part-1`, ... everything of some hundred questions. `assets/blocks.js` opens them.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from medexam.experiments.report.page.entries import (
    LONGEST_TEXT,
    Answers,
    build_entry,
    build_index,
    join_stems,
    text_limit,
)

MOST_QUESTIONS = 200
"""Questions of a part."""
MOST_CHARACTERS = 1_000_000
"""A part with more is closed before it has `MOST_QUESTIONS`, so that opening one stays quick."""
ALL_TEXTS = 50_000_000
"""Characters that all replies together may have, some 25 MB of the page; above that the longest lose their middles."""
LEVEL = 9
"""Of gzip."""


@dataclass(frozen=True)
class Block:
    """One block of the page."""

    name: str
    text: str
    """Base64, so that nothing in it can be taken for markup."""


def build_blocks(
    runs: Sequence[Answers], facets: Mapping[str, str], pictures: Mapping[str, str] = MappingProxyType({})
) -> list[Block]:
    """The blocks of `runs`: every question that any of them was asked, the first run's first; filtered by `facets`.

    `pictures` maps a question's key to its picture, a data URL.
    """
    keys = list(dict.fromkeys(key for run in runs for key in run.asked))
    longest = text_limit(runs, ALL_TEXTS)
    entries = (_entry(key, runs, longest, pictures) for key in keys)
    starts, parts = _parts(entries)
    index = build_index(keys, runs, facets)
    index |= {"starts": starts, "longest_text": longest if longest < LONGEST_TEXT else None}
    return [pack("index", index), pack("stems", [join_stems(key, runs) for key in keys]), *parts]


def pack(name: str, value: Any) -> Block:
    """`value`, JSON-ready, as a block; what UTF-8 cannot write becomes a question mark."""
    return _pack_text(name, _to_json(value))


def _pack_text(name: str, text: str) -> Block:
    packed = gzip.compress(text.encode("utf-8", "replace"), LEVEL, mtime=0)
    return Block(name, base64.b64encode(packed).decode("ascii"))


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _entry(key: str, runs: Sequence[Answers], longest: int, pictures: Mapping[str, str]) -> str:
    entry = build_entry(key, runs, longest)
    return _to_json(entry | {"picture": pictures[key]} if key in pictures else entry)


def _parts(entries: Iterable[str]) -> tuple[list[int], list[Block]]:
    """Where among the questions each part begins, and the parts."""
    starts: list[int] = []
    blocks: list[Block] = []
    for start, texts in _cut(entries):
        blocks.append(_pack_text(f"part-{len(starts)}", "[" + ",".join(texts) + "]"))
        starts.append(start)
    return starts, blocks


def _cut(entries: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    start, texts, characters = 0, list[str](), 0
    for at, entry in enumerate(entries):
        if texts and (len(texts) == MOST_QUESTIONS or characters > MOST_CHARACTERS):
            yield start, texts
            start, texts, characters = at, [], 0
        texts.append(entry)
        characters += len(texts[-1])
    if texts:
        yield start, texts
