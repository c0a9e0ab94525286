"""An index folder, opened: queries in, passages out.

`open_index` refuses a folder that is not of the corpus and encoder that the caller means; `DenseRetriever` encodes all
queries in one call and reads only the passages that they find.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medexam.encoder_weights import MINILM, is_folder
from medexam.errors import EngineError, IndexStaleError
from medexam.retrievers.base import Hit, Passage
from medexam.retrievers.encoders import Encoder, build_encoder
from medexam.retrievers.index_manifest import STRUCTURE, IndexManifest, check_manifest, read_manifest, rebuild
from medexam.retrievers.passage_rows import VECTOR, Vectors, load_datasets, to_passages
from medexam.retrievers.vector_search import (
    Rows,
    Scores,
    StoredVectors,
    open_structure,
    search_exhaustively,
    search_structure,
)


class DenseRetriever:
    """A `Retriever` over an index folder; scores are inner products in float64."""

    def __init__(self, folder: Path, manifest: IndexManifest, encoder: Encoder | None = None) -> None:
        self.folder = folder
        self.manifest = manifest
        self.digest = manifest.digest
        self._encoder = encoder
        try:
            rows: Any = load_datasets().load_from_disk(str(folder))
            shape = (len(rows), rows.features[VECTOR].length)
        except (OSError, ValueError, KeyError) as error:
            raise IndexStaleError(f"{folder}: its rows cannot be read: {error}; {rebuild(folder)}") from error
        expected_shape = (manifest.corpus.count, manifest.encoder.dimension)
        if shape != expected_shape:
            raise IndexStaleError(
                f"{folder}: it holds {shape} vectors and its manifest says {expected_shape}; {rebuild(folder)}"
            )
        self._texts = rows.remove_columns(VECTOR)
        self._vectors = StoredVectors(rows)
        self._structure = open_structure(folder / STRUCTURE, self._vectors) if manifest.factory is not None else None

    def __len__(self) -> int:
        """Count the passages of the corpus."""
        return len(self._vectors)

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
        unique = np.unique(rows)
        passages = dict(zip(unique.tolist(), self.passages_of(unique), strict=True))
        return [
            [
                Hit(passages[row], score, rank)
                for rank, (row, score) in enumerate(zip(query_rows, query_scores, strict=True), start=1)
            ]
            for query_rows, query_scores in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def search_vectors(self, queries: Vectors, k: int) -> tuple[Scores, Rows]:
        """Return scores and rows `[n, k]` of the `k` best passages for query vectors `[n, dimension]`."""
        if self._structure is not None:
            return search_structure(self._structure, self._vectors, queries, k)
        return search_exhaustively(self._vectors, queries, k)

    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors `[n, dimension]` of these rows."""
        return self._vectors[rows]

    def passages_of(self, rows: Rows) -> list[Passage]:
        """Return the passages of these rows `[n]`."""
        return to_passages(self._texts[rows])

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
        check_manifest(self.manifest, self.folder, None, encoder.record)
        self._encoder = encoder
        return encoder


def open_index(folder: Path, corpus_fingerprint: str | None = None, encoder: Encoder | None = None) -> DenseRetriever:
    """Open a finished index.

    `corpus_fingerprint` and `encoder` are what the caller means to search; None takes what the index holds, and the
    encoder that its manifest names is then loaded at the first search. Raises `IndexStaleError` if the index is
    missing, unfinished, damaged, changed, or of another corpus or encoder.
    """
    manifest = read_manifest(folder)
    check_manifest(manifest, folder, corpus_fingerprint, encoder.record if encoder is not None else None)
    return DenseRetriever(folder, manifest, encoder)
