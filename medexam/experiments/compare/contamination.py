"""The part of a comparison on contamination: what is consistent with questions in a model's training data.

None of its tests shows what a model was trained on, and its words say so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments.compare.altered import AlteredRuns, find_altered
from medexam.experiments.compare.cutoff import AroundCutoff, Cutoff, find_around
from medexam.experiments.compare.section import Compared, Section
from medexam.tables import Captioned

CAVEAT = "None of this shows what a model was trained on: exams differ in difficulty, and stated cutoffs may be wrong."


@dataclass(frozen=True)
class Contamination(Section):
    """What was looked for, each None if it was not."""

    name = "contamination"
    around: AroundCutoff | None
    altered: AlteredRuns | None

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """One for each."""
        return [part.table(names) for part in (self.around, self.altered) if part is not None]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Those of each, and what they do not show."""
        said = [part.sentences(names) for part in (self.around, self.altered) if part is not None]
        return [*(sentence for sentences in said for sentence in sentences), CAVEAT]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """`cutoff` and `altered`, each null if it was not looked for."""
        return {
            "cutoff": self.around and self.around.document(keys),
            "altered": self.altered and self.altered.document(keys),
        }


def find_contamination(cutoff: Cutoff | None, compared: Compared) -> Contamination | None:
    """What can be found: altered questions without being asked to; None if there is nothing."""
    around = None if cutoff is None else find_around(cutoff, compared)
    altered = find_altered(compared)
    return None if around is None and altered is None else Contamination(around, altered)
