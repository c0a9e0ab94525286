"""Makes an index folder: encodes a corpus shard by shard and block by block, and finishes with the manifest.

A corpus is laid out as the passages of one or more shards, which are then encoded in any order, on any machine: this
module knows nothing of machines. Blocks are appended to a draft; after each, a note says how much is safely on disk, so
the next call continues from there. A file that no manifest, progress or note names does not count.
"""

import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from medexam.errors import IndexBuildError, IndexStaleError
from medexam.retrievers.corpora import Corpus
from medexam.retrievers.encoders import Encoder, EncoderRecord, Progress
from medexam.retrievers.index import (
    MANIFEST,
    PROGRESS,
    STRUCTURE,
    Build,
    IndexManifest,
    Recall,
    Shard,
    ShardProgress,
    count_encoded,
    hash_index,
    note_path,
    read_manifest,
    read_progress,
    read_shard_progress,
    why_unfinished,
    write_record,
)
from medexam.retrievers.vectors import (
    END,
    INFO,
    STATE,
    VECTOR,
    StoredVectors,
    build_structure,
    load_datasets,
    make_batch,
    make_structure,
    open_structure,
    read_passages,
    row_schema,
    search_exhaustively,
    search_structure,
    to_passages,
    write_description,
    write_passages,
)

BLOCK = 256
"""Passages encoded between two writes: what an interruption can cost, a few seconds without an accelerator."""
RECALL_AT = 10
RECALL_QUERIES = 200
_QUERY_WORDS = 16


def build_index(
    corpus: Corpus,
    encoder: Encoder,
    folder: Path,
    factory: str | None = None,
    parameters: str = "",
    progress: Progress | None = None,
) -> IndexManifest:
    """Encode a corpus into an index folder, or finish one that was begun; a finished one of the same kind is kept.

    Passages and vectors are read and written in blocks: a corpus of any size takes 8 bytes a passage and the memory of
    the encoder.

    Search is exact, or by the approximate index that `factory` says in the form of `faiss.index_factory`, such as
    `IVF4096,PQ64`, under `parameters` of `faiss.ParameterSpace`, such as `nprobe=64`. FAISS holds that index in memory
    while it is built. The vectors are kept as well, so that another one can be made without encoding again.

    `progress` is called with the number of passages that have a vector, those of earlier calls included. An exception
    that it raises, or Ctrl-C, stops the build and costs at most `BLOCK` passages. Raises `IndexBuildError` if the
    folder holds the index of another corpus or encoder, another process is building it, the disk is full, or FAISS
    refuses `factory` or `parameters`.
    """
    check_factory(factory, parameters, encoder)
    report = progress or (lambda _: None)
    with _locked(folder, ".lock"):
        shards = prepare_shards(corpus, encoder, folder, 1)
        report(count_encoded(folder, shards))
        for shard in shards:
            _encode_shard(folder, shard, encoder, report)
        return join_shards(encoder, folder, factory, parameters)


def check_factory(factory: str | None, parameters: str, encoder: Encoder) -> None:
    """Raise now what making an approximate index would raise after hours of encoding."""
    if factory is not None:
        make_structure(factory, parameters, encoder.record.dimension)


