"""`medexam compare --cutoff`: accuracy on exams before and after the date at which a model's training data end.

A run that does better before than after, beyond what the baseline does, may have seen the earlier exams: the baseline
is the control for exams that are harder than others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medexam.benchmarks.paired import FEW_CLUSTERS, signed
from medexam.benchmarks.resampling import describe_resampling, why_none
from medexam.errors import DatasetError, SpecError
from medexam.experiments.compare.section import Compared
from medexam.formatting import NONE, percent
from medexam.metrics.paired.contrasts import difference_of_means
from medexam.metrics.paired.results import Difference
from medexam.tables import Captioned, Table

_DATE = re.compile(r"((?:19|20)\d\d)(?:-(0[1-9]|1[0-2]))?")


@dataclass(frozen=True)
class Cutoff:
    """Where the training data of a model end, as it is stated."""

    year: int
    month: int = 12
    """From 1; exams of the year itself lie before the cutoff only if it is 12."""

    @classmethod
    def parse(cls, text: str) -> "Cutoff":
        """`2023` or `2023-06`; raises `SpecError` for anything else."""
        found = _DATE.fullmatch(text)
        if found is None:
            raise SpecError(f"--cutoff {text}: give the year, or year and month, such as 2023 or 2023-06")
        return cls(int(found[1]), int(found[2] or 12))

    @property
    def shown(self) -> str:
        """`2023`, or `2023-06`."""
        return str(self.year) if self.month == 12 else f"{self.year}-{self.month:02}"

    def is_before(self, year: int | None) -> bool | None:
        """Whether an exam of `year` lies before it; None if that cannot be told."""
        if year is None or (year == self.year and self.month < 12):
            return None
        return year <= self.year


@dataclass(frozen=True)
class Side:
    """The questions before or after the cutoff."""

    n: int
    exams: int
    accuracies: tuple[float, ...]
    """Of each run, the control first; fractions of 1."""


@dataclass(frozen=True)
class AroundCutoff:
    """The runs before and after the cutoff."""

    cutoff: Cutoff
    before: Side
    after: Side
    not_told: int
    """Questions whose exam may lie on either side."""
    differences: tuple[Difference, ...]
    """Of each run, the control first: its accuracy before minus its accuracy after."""
    against: tuple[Difference, ...]
    """Of each run but the control: its difference minus the control's."""
    clusters: str
    """What the intervals resample if there are enough."""

    def table(self, names: Sequence[str]) -> Captioned:
        """A row a run."""
        rows = tuple(
            (
                name,
                percent(self.before.accuracies[at]),
                percent(self.after.accuracies[at]),
                signed(self.differences[at], 100),
                signed(self.against[at - 1], 100) if at else NONE,
            )
            for at, name in enumerate(names)
        )
        ways = {each.resampled for each in (*self.differences, *self.against)}
        how = describe_resampling(ways, "bootstrap", self.clusters)
        caption = (
            f"Accuracy, percent, of {self.before.n:,} questions of {self.before.exams} {self._exams} up to the cutoff "
            f"and {self.after.n:,} of {self.after.exams} after it. Difference: before minus after, percentage points, "
            f"with 95 % intervals ({how}; each side apart). Against the control: minus the difference of {names[0]}, "
            "question by question."
        )
        if self.not_told:
            caption += f" {self.not_told:,} questions are left out, for their exam may lie on either side."
        headers = ("Run", "Before", "After", "Difference", "Against control")
        return Table(f"Contamination: before and after the cutoff {self.cutoff.shown}", headers, rows), caption

    def sentences(self, names: Sequence[str]) -> list[str]:
        """What may be said of each run but the control, and of how few exams there are."""
        said = [self._sentence(name, names[0], found) for name, found in zip(names[1:], self.against, strict=True)]
        few = min(self.before.exams, self.after.exams)
        if few < FEW_CLUSTERS:
            said.append(f"One side of the cutoff has {few} {self._exams} only: its intervals are rough.")
        return said

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """What `--json` says; fractions of 1."""
        return {
            "cutoff": self.cutoff.shown,
            "not_told": self.not_told,
            **{
                name: {
                    "n": side.n,
                    "clusters": side.exams,
                    "accuracy": dict(zip(keys, side.accuracies, strict=True)),
                }
                for name, side in (("before", self.before), ("after", self.after))
            },
            "difference": {key: each.model_dump(mode="json") for key, each in zip(keys, self.differences, strict=True)},
            "against_control": {
                key: each.model_dump(mode="json") for key, each in zip(keys[1:], self.against, strict=True)
            },
        }

    @property
    def _exams(self) -> str:
        return "exams" if self.clusters == "exams" else "questions or exams"

    def _sentence(self, name: str, control: str, found: Difference) -> str:
        points = f"{signed(found, 100)} percentage points"
        if found.interval is None:
            return (
                f"{name} against {control} around {self.cutoff.shown}: {points}, {why_none(found.resampled, 'exams')}."
            )
        if not found.excludes_zero:
            return (
                f"{name} is not shown to do better up to {self.cutoff.shown} than after it, beyond what {control} "
                f"does: {points}."
            )
        if found.value < 0:
            return f"{name} does better after {self.cutoff.shown}, beyond what {control} does: {points}."
        return (
            f"{name} does better up to {self.cutoff.shown} than after it, beyond what {control} does: {points}. This "
            "is consistent with earlier exams in its training data."
        )


def find_around(cutoff: Cutoff, compared: Compared) -> AroundCutoff:
    """The runs before and after the cutoff; raises `DatasetError` if no exam, or every one, lies before it."""
    items = {item.key: item for item in compared.items}
    sides = [cutoff.is_before(compared.benchmark.place(items[key]).get("year")) for key in compared.scores[0]]
    before, after = (np.array([side is wanted for side in sides]) for wanted in (True, False))
    if not before.any() or not after.any():
        raise DatasetError(
            f"--cutoff {cutoff.shown}: {int(before.sum()):,} of the compared questions are of years before it and "
            f"{int(after.sum()):,} of years after it: give a date between the exams' years, or leave it out"
        )
    values, clusters = compared.matrix, np.array(compared.clusters)

    def contrast(of: Any) -> Difference:
        return difference_of_means(of[before], [*clusters[before]], of[after], [*clusters[after]])

    def side(where: Any) -> Side:
        means = tuple(float(run[where].mean()) for run in values)
        return Side(int(where.sum()), len(set(clusters[where])), means)

    return AroundCutoff(
        cutoff=cutoff,
        before=side(before),
        after=side(after),
        not_told=sum(each is None for each in sides),
        differences=tuple(map(contrast, values)),
        against=tuple(contrast(run - values[0]) for run in values[1:]),
        clusters=compared.found.clusters,
    )
