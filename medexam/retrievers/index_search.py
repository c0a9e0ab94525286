"""An index folder, opened: queries in, passages out.

`open_index` refuses a folder that is not of the corpus and encoder that the caller means; `DenseRetriever` encodes all
queries in one call and reads only the passages that they find.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from medexam.encoder_weights import MINILM, is_folder
from medexam.errors import EngineError, IndexStaleError
from medexam.retrievers.approximate import ApproximateSearch
from medexam.retrievers.base import Hit, Passage
from medexam.retrievers.encoders import Encoder, build_encoder
from medexam.retrievers.exhaustive import Rows, Scores, Vectors, best_of, search_exhaustively
from medexam.retrievers.index_manifest import (
    SHARDS,
    VECTORS,
    EncoderRecord,
    IndexManifest,
    check_manifest,
    read_manifest,
    read_shard,
    read_shards,
    rebuild,
)
from medexam.retrievers.passage_store import JoinedPassages, PassageStore
from medexam.retrievers.vector_file import StoredVectors

_TRIED = 8
"""Passages of an old index that are encoded again, spread over the corpus."""
_ALLOWED = {"float32": 1e-3, "bfloat16": 5e-2, "float16": 5e-2}
"""How far such a vector may be from the one that is kept, as a share of its length: what another machine rounds."""


class DenseRetriever:
    """A `Retriever` over an index folder; scores are inner products in float64."""

    def __init__(self, folder: Path, manifest: IndexManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self.digest = manifest.digest
        self._encoder: Encoder | None = None
        try:
            self._vectors: Vectors = np.load(folder / VECTORS, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise IndexStaleError(f"{folder}: its vectors cannot be read: {error}; {rebuild(folder)}") from error
        self.passages: Sequence[Passage] = PassageStore(folder)
        shape = (manifest.corpus.count, manifest.encoder.dimension)
        if self._vectors.shape != shape or self._vectors.dtype != np.float32 or len(self.passages) != shape[0]:
            raise IndexStaleError(
                f"{folder}: it holds {self._vectors.shape} vectors of {len(self.passages):,} passages and its "
                f"manifest says {shape}; {rebuild(folder)}"
            )
        self._structure = _open_structure(folder, manifest, [folder / VECTORS])

    def __len__(self) -> int:
        """Count the passages of the corpus."""
        return len(self.passages)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first; passages with equal scores in the order of the corpus.

        Raises `ValueError` if `k` is larger than the corpus, and `IndexStaleError` where the encoder that the
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
                for rank, (row, score) in enumerate(zip(query_rows, query_scores, strict=True), start=1)
            ]
            for query_rows, query_scores in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def search_vectors(self, queries: Vectors, k: int) -> tuple[Scores, Rows]:
        """Return scores and rows `[n, k]` of the `k` best passages for query vectors `[n, dimension]`."""
        if self._structure is not None:
            return self._structure.search(queries, k)
        return search_exhaustively(self._vectors, queries, k)

    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors `[n, dimension]` of these rows."""
        return self._vectors[rows]

    @property
    def encoder(self) -> Encoder:
        """The encoder of the queries, loaded when it is first needed."""
        if self._encoder is not None:
            return self._encoder
        encoder_record = self.manifest.encoder
        # What a folder holds is compared below, where the ways out are those of an index.
        local = encoder_record.source == MINILM or is_folder(encoder_record.source)
        try:
            encoder = build_encoder(
                encoder_record.source,
                revision=None if local else encoder_record.revision,
                dtype=encoder_record.precision,
            )
        except EngineError as error:
            raise EngineError(f"{error}; or name the encoder of {self.folder} with retriever.encoder") from error
        check_manifest(self.manifest, self.folder, None, EncoderRecord.of(encoder))
        return self.take(encoder)

    def take(self, encoder: Encoder) -> Encoder:
        """Encode queries from now on with this encoder, which fits the manifest.

        An old index does not name its encoder by content: a few of its passages are encoded again, and
        `IndexStaleError` is raised where their vectors are others.
        """
        if not self.manifest.hashed:
            rows = np.unique(np.linspace(0, len(self) - 1, _TRIED).astype(np.int64))
            vectors = self.vectors_of(rows)
            new_vectors = encoder.encode_passages([self.passages[int(row)] for row in rows])
            distances = np.linalg.norm(new_vectors - vectors, axis=1) / np.maximum(
                np.linalg.norm(vectors, axis=1), 1e-9
            )
            if distances.max() > _ALLOWED[encoder.precision]:
                raise IndexStaleError(
                    f"{self.folder}: {encoder.label} {encoder.revision} makes other vectors of its passages (they are "
                    f"{distances.max():.0%} off), so another encoder or revision made them; name that one with "
                    f"retriever.encoder and retriever.revision, or {rebuild(self.folder)}"
                )
        self._encoder = encoder
        return encoder


class ShardedRetriever(DenseRetriever):
    """A `Retriever` over the shards of an index folder, searched one after the other, each in the memory of one.

    Its hits and scores are those of the flat index.
    """

    def __init__(self, folder: Path, manifest: IndexManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self.digest = manifest.digest
        self._encoder = None
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
        self._structure = _open_structure(folder, manifest, [shard.folder / VECTORS for shard in self._shards])

    def search_vectors(self, queries: Vectors, k: int) -> tuple[Scores, Rows]:
        """Return scores and rows `[n, k]` of the `k` best passages for query vectors `[n, dimension]`."""
        if self._structure is not None:
            return self._structure.search(queries, k)
        scores: list[Scores] = []
        rows: list[Rows] = []
        start = 0
        for shard in self._shards:
            shard_scores, places = shard.search_vectors(queries, min(k, len(shard)))
            scores.append(shard_scores)
            rows.append(places + start)
            start += len(shard)
        return best_of(scores, rows, k)

    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors `[n, dimension]` of these rows."""
        starts = np.cumsum([0, *map(len, self._shards)])
        vectors = np.empty((len(rows), self.manifest.encoder.dimension), dtype=np.float32)
        for start, end, shard in zip(starts, starts[1:], self._shards, strict=False):
            in_shard = (rows >= start) & (rows < end)
            vectors[in_shard] = shard.vectors_of(rows[in_shard] - start)
        return vectors


def _open_structure(folder: Path, manifest: IndexManifest, paths: Sequence[Path]) -> ApproximateSearch | None:
    """Open the structure of an approximate kind over the vectors in these files; None for `flat`."""
    if manifest.kind == "flat":
        return None
    return ApproximateSearch(manifest.kind, manifest.parameters, StoredVectors(paths), folder)


def open_index(folder: Path, corpus_fingerprint: str | None = None, encoder: Encoder | None = None) -> DenseRetriever:
    """Open a finished index.

    `corpus_fingerprint` and `encoder` are what the caller means to search; None takes what the index holds, and the
    encoder that its manifest names is then loaded at the first search. Raises `IndexStaleError` if the index is
    missing, unfinished, damaged, changed, or of another corpus or encoder.
    """
    manifest = read_manifest(folder)
    check_manifest(manifest, folder, corpus_fingerprint, EncoderRecord.of(encoder) if encoder is not None else None)
    retriever = (ShardedRetriever if SHARDS in manifest.bytes else DenseRetriever)(folder, manifest)
    if encoder is not None:
        retriever.take(encoder)
    return retriever
