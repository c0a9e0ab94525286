"""The questions of a page as compressed blocks, which the browser opens one at a time.

A block is JSON under gzip under base64, since a page that is opened from the disk can fetch nothing and a page's text
holds no bytes. `index` has what the list and its filters need of every question, `stems` the words that are searched,
and each of `part-0`, `part-1`, ... everything of some hundred questions. `assets/blocks.js` opens them.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from medexam.experiments.report.page.entries import (
    LONGEST_TEXT,
    Answers,
    build_entry,
    build_question_index,
    join_stems,
    text_limit,
)

MOST_QUESTIONS = 200
"""Questions of a part."""
MOST_CHARACTERS = 1_000_000
"""A part with more is closed before it has `MOST_QUESTIONS`, so that opening one stays quick."""
ALL_TEXTS = 50_000_000
"""Characters that all replies together may have, some 25 MB of the page; above that the longest lose their middles."""
LEVEL = 5
"""Of gzip: 3 % larger than at 9, in less than half the time."""


@dataclass(frozen=True)
class Block:
    """One block of the page."""

    name: str
    text: str
    """Base64, so that nothing in it can be taken for markup."""


def build_blocks(
    runs: Sequence[Answers], facets: Mapping[str, str], pictures: Mapping[str, str] = MappingProxyType({})
) -> list[Block]:
    """Build the blocks of `runs`: every question that any run was asked, the first run's first; filtered by `facets`.

    `pictures` maps a question's key to its picture, a data URL.
    """
    keys = list(dict.fromkeys(key for run in runs for key in run.questions))
    longest = text_limit(runs, ALL_TEXTS)
    entries = (build_entry(key, runs, longest) for key in keys)
    page_entries = (
        {**entry, "picture": pictures[entry["key"]]} if entry["key"] in pictures else entry for entry in entries
    )
    starts, parts = _parts(page_entries)
    index = build_question_index(keys, runs, facets)
    index |= {"starts": starts, "longest_text": longest if longest < LONGEST_TEXT else None}
    return [pack_block("index", index), pack_block("stems", [join_stems(key, runs) for key in keys]), *parts]


def pack_block(name: str, value: Any) -> Block:
    """Pack `value`, JSON-ready, as a block; what UTF-8 cannot write becomes a question mark."""
    return _pack_json(name, _to_json(value))


def _pack_json(name: str, json_text: bytes) -> Block:
    archive = gzip.compress(json_text, LEVEL, mtime=0)
    return Block(name, base64.b64encode(archive).decode("ascii"))


def _to_json(value: Any) -> bytes:
    try:
        return to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _parts(entries: Iterable[dict[str, Any]]) -> tuple[list[int], list[Block]]:
    """Return where among the questions each part begins, and the parts."""
    starts: list[int] = []
    blocks: list[Future[Block]] = []
    part = _Part()
    # A part is compressed while the next one is made: zlib lets other threads work.
    with ThreadPoolExecutor(max_workers=1) as pool:
        for place, entry in enumerate(entries):
            if part.full:
                blocks.append(pool.submit(part.pack, f"part-{len(blocks)}"))
                part = _Part()
            if not part.items:
                starts.append(place)
            part.add(entry)
        if part.items:
            blocks.append(pool.submit(part.pack, f"part-{len(blocks)}"))
        return starts, [block.result() for block in blocks]


class _Part:
    """Questions that are packed together. What several prompts share, such as demonstrations, stands once."""

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self._turns: dict[tuple[str, str], int] = {}
        self._characters = 0

    @property
    def full(self) -> bool:
        return len(self.items) == MOST_QUESTIONS or self._characters > MOST_CHARACTERS

    def add(self, entry: dict[str, Any]) -> None:
        """Take a question in; the turns of its prompts become places among those of the part."""
        for answer in filter(None, entry["answers"]):
            for call in answer.get("calls", ()):
                call["turns"] = [self._place(role, text) for role, text in call["turns"]]
        self.items.append(_to_json(entry))
        self._characters += len(self.items[-1])

    def _place(self, role: str, text: str) -> int:
        if (role, text) not in self._turns:
            self._turns[role, text] = len(self._turns)
            self._characters += len(text)
        return self._turns[role, text]

    def pack(self, name: str) -> Block:
        return _pack_json(name, b'{"turns":%b,"items":[%b]}' % (_to_json(list(self._turns)), b",".join(self.items)))
