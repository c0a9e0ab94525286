"""An index folder, opened: queries in, passages out.

`open_index` refuses a folder that is not of the corpus and encoder that the caller means; `DenseRetriever` encodes all
queries in one call and reads only the passages that they find.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medexam.errors import IndexStaleError
from medexam.retrievers.base import Hit
from medexam.retrievers.encoder_weights import MINILM, is_folder
from medexam.retrievers.encoders import Encoder, build_encoder
from medexam.retrievers.index_manifest import (
    STRUCTURE,
    VECTORS,
    EncoderRecord,
    IndexManifest,
    check_manifest,
    read_manifest,
    rebuild,
)
from medexam.retrievers.passage_store import PassageStore
from medexam.retrievers.shards import JoinedPassages, Passages, is_sharded, read_shard, read_shards

if TYPE_CHECKING:
    from medexam.retrievers.exhaustive import Rows, Scores, Vectors


class DenseRetriever:
    """A `Retriever` over an index folder; scores are inner products in float64."""

    def __init__(self, folder: Path, manifest: IndexManifest, encoder: Encoder | None = None) -> None:
        import numpy as np

        self.folder = folder
        self.manifest = manifest
        self.digest = manifest.digest
        self._encoder = encoder
        try:
            self._vectors: Vectors = np.load(folder / VECTORS, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise IndexStaleError(f"{folder}: its vectors cannot be read: {error}; {rebuild(folder)}") from error
        self.passages: Passages = PassageStore(folder)
        shape = (manifest.corpus.count, manifest.encoder.dimension)
        if self._vectors.shape != shape or self._vectors.dtype != np.float32 or len(self.passages) != shape[0]:
            raise IndexStaleError(
                f"{folder}: it holds {self._vectors.shape} vectors of {len(self.passages):,} passages and its "
                f"manifest says {shape}; {rebuild(folder)}"
            )
        self._structure = None
        if manifest.kind != "flat":
            from medexam.retrievers.approximate import ApproximateSearch

            self._structure = ApproximateSearch(manifest.kind, manifest.parameters, self._vectors, folder / STRUCTURE)

    def __len__(self) -> int:
        """How many passages the corpus has."""
        return len(self.passages)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The `k` best passages of each query, best first; passages with equal scores in the order of the corpus.

        Raises `ValueError` where `k` is larger than the corpus, and `IndexStaleError` where the encoder that the
        manifest names is no longer the one that made the vectors.
        """
        if not 1 <= k <= len(self):
            raise ValueError(f"k is {k}, and the corpus has {len(self):,} passages")
        if not queries:
            return []
        scores, rows = self.search_vectors(self.encoder.encode_queries(queries), k)
        return [
            [
                Hit(self.passages[row], score, rank)
                for rank, (row, score) in enumerate(zip(found, scored, strict=True), start=1)
            ]
            for found, scored in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def search_vectors(self, queries: "Vectors", k: int) -> "tuple[Scores, Rows]":
        """Scores and rows `[n, k]` of the `k` best passages for query vectors `[n, dimension]`."""
        if self._structure is not None:
            return self._structure.search(queries, k)
        from medexam.retrievers.exhaustive import search_exhaustively

        return search_exhaustively(self._vectors, queries, k)

    def vectors_of(self, rows: "Rows") -> "Vectors":
        """The vectors `[n, dimension]` of these rows."""
        return self._vectors[rows]

    @property
    def encoder(self) -> Encoder:
        """The encoder of the queries, loaded when it is first needed."""
        if self._encoder is None:
            made = self.manifest.encoder
            fixed = made.source == MINILM or is_folder(made.source)
            encoder = build_encoder(made.source, revision=None if fixed else made.revision, dtype=made.precision)
            check_manifest(self.manifest, self.folder, None, EncoderRecord.of(encoder))
            self._encoder = encoder
        return self._encoder


class ShardedRetriever(DenseRetriever):
    """A `Retriever` over the shards of an index folder, searched one after the other, each in the memory of one.

    Its hits and scores are those of the flat index.
    """

    def __init__(self, folder: Path, manifest: IndexManifest, encoder: Encoder | None = None) -> None:
        self.folder = folder
        self.manifest = manifest
        self.digest = manifest.digest
        self._encoder = encoder
        self._shards = [
            DenseRetriever(folder / shard.folder, read_shard(folder, shard, manifest.encoder))
            for shard in read_shards(folder)
        ]
        self.passages = JoinedPassages([shard.passages for shard in self._shards])
        if len(self.passages) != manifest.corpus.count:
            raise IndexStaleError(
                f"{folder}: its shards hold {len(self.passages):,} passages and its manifest says "
                f"{manifest.corpus.count:,}; {rebuild(folder)}"
            )

    def search_vectors(self, queries: "Vectors", k: int) -> "tuple[Scores, Rows]":
        """Scores and rows `[n, k]` of the `k` best passages for query vectors `[n, dimension]`."""
        import numpy as np

        scores: list[Scores] = []
        rows: list[Rows] = []
        start = 0
        for shard in self._shards:
            found, places = shard.search_vectors(queries, min(k, len(shard)))
            scores.append(found)
            rows.append(places + start)
            start += len(shard)
        every, where = np.concatenate(scores, axis=1), np.concatenate(rows, axis=1)
        order = np.lexsort((where, -every), axis=-1)[:, :k]
        return np.take_along_axis(every, order, axis=-1), np.take_along_axis(where, order, axis=-1)

    def vectors_of(self, rows: "Rows") -> "Vectors":
        """The vectors `[n, dimension]` of these rows."""
        import numpy as np

        starts = np.cumsum([0, *map(len, self._shards)])
        found = np.empty((len(rows), self.manifest.encoder.dimension), dtype=np.float32)
        for start, end, shard in zip(starts, starts[1:], self._shards, strict=False):
            here = (rows >= start) & (rows < end)
            found[here] = shard.vectors_of(rows[here] - start)
        return found


def open_index(folder: Path, corpus_fingerprint: str | None = None, encoder: Encoder | None = None) -> DenseRetriever:
    """Open a finished index.

    `corpus_fingerprint` and `encoder` are what the caller means to search; None takes what the index holds, and the
    encoder that its manifest names is then loaded at the first search. Raises `IndexStaleError` where the index is
    missing, unfinished, damaged, cut short, or of another corpus or encoder.
    """
    manifest = read_manifest(folder)
    check_manifest(manifest, folder, corpus_fingerprint, EncoderRecord.of(encoder) if encoder is not None else None)
    return (ShardedRetriever if is_sharded(manifest) else DenseRetriever)(folder, manifest, encoder)
