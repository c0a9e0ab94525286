"""`medexam compare --subset N`: N questions that stand for all, and what they err by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.metrics import SEED
from medexam.tables import Captioned, Table, percent
from medexam_companions.item_response.fitting import fit_items
from medexam_companions.item_response.item_quality import FEW_RUNS
from medexam_companions.item_response.subset_choice import SubsetError, choose_subset, measure_subsets

FEWEST_RUNS = 4


@dataclass(frozen=True)
class Subset(ComparisonSection):
    """The chosen questions, and how far subsets of that size err."""

    runs: int
    """Those that the questions were chosen by."""
    total: int
    """Questions to choose from."""
    questions: tuple[str, ...]
    """Keys."""
    chosen_error: SubsetError
    drawn_error: SubsetError
    """The same of subsets that are drawn by lot."""
    name = "subset"

    def tables(self, names: Sequence[str]) -> list[Captioned]:  # noqa: ARG002
        """Set chosen subsets beside drawn ones."""
        kinds = (("chosen", self.chosen_error), ("drawn by lot", self.drawn_error))
        rows = tuple((kind, *map(percent, error)) for kind, error in kinds)
        caption = (
            "Percent. Each run was measured on questions that the other runs chose. Error: how far the accuracy on the "
            "subset is from that on all questions, on average, and at most in nine of ten cases. Same verdict: pairs "
            "with the same result of McNemar's test as on all questions; false: other pairs called better or worse."
        )
        title = f"Subsets of {len(self.questions)} of {self.total:,} questions"
        return [(Table(title, ("Subset", "Error", "Nine of ten", "Same verdict", "False"), rows), caption)]

    def sentences(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Write what the subset is worth."""
        weak = f" The fit is weak: {self.runs} runs, and it needs {FEW_RUNS}." if self.runs < FEW_RUNS else ""
        return [
            f"The accuracy on {len(self.questions)} chosen questions is off by {percent(self.chosen_error.mean)} "
            f"percentage points on average, on random ones by {percent(self.drawn_error.mean)}; --json lists the "
            f"chosen questions.{weak}"
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        """Build the chosen keys and both errors."""
        return {
            "questions": list(self.questions),
            "errors": {"chosen": self.chosen_error._asdict(), "drawn": self.drawn_error._asdict()},
        }


def find_subset(n: int, compared: ComparisonScope) -> Subset:
    """Choose `n` questions; raises `SpecError` if there are too few runs or questions, or runs in words."""
    if not compared.benchmark.right_or_wrong:
        raise SpecError("--subset needs answers that are right or wrong; these runs answer in words: leave it out")
    right, keys = compared.matrix, list(compared.scores[0])
    if len(right) < FEWEST_RUNS:
        raise SpecError(f"--subset needs {FEWEST_RUNS} runs or more: name others, or leave it out")
    if not 2 <= n < len(keys):
        way_out = f"give a number from 2 to {len(keys) - 1}" if len(keys) > 2 else "run their specs on more"
        raise SpecError(f"--subset {n}: questions that all runs scored: {len(keys)}; {way_out}")
    positions = choose_subset(fit_items(right), n, np.random.default_rng(SEED))
    chosen_error, drawn_error = measure_subsets(right, n)
    questions = tuple(keys[position] for position in positions)
    return Subset(len(right), len(keys), questions, chosen_error, drawn_error)
