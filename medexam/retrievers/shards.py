"""The shards of an index folder: which parts of the corpus lie in which folders, and their passages as one sequence.

The folder's manifest is that of the flat index of the whole corpus, so both have the same digest; `shards.json` beside
it says what lies where. This module reads; building is known to `sharding.py`, searching to `index_search.py`.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Protocol, overload

from medexam.errors import IndexStaleError
from medexam.retrievers.base import Passage
from medexam.retrievers.index_manifest import EncoderRecord, IndexManifest, differing_encoder, read_manifest, rebuild

SHARDS = "shards.json"


@dataclass(frozen=True)
class Shard:
    """A part of a corpus."""

    folder: str
    """Its name in the index folder."""
    start: int
    """The row of its first passage in the whole corpus."""
    count: int
    fingerprint: str
    """SHA-256 over its passages."""


class Passages(Protocol):
    """Passages by row."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, row: int, /) -> Passage:
        """The passage of a row."""
        ...


class JoinedPassages(Sequence[Passage]):
    """The passages of several stores, one behind the other."""

    def __init__(self, stores: Sequence[Passages]) -> None:
        self._stores = stores
        self._ends = list(accumulate(map(len, stores)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, row: int) -> Passage: ...

    @overload
    def __getitem__(self, row: slice) -> list[Passage]: ...

    def __getitem__(self, row: int | slice) -> Passage | list[Passage]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        store = bisect_right(self._ends, row)
        if not 0 <= row < len(self):
            raise IndexError(row)
        return self._stores[store][row - (self._ends[store - 1] if store else 0)]


def is_sharded(manifest: IndexManifest) -> bool:
    """Whether an index lies in shards."""
    return SHARDS in manifest.bytes


def read_shards(folder: Path) -> list[Shard]:
    """The shards in the order of the corpus; raises `IndexStaleError` where the record of them is damaged."""
    try:
        said = json.loads((folder / SHARDS).read_text(encoding="utf-8"))
        return [Shard(**shard) for shard in said]
    except (OSError, ValueError, TypeError) as error:
        fault = type(error).__name__
        raise IndexStaleError(f"{folder / SHARDS} cannot be read ({fault}); {rebuild(folder)}") from error


def read_shard(folder: Path, shard: Shard, encoder: EncoderRecord) -> IndexManifest:
    """The manifest of a finished shard; raises `IndexStaleError` where it is unfinished or not of this index."""
    place = folder / shard.folder
    manifest = read_manifest(place)
    differing = differing_encoder(manifest, encoder)
    if manifest.corpus.fingerprint != shard.fingerprint or differing:
        raise IndexStaleError(f"{place}: it is not of this index ({differing or 'another corpus'}); {rebuild(folder)}")
    return manifest
