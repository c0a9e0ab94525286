"""What is read of another harness's results: its samples in one form, whatever file they stood in.

A reader fills these in from its format; matching and answers know nothing of formats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from medexam.errors import DatasetError
from medexam.specs import Harness

Choice = int | str
"""A place among the options as the file lists them, from 0; or the answer as it is written: number, letter or text."""


MISSHAPEN = (KeyError, TypeError, AttributeError, ValueError, ArithmeticError)
"""What reading a field raises that has another type than the format says, or a number that is none."""
_MOST = 1 << 50
"""No count and no time of a file is as large."""


class ResultsError(DatasetError):
    """A file of results cannot be read or matched."""


def read_count(value: object) -> int | None:
    """Read a count that a file states; None for what is none, such as an infinite number."""
    return int(value) if isinstance(value, int | float) and 0 <= value < _MOST and value == int(value) else None


def read_seconds(value: object) -> float | None:
    """Read a time that a file states, s; None for what is none."""
    return float(value) if isinstance(value, int | float) and 0 <= value < _MOST else None


def text_or_none(value: object) -> str | None:
    """Read a text that a file states; None for what is none."""
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class HarnessSample:
    """One question as another harness asked it, and what came out."""

    ids: tuple[str, ...] = ()
    """What may be the key of our question."""
    stem: str | None = None
    """None if the file does not hold the question's text."""
    options: tuple[str, ...] = ()
    """In the order in which they were shown; empty if the file does not hold them."""
    group: str | None = None
    """Questions in words: the format or variant; None if the file does not say."""
    given_answer: str | None = None
    """Questions in words: the answer that is shown with the question; None if the file holds none."""
    choice: Choice | None = None
    """None if nothing was chosen, or if the file does not say what."""
    target: Choice | None = None
    """The right answer by the file; None if it does not say. Of questions in words, all that the file expects."""
    right: bool | None = None
    """The harness's own verdict; None if it gives none."""
    scores: tuple[float, ...] | None = None
    """One score an option in the order of `options`; None if options were not scored."""
    reply: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float | None = None
    failed: bool = False
    """Whether the harness could not ask or score it."""


@dataclass(frozen=True, slots=True)
class Results:
    """The samples of one task under one measure: they become one run."""

    harness: Harness
    task: str
    measure: str
    samples: Sequence[HarnessSample]
    version: str | None = None
    """The harness's own; None if the file does not say."""
    model: str | None = None
    """As the harness names it; None if the file does not say."""
    score_unit: str | None = None
    """The unit of all samples' `scores`; None if there are none."""
    score_norm: str | None = None
    stated: float | None = None
    """The score that the harness states for these samples, 0 to 1; None if it states none."""
    notes: tuple[str, ...] = ()
    """What a reader of the results should know of how the file was read; usually empty."""
    protocol: Mapping[str, str] = field(default_factory=dict)
    """How the harness asked and read, as far as its files tell; see `medexam.experiments.store.protocol`."""
    companions: tuple[Path, ...] = ()
    """Further files that the answers stand in; usually empty."""
