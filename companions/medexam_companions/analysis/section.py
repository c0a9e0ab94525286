"""What a comparison says of runs that `medexam sequential` has stopped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.tables import decimal
from medexam_companions.analysis.stopping import RAN_OUT, RECORD


@dataclass(frozen=True)
class Decisions(ComparisonSection):
    """How sequential comparisons of the runs ended."""

    name = "sequential"
    records: Mapping[int, Mapping[str, Any]]
    """Position of a run -> its record."""

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write a sentence for each."""
        return [
            *(f"{names[place]}: {describe(record)}." for place, record in self.records.items()),
            "p-values and intervals above assume a fixed number of questions: rely on these decisions.",
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Map each run to its record."""
        return {keys[place]: record for place, record in self.records.items()}


def find_decisions(scope: ComparisonScope) -> Decisions | None:
    """Read how comparisons of these runs ended, unless further questions were asked since."""
    records = {}
    for place, (folder, data) in enumerate(zip(scope.folders, scope.sets, strict=True)):
        record = folder.read_json(RECORD) if (folder.path / RECORD).exists() else {}
        if record.get("ended") not in (None, RAN_OUT) and record["asked"] == len(data.questions):
            records[place] = record
    return Decisions(records) if records else None


def describe(record: Mapping[str, Any]) -> str:
    """Describe how a comparison ended, or how far it is."""
    low, high = (decimal(100 * bound) for bound in record["looks"][-1]["interval"])
    return (
        f"stopped after {record['asked']:,} of {record['questions']:,} questions by its rule "
        f"({decimal(record['difference'])} points, power {record['power']:g}) against {record['baseline']}: "
        f"{record['ended'] or 'undecided'}; the difference lies in [{low}, {high}] points (confidence sequence)"
    )
