"""`medexam compare --strengths`: many runs among each other, with intervals that hold for all of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.tables import NONE, Table
from medexam_companions.analysis.bradley_terry import compare_strengths, takes_clusters


@dataclass(frozen=True)
class Strengths:
    """The strength of each run, in the order of the runs."""

    strengths: Sequence[dict[str, Any]]
    independent: str
    """What is taken as independent."""
    name = "strengths"

    @property
    def order(self) -> list[int]:
        """Positions of the runs, the strongest first."""
        return sorted(range(len(self.strengths)), key=lambda position: -self.strengths[position]["strength"])

    def tables(self, names: Sequence[str]) -> list[Table]:
        """Build a row for each run, the strongest first."""
        place = {position: number for number, position in enumerate(self.order, start=1)}
        rows = tuple(
            (
                *(str(place[position]), names[position], str(run["wins"]), str(run["losses"])),
                f"{run['strength']:+.2f} [{run['interval'][0]:.2f}, {run['interval'][1]:.2f}]",
                ", ".join(map(str, sorted(place[other] for other in run["not_separable"]))) or NONE,
            )
            for position, run in ((at, self.strengths[at]) for at in self.order)
        )
        caption = (
            "Wins: questions that the run has right and another has not, over all others; losses the other way. "
            "Strength: Bradley and Terry's, the natural logarithm of the odds of a win against the mean run, with 95 % "
            f"intervals for all runs at once, taking {self.independent} as independent. Not separable: numbers of the "
            "runs whose difference in strength may be 0, at 95 % for all pairs at once."
        )
        headers = ("No.", "Run", "Wins", "Losses", "Strength", "Not separable from")
        return [Table("Strengths of all runs", headers, rows, text_columns=2, caption=caption)]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write how many pairs are separable, and which runs may be the strongest."""
        runs = len(self.strengths)
        pairs = runs * (runs - 1) // 2
        separable = pairs - sum(len(run["not_separable"]) for run in self.strengths) // 2
        first = self.order[0]
        others = [names[position] for position in self.order if position in self.strengths[first]["not_separable"]]
        summary = f"{separable} of {pairs} pairs of runs are separable in strength, at 95 % for all pairs at once."
        if not others:
            return [summary, f"{names[first]} is stronger than every other run."]
        return [summary, f"Not separable from the strongest, {names[first]}: {', '.join(others)}."]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Map each run to its strength, interval, and the runs that it is not separable from."""
        return {
            "independent": self.independent,
            "runs": {
                key: run | {"not_separable": [keys[position] for position in run["not_separable"]]}
                for key, run in zip(keys, self.strengths, strict=True)
            },
        }


def find_strengths(compared: ComparisonScope) -> ComparisonSection:
    """Compare the strengths of three runs or more; raises `SpecError` if there are fewer."""
    if len(compared.folders) < 3:
        raise SpecError("--strengths sets three runs or more in an order: name another run, or leave it out")
    independent = compared.statistics.clusters if takes_clusters(compared.scored.clusters) else "questions within exams"
    part = Strengths(compare_strengths(compared.scored.first, compared.scored.clusters), independent)
    names, keys = compared.names, compared.run_keys
    return ComparisonSection(part.name, part.sentences(names), part.document(keys), part.tables(names))
