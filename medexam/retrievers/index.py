"""An index folder: what it says of itself, and searching it.

The folder is a data set that `datasets.load_from_disk` opens: passages and vectors in one or more Arrow files, the
shards. The manifest is written last, so a folder without one is unfinished, whatever else lies in it. The number of
shards is no part of an index's digest.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from medexam.encoder_weights import MINILM, is_folder
from medexam.errors import EngineError, IndexStaleError
from medexam.files import write_whole
from medexam.fingerprints import hash_files
from medexam.frozen_model import FrozenModel
from medexam.inputs import read_json
from medexam.retrievers.base import Hit, Passage
from medexam.retrievers.corpora import Corpus
from medexam.retrievers.encoders import Encoder, EncoderRecord, build_encoder
from medexam.retrievers.vectors import (
    VECTOR,
    Rows,
    Scores,
    StoredVectors,
    Vectors,
    load_datasets,
    open_structure,
    search_exhaustively,
    search_structure,
    to_passages,
)

MANIFEST = "manifest.json"
STRUCTURE = "structure.faiss"
PROGRESS = "progress.json"
SCHEMA = 4


class Recall(FrozenModel):
    """How much of the exhaustive ranking an approximate one finds, measured when it was built."""

    at: int
    """The depth of both rankings."""
    queries: int
    """How many queries were compared: titles, or first words, of passages spread over the corpus."""
    value: float
    """Mean share of the exhaustive ranking's passages that the approximate one holds."""


class Shard(FrozenModel):
    """A part of the corpus, in one Arrow file of the index folder."""

    file: str
    count: int
    """Its passages; the shards stand in the order of the corpus."""


class Build(FrozenModel):
    """What an index is built of; `progress.json` holds it until the manifest is written."""

    corpus: Corpus
    """Its passages lie in the shards."""
    encoder: EncoderRecord
    shards: tuple[Shard, ...]


class IndexManifest(Build, populate_by_name=True):
    """What `manifest.json` holds."""

    schema_version: int = Field(SCHEMA, alias="schema")
    metric: Literal["inner_product"] = "inner_product"
    factory: str | None
    """The string of `faiss.index_factory` that an approximate index was made of; None: search is exact."""
    parameters: str
    """Parameters of that index, as `faiss.ParameterSpace` takes them."""
    recall: Recall | None
    """None for exact search, which finds everything."""
    sha256: dict[str, str]
    """Hash of each file that a search reads."""

    @property
    def digest(self) -> str:
        """Identity of everything that a ranking depends on; the same wherever the index and its corpus lie.

        Vectors follow from corpus and encoder; an approximate index, whose building is not repeatable, counts by its
        content.
        """
        identity = {
            "corpus": self.corpus.fingerprint,
            "encoder": self.encoder.identity,
            "structure": self.sha256.get(STRUCTURE),
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


class ShardProgress(FrozenModel):
    """How much of a shard is safely on disk, from its first row."""

    rows: int = 0
    bytes: int = 0
    """Length of the file up to these rows."""


def read_manifest(folder: Path) -> IndexManifest:
    """Read the manifest of a finished index whose files are those that were built, byte by byte.

    Raises `IndexStaleError` if there is none, where it or a file is damaged, or where it is of another version.
    """
    path = folder / MANIFEST
    try:
        data = read_json(path)
        if isinstance(data, dict) and data.get("schema") != SCHEMA:
            raise IndexStaleError(
                f"{folder}: its schema is {data.get('schema')}, and this version reads {SCHEMA}; {rebuild(folder)}"
            )
        manifest = IndexManifest.model_validate(data)
    except FileNotFoundError:
        raise IndexStaleError(why_unfinished(folder)) from None
    except (OSError, ValueError, ValidationError) as error:
        raise IndexStaleError(f"{path} cannot be read ({type(error).__name__}); {rebuild(folder)}") from error
    missing = [name for name in manifest.sha256 if not (folder / name).is_file()]
    if missing:
        raise IndexStaleError(f"{folder}: {missing[0]} is missing; {rebuild(folder)}")
    try:
        hashes = hash_index(folder, manifest.sha256)
    except OSError as error:
        raise IndexStaleError(f"{error.filename}: it cannot be read: {error.strerror}; {rebuild(folder)}") from error
    for name, sha256 in hashes.items():
        if sha256 != manifest.sha256[name]:
            raise IndexStaleError(
                f"{folder}: {name} was changed after the index was built (its SHA-256 is {sha256[:12]}, not "
                f"{manifest.sha256[name][:12]}); restore it, or {rebuild(folder)}"
            )
    return manifest


def hash_index(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Hash each of these files of an index folder by SHA-256; raises `OSError`."""
    names = list(names)
    return dict(zip(names, hash_files([folder / name for name in names], folder), strict=True))


def check_manifest(
    manifest: IndexManifest, folder: Path, corpus_fingerprint: str | None, encoder: EncoderRecord | None
) -> None:
    """Raise `IndexStaleError` if the index is of another corpus or encoder; None compares nothing."""
    if corpus_fingerprint is not None and corpus_fingerprint != manifest.corpus.fingerprint:
        raise IndexStaleError(
            f"{folder}: it indexes corpus {manifest.corpus.name} with fingerprint {manifest.corpus.fingerprint[:16]}, "
            f"not {corpus_fingerprint[:16]}; {rebuild(folder)}"
        )
    if encoder is not None and (differences := manifest.encoder.differences(encoder)):
        raise IndexStaleError(f"{folder}: its vectors come from another encoder: {differences}; {rebuild(folder)}")


def read_progress(folder: Path) -> Build | None:
    """Read what an unfinished build was begun with; None if none was begun, or its record is damaged."""
    try:
        return Build.model_validate_json((folder / PROGRESS).read_bytes())
    except (OSError, ValidationError):
        return None


def read_shard_progress(folder: Path, shard: Shard) -> ShardProgress:
    """Read how much of a shard is done; nothing if its record is damaged."""
    try:
        return ShardProgress.model_validate_json(note_path(folder, shard).read_bytes())
    except (OSError, ValidationError):
        return ShardProgress()


def count_encoded(folder: Path, shards: Sequence[Shard]) -> int:
    """Count the passages of all shards that have a vector on the disk."""
    return sum(
        shard.count if (folder / shard.file).is_file() else read_shard_progress(folder, shard).rows for shard in shards
    )


def note_path(folder: Path, shard: Shard) -> Path:
    """Return where it stands how much of a shard is done."""
    return folder / f".{shard.file}.json"


def write_record(path: Path, record: FrozenModel) -> None:
    """Write a manifest or a progress whole or not at all; raises `OSError`."""
    write_whole(path, record.model_dump_json(indent=2, by_alias=True) + "\n")


def rebuild(folder: Path) -> str:
    """Write the ways out of an index that cannot be used."""
    return f"name another index, or remove {folder} and build it again with `medexam index build`"


def why_unfinished(folder: Path) -> str:
    """Write what a folder without a manifest lacks."""
    progress = read_progress(folder)
    if progress is not None:
        return (
            f"{folder}: the index is unfinished, {count_encoded(folder, progress.shards):,} of "
            f"{progress.corpus.count:,} passages are encoded; continue with the same `medexam index build`"
        )
    return f"{folder} holds no index; make one with `medexam index build`"


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
