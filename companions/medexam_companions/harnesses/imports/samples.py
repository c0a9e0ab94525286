"""What is read of another harness's results: its samples in one form, and how single values are read from its files.

Readers of formats fill these in; matching and answers know nothing of formats.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medexam.errors import DatasetError
from medexam.files import UnreadableError, open_unpacked, parse_json, read_json

Record = Mapping[str, Any]
Choice = int | str
"""A place among the options as the file lists them, from 0; or the answer as it is written: number, letter or text."""
MISSHAPEN = (KeyError, TypeError, AttributeError, ValueError, ArithmeticError)
"""What reading a field raises that has another type than the format says, or a number that is none."""
_MOST = 1 << 50
"""No count and no time of a file is as large."""
_VERDICTS = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "right", "correct", "c"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "wrong", "incorrect", "i", "n"), False),
}
"""A score as files write it -> whether it says right; Inspect's `n` is no answer."""


class ResultsError(DatasetError):
    """A file of results cannot be read or matched."""


@dataclass(frozen=True, slots=True)
class HarnessSample:
    """One question as another harness asked it, and what came out."""

    ids: tuple[str, ...] = ()
    """What may be the key of our question."""
    stem: str | None = None
    """The question's text, or the whole prompt; None if the file does not hold it."""
    options: tuple[str, ...] = ()
    """Their texts in the order of the file; empty if it does not hold them."""
    group: str | None = None
    """Questions in words: the group that the question is of; None if the file does not say."""
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

    harness: str
    """A word for the names of runs, such as `lm_eval`."""
    task: str
    measure: str
    samples: Sequence[HarnessSample]
    title: str
    """The harness as people call it."""
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
    """How the harness asked and read, as far as its files tell; the names are those of `report --protocol`."""
    companions: tuple[Path, ...] = ()
    """Further files that the answers stand in; usually empty."""


def find(record: Any, paths: str) -> Any:
    """Find the first value that is there at a path of names and places, such as `choices.0.message`; else None.

    A space stands between paths.
    """
    for path in paths.split():
        value = record
        for name in path.split("."):
            if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


def read_verdict(value: object) -> bool | None:
    """Read whether a score says right; None if it says something else, such as a share."""
    return _VERDICTS.get(str(value).strip().lower())


def read_choice(value: Any) -> Choice | None:
    """Read one answer as it is written; a whole number is a place. None for several and for none."""
    if isinstance(value, list | tuple):
        value = value[0] if len(value) == 1 else None
    return value if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() else None


def read_number(value: object, most: float = _MOST) -> float | None:
    """Read a count, a time or a share that a file states; None for what is none, such as an infinite number."""
    return float(value) if isinstance(value, int | float) and 0 <= value <= most else None


def read_count(value: object) -> int | None:
    """Read a whole number that a file states, as `read_number` does."""
    number = read_number(value)
    return int(number) if number is not None and number == int(number) else None


def text_or_none(value: object) -> str | None:
    """Read a text that a file states; None for what is none."""
    return value if isinstance(value, str) else None


def read_lines(path: Path) -> Iterator[Record]:
    """Yield each line of a JSON Lines file as an object; raises `ResultsError` with the line that is none."""
    number = 0
    try:
        with open_unpacked(path) as lines:
            for number, line in enumerate(lines, start=1):
                record = parse_json(line) if line.strip() else {}
                if not isinstance(record, Mapping):
                    raise ResultsError(f"{path}, line {number}: is no JSON object")
                if record:
                    yield record
    except (OSError, UnreadableError) as error:
        raise ResultsError(f"{path}, line {number}: {error}; was the file copied whole?") from None


def read_beside(path: Path, name: str) -> Any:
    """Read the JSON file `name` in the folder of `path`; empty if there is none to read."""
    try:
        return read_json(path.with_name(name))
    except (OSError, UnreadableError):
        return {}
