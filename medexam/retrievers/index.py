"""An index folder: building it, what it says of itself, and searching it.

The folder is a data set that `datasets.load_from_disk` opens: passages and vectors in Arrow files, the parts. A part
appears whole, so an interrupted build continues with the missing parts, on any machine. The manifest is
written first without the hashes of the files, and last with them: until then the folder is unfinished.
"""

import hashlib
import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from pydantic import Field, ValidationError

from medexam.errors import EngineError, IndexBuildError, IndexStaleError
from medexam.files import read_json, whole_file, write_whole
from medexam.frozen_model import FrozenModel
from medexam.retrievers.base import Hit, Passage, Progress, import_library
from medexam.retrievers.corpora import Corpus
from medexam.retrievers.encoders import Encoder, EncoderRecord, build_encoder
from medexam.retrievers.vectors import (
    VECTOR,
    Rows,
    Scores,
    StoredVectors,
    Vectors,
    build_structure,
    make_structure,
    search_exhaustively,
    search_structure,
)
from medexam.weights import MINILM, hash_files, is_folder

MANIFEST = "manifest.json"
STRUCTURE = "structure.faiss"
SCHEMA = 7
_STATE = "state.json"
_INFO = "dataset_info.json"
_TEXTS = ("id", "title", "content", "source")
BLOCK = 256
"""Passages that are encoded together: each has the same neighbours, on any machine."""
_MOST_PARTS = 100
"""So an interruption costs at most a hundredth of a build, or a block."""


class IndexManifest(FrozenModel, populate_by_name=True):
    """What `manifest.json` holds: what the index is built of, and its files once it is finished."""

    schema_version: int = Field(SCHEMA, alias="schema")
    corpus: Corpus
    """Its passages lie in the parts."""
    encoder: EncoderRecord
    factory: str | None = None
    """The string of `faiss.index_factory` that an approximate index was made of; None: search is exact."""
    parameters: str = ""
    """Parameters of that index, as `faiss.ParameterSpace` takes them."""
    sha256: dict[str, str] = Field(default_factory=dict)
    """Hash of each file that a search reads; empty until the index is finished."""

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

    @property
    def part_size(self) -> int:
        """Passages of each part but the last: whole blocks, and what an interruption can cost."""
        return BLOCK * math.ceil(self.corpus.count / (BLOCK * _MOST_PARTS))

    @property
    def parts(self) -> list[str]:
        """The names of the parts' files, in the order of the corpus."""
        number = math.ceil(self.corpus.count / self.part_size)
        return [f"data-{place:05d}-of-{number:05d}.arrow" for place in range(number)]

    def count_encoded(self, folder: Path) -> int:
        """Count the passages that have a vector in `folder`."""
        wholes = sum((folder / name).is_file() for name in self.parts[:-1])
        last = self.corpus.count - self.part_size * (len(self.parts) - 1)
        return wholes * self.part_size + last * (folder / self.parts[-1]).is_file()

    def differences(self, fingerprint: str | None, encoder: EncoderRecord | None) -> str:
        """Say what other corpus or encoder it is built of; empty if it is of these, and None compares nothing."""
        if fingerprint not in (None, own := self.corpus.fingerprint):
            return f"for corpus {self.corpus.name} with fingerprint {own[:16]}, not {str(fingerprint)[:16]}"
        others = self.encoder.identity if encoder is None else encoder.identity
        pairs = ((name, value, others[name]) for name, value in self.encoder.identity.items())
        differences = "; ".join(f"{name} {value}, not {other}" for name, value, other in pairs if value != other)
        return differences and f"with another encoder: {differences}"


def _encode_parts(
    manifest: IndexManifest, corpus: Corpus, encoder: Encoder, folder: Path, progress: Progress | None
) -> None:
    """Write the parts of a corpus that are missing in an index folder, in blocks: a corpus takes the memory of one.

    Raises `DatasetError` where the corpus has changed since it was loaded, and `IndexBuildError` where the folder
    cannot be written.
    """
    import pyarrow as pa

    schema = _features(encoder.record.dimension).arrow_schema
    finished, passages = manifest.count_encoded(folder), corpus.read()
    for name in manifest.parts:
        part = islice(passages, manifest.part_size)
        if (folder / name).is_file():
            deque(part, maxlen=0)
            continue
        with (
            _disk_errors(folder),
            whole_file(folder / name) as draft,
            pa.OSFile(str(draft), "wb") as file,
            pa.ipc.new_stream(file, schema) as stream,
        ):
            while block := list(islice(part, BLOCK)):
                vectors = np.ascontiguousarray(encoder.encode_passages(block), dtype=np.float32)
                if vectors.shape != (len(block), encoder.record.dimension):
                    raise ValueError(f"{encoder.record.label} returned {vectors.shape} for {len(block)} passages")
                texts = [pa.array([getattr(passage, field) for passage in block], pa.string()) for field in _TEXTS]
                column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
                stream.write_batch(pa.record_batch([*texts, column], schema=schema))
                finished += len(block)
                if progress is not None:
                    progress(finished)
    # At its end a corpus sees whether it is still the one that was loaded.
    if next(passages, None) is not None:
        raise IndexBuildError(f"corpus {corpus.name} has grown while it was read: start again")


