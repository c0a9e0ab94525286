"""The part of a comparison on contamination: what is consistent with questions in a model's training data.

None of its tests shows what a model was trained on, and its words say so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments.compare.contamination.altered import AlteredRuns, find_altered
from medexam.experiments.compare.contamination.cutoff import Cutoff, find_around
from medexam.experiments.compare.contamination.overlap import Overlap, find_overlap
from medexam.experiments.compare.contamination.sides import TwoSides
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.tables import Captioned

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


def find_contamination(
    cutoff: Cutoff | None, overlap: str | None, words: int | None, compared: ComparisonScope
) -> Contamination | None:
    """Find what is asked for, and altered questions without being asked to; None if there is nothing.

    `overlap` is a corpus, and `words` how many words in a row are shared; None is 13.
    """
    around = None if cutoff is None else find_around(cutoff, compared)
    corpus_overlap = None if overlap is None else find_overlap(overlap, words, compared)
    altered = find_altered(compared)
    return Contamination(around, altered, corpus_overlap) if around or altered or corpus_overlap else None
