"""The part of a comparison on contamination: what is consistent with questions in a model's training data.

None of its tests shows what a model was trained on, and its words say so. A run that does better before a cutoff than
after, beyond what the baseline does, may have seen the earlier exams: the baseline is the control for exams that are
harder than others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medexam.errors import DatasetError, SpecError
from medexam.experiments import ComparisonScope, ComparisonSection, Finder
from medexam.tables import Captioned
from medexam_companions.analysis.altered import AlteredRuns, find_altered
from medexam_companions.analysis.overlap import Overlap, find_overlap
from medexam_companions.analysis.sides import SideWords, TwoSides, contrast_sides

CAVEAT = "None of this shows what a model was trained on: exams differ in difficulty, and stated cutoffs may be wrong."
_DATE = re.compile(r"(?P<year>(?:19|20)\d\d)(?:-(?P<month>0[1-9]|1[0-2]))?")


@dataclass(frozen=True)
class Contamination(ComparisonSection):
    """What was looked for, each None if it was not."""

    name = "contamination"
    around: TwoSides | None
    """Before and after the cutoff."""
    altered: AlteredRuns | None
    overlap: Overlap | None

    @property
    def _parts(self) -> list[TwoSides | AlteredRuns]:
        parts = (self.around, self.altered, None if self.overlap is None else self.overlap.sides)
        return [part for part in parts if part is not None]

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build the tables of each part."""
        return [table for part in self._parts for table in part.tables(names)]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write the sentences of each part, and what they do not show."""
        remarks = [sentence for part in self._parts for sentence in part.sentences(names)]
        return [*remarks, *([self.overlap.sentence] if self.overlap is not None else []), CAVEAT]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build `cutoff`, `altered` and `overlap`, each null if it was not looked for."""
        parts = {"cutoff": self.around, "altered": self.altered, "overlap": self.overlap}
        return {name: part and part.document(keys) for name, part in parts.items()}


def make_finder(cutoff: str | None, overlap: str | None, words: int | None) -> Finder:
    """Make the finder of what is asked for, and of altered questions without being asked to.

    `cutoff` is where training data end, a year or `2023-06`. `overlap` is a corpus that is searched for the questions'
    words, `words` in a row, by default 13. Raises `SpecError` for values that cannot be.
    """
    if words is not None and overlap is None:
        raise SpecError("--overlap-words needs --overlap CORPUS: give both, or leave it out")
    date = None if cutoff is None else _DATE.fullmatch(cutoff)
    if cutoff is not None and date is None:
        raise SpecError(f"--cutoff {cutoff}: give the year, or year and month, such as 2023 or 2023-06")

    def find(compared: ComparisonScope) -> Contamination | None:
        around = None if date is None else _find_around(date, compared)
        corpus_overlap = None if overlap is None else find_overlap(overlap, words, compared)
        altered = find_altered(compared)
        return Contamination(around, altered, corpus_overlap) if around or altered or corpus_overlap else None

    return find


def _find_around(date: re.Match[str], compared: ComparisonScope) -> TwoSides:
    """Contrast the runs before and after the cutoff; raises `DatasetError` if no exam, or every one, lies before it.

    Exams of the cutoff's own year lie before it only if it is that year's end.
    """
    year, at_end = int(date["year"]), date["month"] in (None, "12")
    shown = str(year) if at_end else date[0]
    items = {item.key: item for item in compared.items}
    years = [compared.benchmark.place(items[key]).get("year") for key in compared.scores[0]]
    before = np.array([each is not None and (each < year or (each == year and at_end)) for each in years])
    after = np.array([each is not None and each > year for each in years])
    if not before.any() or not after.any():
        raise DatasetError(
            f"--cutoff {shown}: {int(before.sum()):,} of the compared questions are of years before it and "
            f"{int(after.sum()):,} of years after it: give a date between the exams' years, or leave it out"
        )
    words = SideWords(
        title=f"before and after the cutoff {shown}",
        headers=("Before", "After"),
        phrases=(f"up to {shown}", f"after {shown}"),
        neither="their exam may lie on either side",
        cause="earlier exams in its training data",
    )
    return contrast_sides(words, before, after, compared)