def build_index(
    corpus: Corpus,
    encoder: Encoder,
    folder: Path,
    factory: str | None = None,
    parameters: str = "",
    progress: Progress | None = None,
) -> IndexManifest:
    """Encode a corpus into an index folder, or finish one that was begun; a finished one of the same kind is kept.

    Search is exact, or by the approximate index that `factory` says in the form of `faiss.index_factory`, under
    `parameters` of `faiss.ParameterSpace`. The vectors are kept as well, so that another one needs no encoding.

    `progress` is called with the number of passages that have a vector. An exception that it raises, or Ctrl-C, stops
    the build and costs the part that is being written. Raises `IndexBuildError` if the folder holds the index of
    another corpus or encoder, another process is building it, the disk is full, or FAISS refuses `factory` or
    `parameters`.
    """
    if factory is not None:
        # Said now, and not after hours of encoding.
        make_structure(factory, parameters, encoder.record.dimension)
    new_manifest = IndexManifest(corpus=corpus, encoder=encoder.record, factory=factory, parameters=parameters)
    with _locked(folder):
        manifest = find_manifest(folder)
        if manifest is None:
            with _disk_errors(folder):
                for stray in (*folder.glob("data-*.arrow"), *folder.glob(".data-*.arrow.*")):
                    stray.unlink()
                # Last, because a later call trusts the parts that lie beside this file.
                _write_manifest(folder, new_manifest)
        elif differences := manifest.differences(corpus.fingerprint, encoder.record):
            raise IndexBuildError(
                f"{folder} was begun {differences}; choose another folder, or remove {folder} to start over"
            )
        elif manifest.sha256:
            manifest = read_manifest(folder)
        count = new_manifest.count_encoded(folder)
        if progress is not None:
            progress(count)
        if manifest and manifest.sha256 and (manifest.factory, manifest.parameters) == (factory, parameters):
            return manifest
        if count < corpus.count:
            _encode_parts(new_manifest, corpus, encoder, folder, progress)
        return _finish(new_manifest, folder)


def _finish(manifest: IndexManifest, folder: Path) -> IndexManifest:
    """Make one data set of the parts, with an approximate index where the manifest says one, and write their hashes."""
    with _disk_errors(folder):
        # A finished manifest must not stand beside an approximate index that is being replaced.
        _write_manifest(folder, manifest)
        (folder / STRUCTURE).unlink(missing_ok=True)
        features = _features(manifest.encoder.dimension)
        import_library("datasets").DatasetInfo(features=features).write_to_directory(folder)
        state: dict[str, Any] = {
            "_data_files": [{"filename": name} for name in manifest.parts],
            "_fingerprint": manifest.corpus.fingerprint[:16],
            **dict.fromkeys(("_format_columns", "_format_type", "_split")),
            "_format_kwargs": {},
            "_output_all_columns": False,
        }
        write_whole(folder / _STATE, json.dumps(state, indent=2))
        names = [*manifest.parts, _STATE, _INFO]
        if manifest.factory is not None:
            structure = make_structure(manifest.factory, manifest.parameters, manifest.encoder.dimension)
            build_structure(structure, StoredVectors(_load_rows(manifest, folder)), folder / STRUCTURE)
            names.append(STRUCTURE)
        finished = manifest.model_copy(update={"sha256": _hash_files(folder, names)})
        _write_manifest(folder, finished)
    return finished


def _features(dimension: int) -> Any:
    datasets = import_library("datasets")
    fields = {name: datasets.Value("string") for name in _TEXTS}
    return datasets.Features({**fields, VECTOR: datasets.List(datasets.Value("float32"), length=dimension)})


def _load_rows(build: IndexManifest, folder: Path) -> Any:
    """Open the parts as one data set, as `load_from_disk` does, which would show a bar for each."""
    datasets = import_library("datasets")
    return datasets.concatenate_datasets([datasets.Dataset.from_file(str(folder / name)) for name in build.parts])


