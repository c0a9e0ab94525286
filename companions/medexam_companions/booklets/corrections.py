"""Corrections made by hand: what the parser cannot know, by question, each with its reason.

They are applied after parsing and before judging, and the report lists them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from medexam.datasets import parse_whole_number
from medexam.errors import DatasetError, SpecError
from medexam.files import UnreadableError, decode
from medexam.frozen_model import FrozenModel
from medexam.specs import describe_faults, parse_yaml


class Correction(FrozenModel):
    """What replaces what was parsed; a field that is not given changes nothing."""

    reason: str = Field(min_length=1)
    """Why, for the report."""
    stem: str | None = Field(default=None, min_length=1)
    options: dict[int, str | None] | None = None
    """By option number; None removes one, a new number adds one."""
    answer: int | None = None
    """Another official answer than the key's."""
    image: Path | None = None
    """A picture file, relative to the corrections file."""
    leave_out: bool = False
    """Whether to leave the question out of the data set."""

    @property
    def changes(self) -> tuple[str, ...]:
        """Names of the fields that it changes."""
        return tuple(name for name, value in self if name != "reason" and value is not None and value is not False)


def read_corrections(path: Path, prefix: str, exam: str) -> dict[int, Correction]:
    """Read the corrections at `path` by question number.

    A key is a number, or the question's key: `prefix` or `exam` before `/NUMBER`. Raises `DatasetError` naming the
    entry that is wrong.
    """
    try:
        entries = parse_yaml(decode(path.read_bytes()), str(path), numbered=True) or {}
    except (OSError, UnreadableError) as error:
        raise DatasetError(f"{path}: cannot be read ({error}): correct --corrections") from None
    except SpecError as error:
        raise DatasetError(f"{error}: correct it") from None
    if not isinstance(entries, Mapping):
        raise DatasetError(f"{path}: needs an entry for each question: `{prefix}/17: {{stem: ..., reason: ...}}`")
    correction_by_number: dict[int, Correction] = {}
    for key, value in entries.items():
        number = _parse_key(key, prefix, exam)
        if number is None:
            raise DatasetError(f"{path}: {key!r} is no question of {exam}: its keys look like {prefix}/17, or 17 alone")
        if number in correction_by_number:
            raise DatasetError(f"{path}: corrects question {number} twice: make it one entry")
        correction_by_number[number] = _parse(path, key, value)
    return correction_by_number


def _parse_key(key: object, prefix: str, exam: str) -> int | None:
    if isinstance(key, int) and not isinstance(key, bool):
        return key
    if not isinstance(key, str):
        return None
    before, _, number = key.rpartition("/")
    return parse_whole_number(number) if before in (prefix, f"{prefix}/{exam}", exam, "") else None


def _parse(path: Path, key: object, value: Any) -> Correction:
    try:
        correction = Correction.model_validate(value)
    except ValidationError as error:
        raise DatasetError(
            f"{path}: {key}: {describe_faults(error)}: an entry has a reason and one or more of stem, options, answer, "
            "image, leave_out"
        ) from None
    if not correction.changes:
        raise DatasetError(f"{path}: {key}: changes nothing: give stem, options, answer, image or leave_out")
    return correction
