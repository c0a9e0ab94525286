"""Passages on disk, read one at a time: a JSON line each, and where each line begins.

A search over millions of passages reads the few that it found; the corpus's text is never in memory as a whole. The
passages of several shards are one sequence.
"""

import json
import os
import weakref
from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from medexam.errors import IndexStaleError
from medexam.files import whole_file
from medexam.inputs import parse_json
from medexam.retrievers.base import Passage
from medexam.retrievers.corpora import Fingerprint
from medexam.retrievers.index_manifest import OFFSETS, PASSAGES

if TYPE_CHECKING:
    from medexam.retrievers.exhaustive import Rows


class StoredPassages(Sequence[Passage]):
    """Passages by row."""

    @overload
    def __getitem__(self, row: int) -> Passage: ...

    @overload
    def __getitem__(self, row: slice) -> list[Passage]: ...

    def __getitem__(self, row: int | slice) -> Passage | list[Passage]:
        """Read a row's passage; raises `IndexError` outside of the corpus and `IndexStaleError` for a damaged line."""
        if isinstance(row, slice):
            return [self.read(place) for place in range(*row.indices(len(self)))]
        if not 0 <= row < len(self):
            raise IndexError(row)
        return self.read(row)

    @abstractmethod
    def read(self, row: int) -> Passage:
        """Read the passage of a row that there is; raises `IndexStaleError` for a damaged line."""


class PassageStore(StoredPassages):
    """The passages of an index folder; `write_passages` made it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._offsets: Rows = np.load(folder / OFFSETS, mmap_mode="r", allow_pickle=False)
            # Read and not mapped: pages that were touched would count as memory.
            self._text = (folder / PASSAGES).open("rb", buffering=0)
            weakref.finalize(self, self._text.close)
        except (OSError, ValueError) as error:
            raise IndexStaleError(f"{folder}: its passages cannot be read: {error}") from error

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def read(self, row: int) -> Passage:
        """Read the passage of a row that there is; raises `IndexStaleError` for a damaged line."""
        start, end = (int(offset) for offset in self._offsets[row : row + 2])
        try:
            line = os.pread(self._text.fileno(), end - start, start)
            return Passage(**parse_json(line))
        except (OSError, TypeError, ValueError) as error:
            raise IndexStaleError(f"{self._folder / PASSAGES}: line {row + 1} is damaged: {error}") from error


class JoinedPassages(StoredPassages):
    """The passages of several stores, one behind the other."""

    def __init__(self, stores: Sequence[Sequence[Passage]]) -> None:
        self._stores = stores
        self._ends = list(accumulate(map(len, stores)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def read(self, row: int) -> Passage:
        """Read the passage of a row that there is."""
        store = bisect_right(self._ends, row)
        return self._stores[store][row - (self._ends[store - 1] if store else 0)]


def write_passages(passages: Iterable[Passage], folder: Path) -> str:
    """Write the passages and their offsets, both whole or not at all; return their fingerprint as a corpus.

    Raises `OSError`.
    """
    fingerprint = Fingerprint()
    offsets = array("q", [0])
    with whole_file(folder / OFFSETS) as offsets_draft, whole_file(folder / PASSAGES) as draft:
        with draft.open("wb") as stream:
            for passage in passages:
                fingerprint.add(passage)
                row = {"id": passage.id, "title": passage.title, "content": passage.content, "source": passage.source}
                line = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
                stream.write(line)
                offsets.append(offsets[-1] + len(line))
        with offsets_draft.open("wb") as stream:
            np.save(stream, np.frombuffer(offsets, dtype=np.int64))
    return fingerprint.hexdigest()