def find_manifest(folder: Path) -> IndexManifest | None:
    """Find the manifest of an index, finished or not; None if none was begun.

    Raises `IndexStaleError` where it is damaged, or of another version.
    """
    path = folder / MANIFEST
    try:
        data = read_json(path)
        if isinstance(data, dict) and data.get("schema") != SCHEMA:
            raise IndexStaleError(
                f"{folder}: its schema is {data.get('schema')}, and this version reads {SCHEMA}; {rebuild(folder)}"
            )
        return IndexManifest.model_validate(data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError) as error:
        raise IndexStaleError(f"{path} cannot be read ({type(error).__name__}); {rebuild(folder)}") from error


def read_manifest(folder: Path) -> IndexManifest:
    """Read the manifest of a finished index whose files are those that were built, byte by byte.

    Raises `IndexStaleError` if there is none, where it or a file is damaged, or where it is of another version.
    """
    manifest = find_manifest(folder)
    if manifest is None:
        raise IndexStaleError(
            f"{folder} holds no index; make it with `medexam index build --corpus CORPUS --out {folder}`"
        )
    if not manifest.sha256:
        raise IndexStaleError(
            f"{folder}: the index is unfinished, {manifest.count_encoded(folder):,} of {manifest.corpus.count:,} "
            "passages are encoded; continue with the same `medexam index build`"
        )
    try:
        hashes = _hash_files(folder, manifest.sha256)
    except OSError as error:
        raise IndexStaleError(f"{error.filename}: it cannot be read: {error.strerror}; {rebuild(folder)}") from error
    if changed := [name for name, sha256 in hashes.items() if sha256 != manifest.sha256[name]]:
        raise IndexStaleError(
            f"{folder}: {changed[0]} was changed after the index was built; restore it, or {rebuild(folder)}"
        )
    return manifest


def _hash_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    return dict(zip(names, hash_files([folder / name for name in names]), strict=True))


def check_manifest(
    manifest: IndexManifest, folder: Path, corpus_fingerprint: str | None, encoder: EncoderRecord | None
) -> None:
    """Raise `IndexStaleError` if the index is of another corpus or encoder; None compares nothing."""
    if differences := manifest.differences(corpus_fingerprint, encoder):
        raise IndexStaleError(f"{folder}: it was built {differences}; {rebuild(folder)}")


def _write_manifest(folder: Path, manifest: IndexManifest) -> None:
    write_whole(folder / MANIFEST, manifest.model_dump_json(indent=2, by_alias=True) + "\n")


def rebuild(folder: Path) -> str:
    """Write the ways out of an index that cannot be used."""
    return f"name another index, or remove {folder} and build it again with `medexam index build`"


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise IndexBuildError(
            f"cannot write {folder}: {error.strerror or error}; correct that and build again: the encoded passages "
            "are kept"
        ) from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder for one process; the system frees the lock of a process that dies."""
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # The file stays after the build: if it were removed, two processes could lock two files of one name.
        lock = FileLock(folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise IndexBuildError(f"{folder} is being built by another process: wait for it") from None
    try:
        yield
    finally:
        lock.release()


class DenseRetriever:
    """A `Retriever` over an index folder; scores are inner products in float64."""

    def __init__(self, folder: Path, manifest: IndexManifest, encoder: Encoder | None = None) -> None:
        self.folder = folder
        self.manifest = manifest
        self._encoder = encoder
        rows = _load_rows(manifest, folder)
        self._texts, self.vectors = rows.remove_columns(VECTOR), StoredVectors(rows)
        self._structure: Any = None
        if manifest.factory is not None:
            faiss = import_library("faiss")
            self._structure = faiss.read_index(str(folder / STRUCTURE), faiss.IO_FLAG_MMAP)

    def __len__(self) -> int:
        """Count the passages of the corpus."""
        return len(self.vectors)

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
            return search_structure(self._structure, self.vectors, queries, k)
        return search_exhaustively(self.vectors, queries, k)

    def passages_of(self, rows: Rows) -> list[Passage]:
        """Return the passages of these rows `[n]`."""
        columns = self._texts[rows]
        return [Passage(*texts) for texts in zip(*(columns[name] for name in _TEXTS), strict=True)]

    @property
    def encoder(self) -> Encoder:
        """The encoder of the queries, loaded when it is first needed."""
        if self._encoder is not None:
            return self._encoder
        encoder_record = self.manifest.encoder
        # What a folder holds is compared below, where the ways out are those of an index.
        local = encoder_record.source == MINILM or is_folder(encoder_record.source)
        revision = None if local else encoder_record.revision
        try:
            encoder = build_encoder(encoder_record.source, revision=revision)
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
