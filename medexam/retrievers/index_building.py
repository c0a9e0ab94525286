"""Makes an index folder: encodes a corpus block by block, survives being stopped, and finishes with the manifest.

Vectors are appended to a draft; after each block `progress.json` says how many rows are safely on disk and of which
corpus and encoder, so the next call continues from there. A file that no manifest or progress names does not count.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO, FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock, Timeout

from medexam.errors import IndexBuildError
from medexam.retrievers.approximate import (
    ApproximateSearch,
    build_structure,
    choose_parameters,
    share_found,
    structure_files,
)
from medexam.retrievers.base import Passage
from medexam.retrievers.encoders import Encoder, Progress
from medexam.retrievers.exhaustive import Vectors, load_faiss
from medexam.retrievers.index_manifest import (
    MANIFEST,
    OFFSETS,
    PASSAGES,
    PROGRESS,
    SCHEMA,
    VECTORS,
    BuildProgress,
    EncoderRecord,
    IndexKind,
    IndexManifest,
    Recall,
    differing_encoder,
    read_manifest,
    read_progress,
    structure_names,
    write_manifest,
    write_record,
)
from medexam.retrievers.index_search import open_index
from medexam.retrievers.passage_store import PassageStore, write_passages
from medexam.retrievers.vector_file import StoredVectors

if TYPE_CHECKING:
    from medexam.retrievers.corpora import ReadableCorpus

BLOCK = 256
"""Passages encoded between two writes: what an interruption can cost, a few seconds without an accelerator."""
RECALL_AT = 10
RECALL_QUERIES = 200
_QUERY_WORDS = 16
_DRAFT = f".{VECTORS}.draft"


def build_index(
    corpus: "ReadableCorpus", encoder: Encoder, folder: Path, kind: IndexKind = "flat", progress: Progress | None = None
) -> IndexManifest:
    """Encode a corpus into an index folder, or finish one that was begun; a finished one of the same kind is kept.

    Passages, vectors and structures are written and read in blocks: a `StreamedCorpus` of any size takes 8 bytes a
    passage, the memory of the encoder, and for an approximate kind up to 2 GB (`medexam.retrievers.approximate`).

    `flat` looks at every vector. `hnsw` and `ivfpq` are approximate and keep the vectors as well, so that a folder can
    change its kind without being encoded again. An old index is kept if the encoder makes its vectors, and from then on
    records its files' hashes. `progress` is called with the number of passages that have a vector, those of earlier
    calls included. An exception that it raises, or Ctrl-C, stops the build and costs at most `BLOCK` passages. Raises
    `IndexBuildError` if the folder holds the index of another corpus or encoder, another process is building it, the
    disk is full, or the corpus is too small for the kind.
    """
    if not corpus.count:
        raise IndexBuildError(f"corpus {corpus.name} holds no passages: there is nothing to index")
    check_kind(kind, corpus, encoder)
    build = BuildProgress.of(corpus, encoder)
    report = progress or (lambda _: None)
    with _locked(folder):
        if (folder / MANIFEST).is_file():
            manifest = read_manifest(folder)
            check_same_build(folder, manifest, build)
            if not manifest.hashed:
                manifest = _vouch(folder, manifest, encoder)
            if manifest.kind == kind:
                report(build.corpus.count)
                return manifest
            # From here on the manifest may go; the vectors stay.
            _save_progress(folder, build, build.corpus.count)
        _encode_corpus(corpus, encoder, folder, build, report)
        return _finish(folder, build, kind, encoder)


def check_kind(kind: IndexKind, corpus: "ReadableCorpus", encoder: Encoder) -> None:
    """Raise now what building the structure of an approximate kind would raise after hours of encoding."""
    if kind != "flat":
        load_faiss()
        choose_parameters(kind, corpus.count, encoder.dimension)


def _vouch(folder: Path, old: IndexManifest, encoder: Encoder) -> IndexManifest:
    """Record the hashes and the encoder's content in an old index, whose vectors are those that the encoder makes.

    Raises `IndexStaleError` if they are not.
    """
    open_index(folder, encoder=encoder)
    manifest = old.model_copy(update={"schema_version": SCHEMA, "encoder": EncoderRecord.of(encoder)})
    with disk_errors(folder):
        write_record(folder / MANIFEST, manifest)
    return manifest


def _encode_corpus(
    corpus: "ReadableCorpus", encoder: Encoder, folder: Path, build: BuildProgress, progress: Progress
) -> None:
    """Write `vectors.npy`, from the row at which an earlier call stopped."""
    count = build.corpus.count
    row_bytes = build.encoder.dimension * 4
    header = _header(count, build.encoder.dimension)
    row_count = _prepare(corpus, folder, build, row_bytes)
    progress(row_count)
    vectors, draft = folder / VECTORS, folder / _DRAFT
    if row_count == count and vectors.is_file() and vectors.stat().st_size == len(header) + count * row_bytes:
        return
    with disk_errors(folder):
        # Unbuffered: what a full disk refused must not be written again when the file is closed.
        stream = draft.open("r+b" if draft.is_file() else "w+b", buffering=0)
    with stream:
        with disk_errors(folder):
            # A draft with fewer rows than were noted is another one: everything is encoded anew.
            if not row_count or stream.seek(0, os.SEEK_END) < len(header) + row_count * row_bytes:
                row_count = 0
                stream.seek(0)
                _write(stream, header)
            # Rows behind the last noted block may be torn.
            stream.truncate(len(header) + row_count * row_bytes)
            stream.seek(0, os.SEEK_END)
        passages = PassageStore(folder)
        for start in range(row_count, count, BLOCK):
            block = passages[start : start + BLOCK]
            encoded = _encode_block(encoder, block, start, progress)
            with disk_errors(folder):
                _write(stream, encoded.tobytes())
                # Before the note, which must not name rows that a power cut can still take.
                os.fsync(stream.fileno())
            _save_progress(folder, build, start + len(block))
    with disk_errors(folder):
        draft.replace(vectors)


def _prepare(corpus: "ReadableCorpus", folder: Path, build: BuildProgress, row_bytes: int) -> int:
    """Write the passages unless an earlier call did; return how many rows of vectors that call left."""
    record = read_progress(folder)
    if record is not None:
        check_same_build(folder, record, build)
    has_passages = record is not None and (folder / PASSAGES).is_file() and (folder / OFFSETS).is_file()
    row_count = record.done if record is not None else 0
    with disk_errors(folder):
        text_bytes = 0 if has_passages else corpus.characters
        _check_space(folder, (build.corpus.count - row_count) * row_bytes + text_bytes)
        if not has_passages:
            write_passages(corpus.read(), folder)
    _save_progress(folder, build, row_count)
    return row_count


def _encode_block(encoder: Encoder, block: Sequence[Passage], start: int, progress: Progress) -> Vectors:
    vectors = encoder.encode_passages(block, lambda count: progress(start + count))
    if vectors.shape != (len(block), encoder.dimension):
        raise ValueError(f"{encoder.label} made vectors {vectors.shape} of {len(block)} passages")
    return np.ascontiguousarray(vectors, dtype=np.float32)


def _write(stream: FileIO, data: bytes) -> None:
    """Write all of `data`; an unbuffered file may take less at a time."""
    remainder = memoryview(data)
    while remainder:
        remainder = remainder[stream.write(remainder) :]


def _save_progress(folder: Path, build: BuildProgress, row_count: int) -> None:
    """Say how many rows lie on the disk, once they do."""
    with disk_errors(folder):
        write_record(folder / PROGRESS, build.model_copy(update={"done": row_count}))


def _finish(folder: Path, build: BuildProgress, kind: IndexKind, encoder: Encoder) -> IndexManifest:
    """Build the structure of an approximate kind, then write the manifest and drop what the building needed."""
    return finish_index(folder, build, kind, encoder, PassageStore(folder), [folder])


def finish_index(
    folder: Path,
    build: BuildProgress,
    kind: IndexKind,
    encoder: Encoder,
    passages: Sequence[Passage],
    shards: Sequence[Path],
    other_files: Sequence[str] = (VECTORS, PASSAGES, OFFSETS),
) -> IndexManifest:
    """Build the structure of an approximate kind over the vectors in `shards`, then write the manifest of `folder`.

    `passages` are those of the vectors; `other_files` are the files that the manifest names beside the structure's.
    Files of a structure of another kind are removed. Raises `IndexBuildError` where the folder cannot be written.
    """
    parameters: dict[str, int] = {}
    recall, structure = None, list[str]()
    with disk_errors(folder):
        if kind != "flat":
            # A manifest of another kind must not stand beside a structure that is being replaced.
            (folder / MANIFEST).unlink(missing_ok=True)
            vectors = StoredVectors([shard / VECTORS for shard in shards])
            parameters = choose_parameters(kind, *vectors.shape)
            structure = structure_files(parameters, len(vectors))
            build_structure(kind, parameters, vectors, folder)
            recall = _measure_recall(
                ApproximateSearch(kind, parameters, vectors, folder, hold=False), passages, encoder
            )
        manifest = write_manifest(folder, build, [*other_files, *structure], kind, parameters, recall)
        for name in set(structure_names(path.name for path in folder.iterdir())) - set(structure):
            (folder / name).unlink()
    return manifest


def _measure_recall(structure: ApproximateSearch, passages: Sequence[Passage], encoder: Encoder) -> Recall:
    """Measure a structure on queries that are titles, or first words, of passages over the corpus."""
    rows = np.unique(np.linspace(0, len(passages) - 1, RECALL_QUERIES).astype(np.int64))
    sample = [passages[int(row)] for row in rows]
    texts = [passage.title or " ".join(passage.content.split()[:_QUERY_WORDS]) for passage in sample]
    queries = encoder.encode_queries(texts)
    depth = min(RECALL_AT, len(passages))
    value = share_found(structure.search(queries, depth)[1], structure.search_all(queries, depth)[1])
    return Recall(at=depth, queries=len(texts), value=round(value, 4))


def check_same_build(folder: Path, record: IndexManifest | BuildProgress, build: BuildProgress) -> None:
    """Raise `IndexBuildError` if a folder was begun with another corpus or encoder."""
    way_out = f"choose another folder, or remove {folder} to start anew"
    if record.corpus.fingerprint != build.corpus.fingerprint:
        raise IndexBuildError(
            f"{folder} was begun for corpus {record.corpus.name} with fingerprint {record.corpus.fingerprint[:16]}, "
            f"not {build.corpus.fingerprint[:16]}; {way_out}"
        )
    if differences := differing_encoder(record, build.encoder):
        raise IndexBuildError(f"{folder} was begun with another encoder: {differences}; {way_out}")


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise IndexBuildError(
            f"the index needs {needed / 1e9:.2f} GB in {folder} and {free / 1e9:.2f} GB are free: free some, or choose "
            "a folder on another disk"
        )


def _header(count: int, dimension: int) -> bytes:
    """Build the header of a `.npy` file of float32 `[count, dimension]`, row after row."""
    stream = BytesIO()
    layout = {"descr": np.dtype(np.float32).str, "fortran_order": False, "shape": (count, dimension)}
    np.lib.format.write_array_header_1_0(stream, layout)
    return stream.getvalue()


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn an `OSError` into an `IndexBuildError` that names the way out."""
    try:
        yield
    except OSError as error:
        raise IndexBuildError(
            f"cannot write {folder}: {error.strerror or error}; cure that and build again: what is encoded is kept"
        ) from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder for one process; the system frees the lock of a process that dies."""
    with disk_errors(folder):
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
