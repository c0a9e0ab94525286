"""What the driver of a distributed run and its workers tell each other; plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.experiments.plan.passage_lookup import Retrieval
from medexam.model_identity import Answerer
from medexam.specs import CellSpec


@dataclass(frozen=True)
class Assignment:
    """A cell, as a worker needs it."""

    cell: CellSpec
    spec_digest: str
    answerer: Answerer | None
    folder: Path
    """The run's, on storage that all share."""
    words: Mapping[str, Any]
    """What the driver found in the files that the program takes its words from; the worker must find the same."""


@dataclass(frozen=True)
class LookedUp:
    """What prompts show beside a question, looked up by the driver for all questions of a cell."""

    retrieval: Retrieval | None
    """Knows the passages; None where the program sees none."""
    vectors: dict[str, Any]
    """Of the texts that demonstrations are chosen by; empty where all questions are shown the same."""


@dataclass(frozen=True)
class WorkerReport:
    """What happened since the report before."""

    starts: int
    lines: tuple[bytes, ...]
    """The lines of answers and failures, all on the disk."""
    waiting: int
    """Questions that the worker was given and has not begun."""
    concurrency: int
    """How many it would have in flight now."""
    over: bool
    """Whether it ended with this cell before its time: too many failed in a row, it was stopped, or it broke."""
    fault: Exception | None = None
    """What broke it."""
