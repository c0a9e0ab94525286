"""What an index folder says of itself: its corpus, its encoder, how it is searched and how large its files are.

The manifest is written last, so a folder without one is unfinished, whatever else lies in it. This module reads and
compares; it neither encodes nor searches.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medexam.errors import IndexStaleError
from medexam.retrievers.corpora import Corpus
from medexam.retrievers.encoders import Encoder, Precision

IndexKind = Literal["flat", "hnsw", "ivfpq"]

MANIFEST = "manifest.json"
VECTORS = "vectors.npy"
PASSAGES = "passages.jsonl"
OFFSETS = "offsets.npy"
STRUCTURE = "structure.faiss"
PROGRESS = "progress.json"
SCHEMA = 1


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CorpusRecord(_Record):
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
    def of(cls, corpus: Corpus) -> Self:
        """What is recorded of a corpus."""
        return cls(
            name=corpus.name,
            fingerprint=corpus.fingerprint,
            source=corpus.source,
            licence=corpus.licence,
            count=len(corpus.passages),
            skipped=corpus.skipped,
            chunk_tokens=corpus.chunk_tokens,
            chunk_overlap=corpus.chunk_overlap,
        )


class EncoderRecord(_Record):
    """The encoder that made the vectors; all but `source` is compared when the index is opened."""

    label: str
    revision: str | None
    precision: Precision
    dimension: int
    query_tokens: int
    passage_tokens: int
    source: str
    """What `build_encoder` takes to make it again on the machine that built the index."""

    @classmethod
    def of(cls, encoder: Encoder) -> "EncoderRecord":
        """The record of an encoder."""
        return cls(**{name: getattr(encoder, name) for name in cls.model_fields})

    def differences(self, other: "EncoderRecord") -> str:
        """What is not the same, as `revision a, not b; ...`; empty where nothing is."""
        mine, its = self.model_dump(exclude={"source"}), other.model_dump(exclude={"source"})
        return "; ".join(f"{name} {mine[name]}, not {its[name]}" for name in mine if mine[name] != its[name])


class Recall(_Record):
    """How much of the exhaustive ranking an approximate one finds, measured when it was built."""

    at: int
    """The depth of both rankings."""
    queries: int
    """How many queries were compared: titles, or first words, of passages spread over the corpus."""
    value: float
    """Mean share of the exhaustive ranking's passages that the approximate one holds."""


class IndexManifest(_Record):
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
    structure_sha256: str | None
    """Of the approximate structure, whose building is not repeatable; None for `flat`."""
    bytes: dict[str, int]
    """Size of each file that a search reads."""

    @property
    def digest(self) -> str:
        """Identity of everything that a ranking depends on; the same wherever the index and its corpus lie."""
        said = {
            "corpus": self.corpus.fingerprint,
            "encoder": self.encoder.model_dump(exclude={"source"}),
            "kind": self.kind,
            "parameters": self.parameters,
            "structure": self.structure_sha256,
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class BuildProgress(_Record):
    """What `progress.json` holds while an index is being built."""

    corpus: CorpusRecord
    encoder: EncoderRecord
    done: int
    """Rows of the vectors that are safely on disk, from the first."""


def read_manifest(folder: Path) -> IndexManifest:
    """The manifest of a finished index whose files have the sizes it names.

    Raises `IndexStaleError` where there is none, where it or a file is damaged, or where it is of another version.
    """
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(data, dict) and data.get("schema") != SCHEMA:
            raise IndexStaleError(
                f"{folder}: its schema is {data.get('schema')}, and this version reads {SCHEMA}; {rebuild(folder)}"
            )
        manifest = IndexManifest.model_validate(data)
    except FileNotFoundError:
        raise IndexStaleError(_why_no_manifest(folder)) from None
    except (OSError, ValueError, ValidationError) as error:
        raise IndexStaleError(f"{path} cannot be read ({type(error).__name__}); {rebuild(folder)}") from error
    for name, size in manifest.bytes.items():
        found = (folder / name).stat().st_size if (folder / name).is_file() else None
        if found != size:
            has = "is missing" if found is None else f"has {found:,} bytes instead of {size:,}"
            raise IndexStaleError(f"{folder}: {name} {has}; {rebuild(folder)}")
    return manifest


def check_manifest(
    manifest: IndexManifest, folder: Path, corpus_fingerprint: str | None, encoder: EncoderRecord | None
) -> None:
    """Raise `IndexStaleError` where the index is of another corpus or encoder; None compares nothing."""
    if corpus_fingerprint is not None and corpus_fingerprint != manifest.corpus.fingerprint:
        raise IndexStaleError(
            f"{folder}: it indexes corpus {manifest.corpus.name} with fingerprint {manifest.corpus.fingerprint[:16]}, "
            f"not {corpus_fingerprint[:16]}; {rebuild(folder)}"
        )
    if encoder is not None and (differences := manifest.encoder.differences(encoder)):
        raise IndexStaleError(f"{folder}: its vectors come from another encoder: {differences}; {rebuild(folder)}")


def read_progress(folder: Path) -> BuildProgress | None:
    """How far an unfinished build came; None where none was begun, or its record is damaged."""
    try:
        return BuildProgress.model_validate_json((folder / PROGRESS).read_bytes())
    except (OSError, ValidationError):
        return None


def write_record(path: Path, record: IndexManifest | BuildProgress) -> None:
    """Write `manifest.json` or `progress.json` whole or not at all; raises `OSError`."""
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("w", encoding="utf-8") as stream:
        stream.write(record.model_dump_json(indent=2, by_alias=True) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)


def rebuild(folder: Path) -> str:
    """The ways out of an index that cannot be used."""
    return f"name another index, or remove {folder} and build it again with `medexam index build`"


def _why_no_manifest(folder: Path) -> str:
    progress = read_progress(folder)
    if progress is not None:
        return (
            f"{folder}: the index is unfinished, {progress.done:,} of {progress.corpus.count:,} passages are "
            "encoded; go on with the same `medexam index build`"
        )
    return f"{folder} holds no index; make one with `medexam index build`"
