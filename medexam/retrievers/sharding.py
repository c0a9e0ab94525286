"""Building an index in shards: folders that are ordinary flat indexes of consecutive parts of a corpus.

Shards are built one by one, in any order and on any machine: this module prepares, builds and joins them, and knows
nothing of machines.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice, pairwise
from pathlib import Path

from medexam.errors import IndexBuildError
from medexam.files import write_whole
from medexam.retrievers.corpora import Corpus, ReadableCorpus
from medexam.retrievers.encoders import Encoder, Progress
from medexam.retrievers.index_building import (
    BLOCK,
    build_index,
    check_kind,
    check_same_build,
    disk_errors,
    finish_index,
)
from medexam.retrievers.index_manifest import (
    MANIFEST,
    OFFSETS,
    PASSAGES,
    PROGRESS,
    SHARDS,
    VECTORS,
    BuildProgress,
    EncoderRecord,
    IndexKind,
    IndexManifest,
    Shard,
    read_manifest,
    read_progress,
    read_shard,
    read_shards,
    write_record,
)
from medexam.retrievers.passage_store import JoinedPassages, PassageStore, write_passages


def prepare_shards(corpus: ReadableCorpus, encoder: Encoder, folder: Path, number: int) -> list[Shard]:
    """Lay out at most `number` shards with their passages, or find those that were laid out before.

    Shards hold whole blocks of `BLOCK` passages, so that each passage is encoded in the company in which the flat
    build encodes it. Raises `IndexBuildError` if the folder was begun for another corpus or encoder, holds an index
    that is not in shards, or cannot be written.
    """
    build = BuildProgress.of(corpus, encoder)
    record = _before(folder)
    if record is not None:
        check_same_build(folder, record, build)
        if (folder / SHARDS).is_file():
            return read_shards(folder)
        if isinstance(record, IndexManifest):
            raise IndexBuildError(f"{folder} holds an index that is whole: it needs no shards, or remove it first")
    blocks = math.ceil(corpus.count / BLOCK)
    number = min(number, blocks)
    # A passage is encoded with the same neighbours as in the flat build only if no block is split.
    bounds = [min(corpus.count, blocks * place // number * BLOCK) for place in range(number + 1)]
    shards = []
    passages = corpus.read()
    with disk_errors(folder):
        for place, (start, end) in enumerate(pairwise(bounds)):
            name = f"shard-{place:05d}-of-{number:05d}"
            (folder / name).mkdir(parents=True, exist_ok=True)
            fingerprint = write_passages(islice(passages, end - start), folder / name)
            part = Corpus(corpus.name, PassageStore(folder / name), fingerprint, corpus.source, corpus.licence)
            write_record(folder / name / PROGRESS, BuildProgress.of(part, encoder))
            shards.append(Shard(name, start, end - start, fingerprint))
        # The end of a streamed corpus is where it is seen that it is still the one that was surveyed.
        if next(passages, None) is not None:
            raise IndexBuildError(f"corpus {corpus.name} has grown while it was read: start again")
        # Last, because a later call takes the shards that this file names as laid out.
        write_whole(folder / SHARDS, json.dumps([asdict(shard) for shard in shards], indent=2) + "\n")
        write_record(folder / PROGRESS, build)
    return shards


def build_shard(folder: Path, shard: Shard, encoder: Encoder) -> IndexManifest:
    """Encode a shard that was prepared, or go on with it; one that is finished is kept.

    Raises `IndexBuildError` if the encoder is not the one that it was prepared for.
    """
    place = folder / shard.folder
    record = _before(place)
    if record is None:
        raise IndexBuildError(f"{place} is not prepared: build the index again in {folder}")
    corpus_record = record.corpus
    corpus = Corpus(
        corpus_record.name, PassageStore(place), shard.fingerprint, corpus_record.source, corpus_record.licence
    )
    return build_index(corpus, encoder, place)


def join_shards(corpus: ReadableCorpus, encoder: Encoder, folder: Path, kind: IndexKind = "flat") -> IndexManifest:
    """Write the manifest of the whole, and the structure of an approximate kind, once every shard is finished.

    Raises `IndexStaleError` if one is not, and `IndexBuildError` where the folder cannot be written.
    """
    files = [SHARDS]
    shards = read_shards(folder)
    for shard in shards:
        read_shard(folder, shard, EncoderRecord.of(encoder))
        files += [f"{shard.folder}/{name}" for name in (MANIFEST, VECTORS, PASSAGES, OFFSETS)]
    places = [folder / shard.folder for shard in shards]
    passages = JoinedPassages([PassageStore(place) for place in places])
    return finish_index(folder, BuildProgress.of(corpus, encoder), kind, encoder, passages, places, files)


def build_or_join(
    corpus: ReadableCorpus, encoder: Encoder, folder: Path, kind: IndexKind = "flat", progress: Progress | None = None
) -> IndexManifest:
    """Build an index, but one that is finished in shards keeps them, and only its structure is made for `kind`."""
    record = _before(folder)
    if not isinstance(record, IndexManifest) or SHARDS not in record.bytes:
        return build_index(corpus, encoder, folder, kind, progress)
    check_same_build(folder, record, BuildProgress.of(corpus, encoder))
    check_kind(kind, corpus, encoder)
    manifest = record if record.kind == kind else join_shards(corpus, encoder, folder, kind)
    if progress is not None:
        progress(corpus.count)
    return manifest


def count_encoded(folder: Path, shards: Sequence[Shard]) -> int:
    """Count the passages of all shards that have a vector on the disk."""
    count = 0
    for shard in shards:
        if (folder / shard.folder / MANIFEST).is_file():
            count += shard.count
        elif (progress := read_progress(folder / shard.folder)) is not None:
            count += progress.done
    return count


def note_progress(folder: Path, shards: Sequence[Shard]) -> None:
    """Let the folder say how far its shards are, for those who look at it."""
    progress = read_progress(folder)
    if progress is not None:
        write_record(folder / PROGRESS, progress.model_copy(update={"done": count_encoded(folder, shards)}))


def _before(folder: Path) -> IndexManifest | BuildProgress | None:
    """Read what a folder says of itself; None if nothing was begun."""
    return read_manifest(folder) if (folder / MANIFEST).is_file() else read_progress(folder)