def prepare_shards(corpus: Corpus, encoder: Encoder, folder: Path, number: int) -> Sequence[Shard]:
    """Lay out at most `number` shards with their passages, or find those that were laid out before.

    Shards hold whole blocks of `BLOCK` passages, so that each passage is encoded with the same neighbours however many
    shards there are. Raises `IndexBuildError` if the folder was begun for another corpus or encoder or cannot be
    written.
    """
    record = read_manifest(folder) if (folder / MANIFEST).is_file() else read_progress(folder)
    if record is not None:
        _check_same_build(folder, record, corpus.fingerprint, encoder.record)
        return record.shards
    blocks = math.ceil(corpus.count / BLOCK)
    number = min(number, blocks)
    bounds = [min(corpus.count, blocks * place // number * BLOCK) for place in range(number + 1)]
    shards = tuple(
        Shard(file=f"data-{place:05d}-of-{number:05d}.arrow", count=end - start)
        for place, (start, end) in enumerate(pairwise(bounds))
    )
    passages = corpus.read()
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Passages lie there twice until the index is finished.
        needed = corpus.count * encoder.record.dimension * 4 + 2 * corpus.characters
        if (free := shutil.disk_usage(folder).free) < needed:
            raise IndexBuildError(
                f"the index needs {needed / 1e9:.2f} GB in {folder} and {free / 1e9:.2f} GB are free: free some, or "
                "choose a folder on another disk"
            )
        for stray in (*folder.glob("data-*.arrow"), *folder.glob(".data-*.arrow.*")):
            stray.unlink()
        for shard in shards:
            write_passages(islice(passages, shard.count), _passages_path(folder, shard), BLOCK)
        # At its end a corpus sees whether it is still the one that was loaded.
        if next(passages, None) is not None:
            raise IndexBuildError(f"corpus {corpus.name} has grown while it was read: start again")
        # Last, because a later call takes the shards that this file names as laid out.
        write_record(folder / PROGRESS, Build(corpus=corpus, encoder=encoder.record, shards=shards))
    return shards


def build_shard(folder: Path, shard: Shard, encoder: Encoder) -> None:
    """Encode a shard that was prepared, or go on with it; one that is finished is kept.

    Raises `IndexBuildError` if it is not prepared, or was for another encoder.
    """
    record = read_progress(folder)
    if record is None:
        if (folder / MANIFEST).is_file():
            return
        raise IndexBuildError(f"{folder} is not prepared: build the index again")
    _check_same_build(folder, record, record.corpus.fingerprint, encoder.record)
    with _locked(folder, f".{shard.file}.lock"):
        _encode_shard(folder, shard, encoder, lambda _: None)


def join_shards(encoder: Encoder, folder: Path, factory: str | None = None, parameters: str = "") -> IndexManifest:
    """Make one data set of the shards, with an approximate index where `factory` says one, and write the manifest.

    Raises `IndexStaleError` if a shard is unfinished, and `IndexBuildError` where the folder cannot be written or the
    approximate index not be made.
    """
    build: Build | None
    if (folder / MANIFEST).is_file():
        build = manifest = read_manifest(folder)
        if (manifest.factory, manifest.parameters) == (factory, parameters):
            return manifest
    else:
        build = read_progress(folder)
    files = [shard.file for shard in build.shards] if build is not None else []
    if build is None or not all((folder / name).is_file() for name in files):
        raise IndexStaleError(why_unfinished(folder))
    build = Build(corpus=build.corpus, encoder=build.encoder, shards=build.shards)
    recall = None
    with disk_errors(folder):
        # The manifest of another kind must not stand beside an approximate index that is being replaced.
        write_record(folder / PROGRESS, build)
        (folder / MANIFEST).unlink(missing_ok=True)
        (folder / STRUCTURE).unlink(missing_ok=True)
        write_description(folder, files, build.encoder.dimension, build.corpus.fingerprint[:16])
        if factory is not None:
            structure = make_structure(factory, parameters, build.encoder.dimension)
            build_structure(structure, [folder / name for name in files], build.corpus.count, folder / STRUCTURE)
            # Its memory is free again before the file is opened.
            del structure
            recall = _measure_recall(encoder, folder)
        names = [*files, STATE, INFO, *([STRUCTURE] if factory is not None else [])]
        manifest = IndexManifest(
            corpus=build.corpus,
            encoder=build.encoder,
            shards=build.shards,
            factory=factory,
            parameters=parameters,
            recall=recall,
            sha256=hash_index(folder, names),
        )
        write_record(folder / MANIFEST, manifest)
        (folder / PROGRESS).unlink(missing_ok=True)
        for shard in build.shards:
            note_path(folder, shard).unlink(missing_ok=True)
            _passages_path(folder, shard).unlink(missing_ok=True)
    return manifest


def _measure_recall(encoder: Encoder, folder: Path) -> Recall:
    """Compare the approximate index of a folder with exact search, for passages' titles, or first words, as queries."""
    rows: Any = load_datasets().load_from_disk(str(folder))
    vectors = StoredVectors(rows)
    places = np.unique(np.linspace(0, len(vectors) - 1, RECALL_QUERIES).astype(np.int64))
    passages = to_passages(rows.remove_columns(VECTOR)[places])
    texts = [passage.title or " ".join(passage.content.split()[:_QUERY_WORDS]) for passage in passages]
    queries, depth = encoder.encode_queries(texts), min(RECALL_AT, len(vectors))
    structure = open_structure(folder / STRUCTURE, vectors)
    best = search_exhaustively(vectors, queries, depth)[1].tolist()
    other = search_structure(structure, vectors, queries, depth)[1].tolist()
    shares = [len(set(mine) & set(its)) / depth for mine, its in zip(best, other, strict=True)]
    return Recall(at=depth, queries=len(queries), value=round(sum(shares) / len(shares), 4))


def _passages_path(folder: Path, shard: Shard) -> Path:
    """Return where a shard's passages lie until they have vectors."""
    return folder / f".{shard.file}.passages"


def _encode_shard(folder: Path, shard: Shard, encoder: Encoder, progress: Progress) -> None:
    """Write a shard's file, from the row at which an earlier call stopped."""
    target, draft = folder / shard.file, folder / f".{shard.file}.draft"
    if target.is_file():
        return
    record = read_progress(folder)
    finished_rows = count_encoded(folder, [other for other in (record.shards if record else ()) if other != shard])
    schema = row_schema(encoder.record.dimension)
    note = read_shard_progress(folder, shard)

    def report(count: int) -> None:
        progress(finished_rows + note.rows + count)

    with disk_errors(folder):
        # Unbuffered: what a full disk refused must not be written again when the file is closed.
        stream = draft.open("r+b" if draft.is_file() else "w+b", buffering=0)
    with stream:
        with disk_errors(folder):
            # A draft that is shorter than was noted is another one: everything is encoded anew.
            if not note.rows or stream.seek(0, os.SEEK_END) < note.bytes:
                stream.seek(0)
                _write(stream, schema.serialize())
                note = ShardProgress(bytes=stream.tell())
            # Rows behind the last noted block may be torn.
            stream.truncate(note.bytes)
            stream.seek(0, os.SEEK_END)
        # Every noted block but the last of all is whole.
        for block in islice(read_passages(_passages_path(folder, shard)), math.ceil(note.rows / BLOCK), None):
            vectors = encoder.encode_passages(block, report)
            if vectors.shape != (len(block), encoder.record.dimension):
                raise ValueError(f"{encoder.record.label} returned {vectors.shape} vectors for {len(block)} passages")
            with disk_errors(folder):
                _write(stream, make_batch(block, np.ascontiguousarray(vectors, dtype=np.float32), schema).serialize())
                # Before the note, which must not name rows that a power cut can still take.
                os.fsync(stream.fileno())
                note = ShardProgress(rows=note.rows + len(block), bytes=stream.tell())
                write_record(note_path(folder, shard), note)
        with disk_errors(folder):
            _write(stream, END)
            os.fsync(stream.fileno())
            draft.replace(target)


def _write(stream: FileIO, data: object) -> None:
    """Write all of `data`; an unbuffered file may take less at a time."""
    remainder = memoryview(data)  # type: ignore[arg-type]
    while remainder:
        remainder = remainder[stream.write(remainder) :]


def _check_same_build(folder: Path, record: Build, fingerprint: str, encoder: EncoderRecord) -> None:
    """Raise `IndexBuildError` if a folder was begun with another corpus or encoder."""
    way_out = f"choose another folder, or remove {folder} to start over"
    if record.corpus.fingerprint != fingerprint:
        raise IndexBuildError(
            f"{folder} was begun for corpus {record.corpus.name} with fingerprint {record.corpus.fingerprint[:16]}, "
            f"not {fingerprint[:16]}; {way_out}"
        )
    if differences := record.encoder.differences(encoder):
        raise IndexBuildError(f"{folder} was begun with another encoder: {differences}; {way_out}")


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn an `OSError` into an `IndexBuildError` that names the way out."""
    try:
        yield
    except OSError as error:
        raise IndexBuildError(
            f"cannot write {folder}: {error.strerror or error}; correct that and build again: the encoded passages "
            "are kept"
        ) from error


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    """Hold the folder, or a shard, for one process; the system frees the lock of a process that dies."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # The file stays after the build: if it were removed, two processes could lock two files of one name.
        lock = FileLock(folder / name)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise IndexBuildError(f"{folder} is being built by another process: wait for it") from None
    try:
        yield
    finally:
        lock.release()
