"""The part of a comparison on contamination: what is consistent with questions in a model's training data.

None of its tests shows what a model was trained on, and its words say so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection, Finder
from medexam.tables import Captioned
from medexam_companions.contamination.altered import AlteredRuns, find_altered
from medexam_companions.contamination.cutoff import Cutoff, find_around
from medexam_companions.contamination.overlap import Overlap, find_overlap
from medexam_companions.contamination.sides import TwoSides

CAVEAT = "None of this shows what a model was trained on: exams differ in difficulty, and stated cutoffs may be wrong."


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
    date = None if cutoff is None else Cutoff.parse(cutoff)

    def find(compared: ComparisonScope) -> Contamination | None:
        around = None if date is None else find_around(date, compared)
        corpus_overlap = None if overlap is None else find_overlap(overlap, words, compared)
        altered = find_altered(compared)
        return Contamination(around, altered, corpus_overlap) if around or altered or corpus_overlap else None

    return find
