"""What a reader makes of a benchmark whose questions are answered in words, before anything is selected."""

from dataclasses import dataclass

from medexam.tasks import Task, TaskGold


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task with what is expected of it."""

    task: Task
    gold: TaskGold
    split: str | None
    """Where its authors put it; None where the source does not tell."""


@dataclass(frozen=True, slots=True)
class TaskReading:
    """Everything that a source holds."""

    source: str
    """The path that was read."""
    version: str
    rows: tuple[TaskRow, ...]
    references: tuple[str, ...] = ()
    """The right answers of the whole source, over which a scorer weighs words; empty where none is weighed so."""
    notes: tuple[str, ...] = ()
    """What a reader of the results should know of the data."""
