"""What a comparison says of runs that `medexam sequential` has stopped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments import ComparisonScope, ComparisonSection, Finder
from medexam.tables import decimal
from medexam_companions.analysis.stopping import RAN_OUT, RECORD


@dataclass(frozen=True)
class SequentialSettings:
    """Nothing is set: decisions are shown where runs have them."""

    def finders(self) -> list[Finder]:
        """Return what finds them."""
        return [find_decisions]


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
    progress, difference = f"{record['asked']:,} of {record['questions']:,} questions", decimal(record["difference"])
    rule = f"its rule ({difference} points, power {record['power']:g})"
    if record["ended"] is None:
        return f"{progress} by {rule}, which has not ended"
    if record["ended"] == RAN_OUT:
        return f"all {record['questions']:,} questions by {rule}: the paired test on all of them decides"
    low, high = (decimal(100 * bound) for bound in record["looks"][-1]["interval"])
    finding = {
        "better": f"better than {record['baseline']}",
        "worse": f"worse than {record['baseline']}",
        "no difference": f"no difference from {record['baseline']} of {difference} points or more",
    }[record["ended"]]
    return (
        f"stopped after {progress} by {rule}: {finding}; the difference lies in [{low}, {high}] points (confidence "
        "sequence)"
    )
