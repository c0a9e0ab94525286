"""What an index folder says of itself: its corpus, its encoder, how it is searched and how large its files are.

The folder is a data set that `datasets.load_from_disk` opens: passages and vectors in one or more Arrow files, the
shards. The manifest is written last, so a folder without one is unfinished, whatever else lies in it. The number of
shards is no part of an index's digest. This module reads and compares; it neither encodes nor searches.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError

from medexam.errors import IndexStaleError
from medexam.files import write_whole
from medexam.fingerprints import hash_files
from medexam.frozen_model import FrozenModel
from medexam.inputs import read_json
from medexam.retrievers.corpora import ReadableCorpus
from medexam.retrievers.encoders import Encoder, Precision

IndexKind = Literal["flat", "hnsw", "ivfpq"]

MANIFEST = "manifest.json"
STRUCTURE = "structure.faiss"
PROGRESS = "progress.json"
SCHEMA = 3


class CorpusRecord(FrozenModel):
    """The corpus that was encoded."""

    name: str
    fingerprint: str
    """SHA-256 over its passages."""
    source: str
    licence: str | None
    count: int
    """Its passages, and so the vectors."""
    skipped: int = 0
    """Rows of the source that were no passages and were left out."""
    chunk_tokens: int | None = None
    """The most tokens that a passage's content has; None: passages are as they were read."""
    chunk_overlap: int = 0
    """Tokens that neighbouring chunks share."""

    @classmethod
    def of(cls, corpus: ReadableCorpus) -> Self:
        """Return what is recorded of a corpus."""
        return cls(**{name: getattr(corpus, name) for name in cls.model_fields})


_NAMES = {"label", "source"}


class EncoderRecord(FrozenModel):
    """The encoder that made the vectors; all but `label` and `source`, which are no identity, is compared."""

    label: str
    revision: str | None
    """Its content, as `Encoder.revision`."""
    precision: Precision
    dimension: int
    query_tokens: int
    passage_tokens: int
    source: str
    """What `build_encoder` takes to make it again on the machine that built the index."""

    @classmethod
    def of(cls, encoder: Encoder) -> "EncoderRecord":
        """Return the record of an encoder."""
        return cls(**{name: getattr(encoder, name) for name in cls.model_fields})

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that a vector depends on."""
        return self.model_dump(exclude=_NAMES)

    def differences(self, other: "EncoderRecord") -> str:
        """Return what is not the same, as `revision a, not b; ...`; empty if nothing is."""
        mine, others = self.identity, other.identity
        return "; ".join(f"{name} {mine[name]}, not {others[name]}" for name in mine if mine[name] != others[name])


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


class IndexManifest(FrozenModel, populate_by_name=True):
    """What `manifest.json` holds."""

    schema_version: int = Field(SCHEMA, alias="schema")
    corpus: CorpusRecord
    encoder: EncoderRecord
    metric: Literal["inner_product"] = "inner_product"
    kind: IndexKind
    parameters: dict[str, int]
    """The settings of an approximate kind; empty for `flat`."""
    recall: Recall | None
    """None for `flat`, which finds everything."""
    shards: tuple[Shard, ...]
    bytes: dict[str, int]
    """Size of each file that a search reads."""
    sha256: dict[str, str]
    """Hash of each file that a search reads."""

    @property
    def digest(self) -> str:
        """Identity of everything that a ranking depends on; the same wherever the index and its corpus lie.

        Vectors follow from corpus and encoder; a structure, whose building is not repeatable, counts by its content.
        """
        identity = {
            "corpus": self.corpus.fingerprint,
            "encoder": self.encoder.identity,
            "kind": self.kind,
            "parameters": self.parameters,
            "files": {name: self.sha256[name] for name in structure_names(self.sha256)},
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


class BuildProgress(FrozenModel):
    """What `progress.json` holds while an index is being built."""

    corpus: CorpusRecord
    encoder: EncoderRecord
    shards: tuple[Shard, ...]


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
    for name, size in manifest.bytes.items():
        file_size = (folder / name).stat().st_size if (folder / name).is_file() else None
        if file_size != size:
            has = "is missing" if file_size is None else f"has {file_size:,} bytes instead of {size:,}"
            raise IndexStaleError(f"{folder}: {name} {has}; {rebuild(folder)}")
    _check_files(manifest, folder)
    return manifest


def structure_names(names: Iterable[str]) -> list[str]:
    """Return those of the files of an index folder that hold its structure, or a segment of it."""
    stem, _, suffix = STRUCTURE.partition(".")
    return sorted(name for name in names if name.startswith(stem) and name.endswith(suffix))


def hash_index(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Hash each of these files of an index folder by SHA-256; raises `OSError`."""
    names = list(names)
    return dict(zip(names, hash_files([folder / name for name in names], folder), strict=True))


def write_manifest(
    folder: Path,
    build: BuildProgress,
    files: Iterable[str],
    kind: IndexKind,
    parameters: dict[str, int] | None,
    recall: Recall | None,
) -> IndexManifest:
    """Finish an index: write the manifest over these files and drop what the building noted. Raises `OSError`."""
    sizes = {name: (folder / name).stat().st_size for name in files}
    manifest = IndexManifest(
        corpus=build.corpus,
        encoder=build.encoder,
        kind=kind,
        parameters=parameters or {},
        recall=recall,
        shards=build.shards,
        bytes=sizes,
        sha256=hash_index(folder, sizes),
    )
    write_record(folder / MANIFEST, manifest)
    (folder / PROGRESS).unlink(missing_ok=True)
    return manifest


def _check_files(manifest: IndexManifest, folder: Path) -> None:
    """Raise `IndexStaleError` if a file was changed."""
    try:
        hashes = hash_index(folder, manifest.bytes)
    except OSError as error:
        raise IndexStaleError(f"{error.filename}: it cannot be read: {error.strerror}; {rebuild(folder)}") from error
    for name, sha256 in hashes.items():
        if sha256 != (manifest_hash := manifest.sha256.get(name, "unknown")):
            raise IndexStaleError(
                f"{folder}: {name} was changed after the index was built (its SHA-256 is {sha256[:12]}, not "
                f"{manifest_hash[:12]}); restore it, or {rebuild(folder)}"
            )


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


def read_progress(folder: Path) -> BuildProgress | None:
    """Read what an unfinished build was begun with; None if none was begun, or its record is damaged."""
    try:
        return BuildProgress.model_validate_json((folder / PROGRESS).read_bytes())
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
