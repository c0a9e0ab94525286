"""`medexam compare --cutoff`: exams before and after the date at which a model's training data end.

A run that does better before than after, beyond what the baseline does, may have seen the earlier exams: the baseline
is the control for exams that are harder than others.
"""

import re
from dataclasses import dataclass

import numpy as np

from medexam.errors import DatasetError, SpecError
from medexam.experiments import ComparisonScope
from medexam_companions.contamination.sides import SideWords, TwoSides, contrast_sides

_DATE = re.compile(r"((?:19|20)\d\d)(?:-(0[1-9]|1[0-2]))?")


@dataclass(frozen=True)
class Cutoff:
    """Where the training data of a model end, as it is stated."""

    year: int
    month: int = 12
    """From 1; exams of the year itself lie before the cutoff only if it is 12."""

    @classmethod
    def parse(cls, text: str) -> "Cutoff":
        """Parse `2023` or `2023-06`; raises `SpecError` for anything else."""
        match = _DATE.fullmatch(text)
        if match is None:
            raise SpecError(f"--cutoff {text}: give the year, or year and month, such as 2023 or 2023-06")
        return cls(int(match[1]), int(match[2] or 12))

    @property
    def shown(self) -> str:
        """`2023`, or `2023-06`."""
        return str(self.year) if self.month == 12 else f"{self.year}-{self.month:02}"

    def is_before(self, year: int | None) -> bool | None:
        """Return whether an exam of `year` lies before the cutoff; None if that cannot be told."""
        if year is None or (year == self.year and self.month < 12):
            return None
        return year <= self.year


def find_around(cutoff: Cutoff, compared: ComparisonScope) -> TwoSides:
    """Contrast the runs before and after the cutoff; raises `DatasetError` if no exam, or every one, lies before it."""
    items = {item.key: item for item in compared.items}
    sides = [cutoff.is_before(compared.benchmark.place(items[key]).get("year")) for key in compared.scores[0]]
    before, after = (np.array([side is is_before for side in sides]) for is_before in (True, False))
    if not before.any() or not after.any():
        raise DatasetError(
            f"--cutoff {cutoff.shown}: {int(before.sum()):,} of the compared questions are of years before it and "
            f"{int(after.sum()):,} of years after it: give a date between the exams' years, or leave it out"
        )
    words = SideWords(
        title=f"before and after the cutoff {cutoff.shown}",
        headers=("Before", "After"),
        phrases=(f"up to {cutoff.shown}", f"after {cutoff.shown}"),
        neither="their exam may lie on either side",
        cause="earlier exams in its training data",
    )
    return contrast_sides(words, before, after, compared)
