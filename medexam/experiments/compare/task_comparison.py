"""What `medexam compare` finds of runs whose questions are answered in words, as one value.

Only data and its JSON; `task_comparing.py` finds it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from medexam.experiments.compare.result import Compared, Comparison, run_documents, run_keys
from medexam.experiments.store.stored_run import TaskRun
from medexam.metrics import TaskMetrics
from medexam.metrics.intervals import LEVEL, RESAMPLES, SEED
from medexam.metrics.paired.measure_results import PairedMeasure


@dataclass(frozen=True)
class TaskPair:
    """One run beside the baseline."""

    run: TaskRun
    name: str
    """What tells the run from the others."""
    measures: Mapping[str, PairedMeasure]
    """Measure -> both runs' means over the same questions; the first is the one that runs are known by."""
    by_group: Mapping[str, PairedMeasure]
    """Format or variant -> the first measure over it, in the order of the data."""


@dataclass(frozen=True)
class TaskComparison(Compared[TaskMetrics]):
    """Two runs or more on the same questions, answered in words."""

    whole: int
    """Whole questions among the compared ones, of which some may stand in several variants."""
    pairs: tuple[TaskPair, ...]
    """Every other run against the baseline, in their order."""

    @property
    def first(self) -> str:
        """The measure that the runs are known by."""
        return next(iter(self.pairs[0].measures))


AnyComparison = Comparison | TaskComparison


def task_comparison_document(comparison: TaskComparison) -> dict[str, Any]:
    """What `--json` prints, JSON-ready: scores are fractions of 1, differences the run's minus the baseline's.

    Runs are named by their `key`.
    """
    keys = run_keys(comparison.runs)
    return {
        "dataset": comparison.runs[0].record.cell.dataset.name,
        "baseline": keys[0],
        "questions": len(comparison.questions),
        "whole_questions": comparison.whole,
        "dropped": asdict(comparison.dropped),
        "notes": list(comparison.notes),
        "interval": {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED, "clusters": "whole questions"},
        "runs": [
            {**document, "metrics": run.metrics.model_dump(mode="json")}
            for document, run in zip(run_documents(comparison), comparison.runs, strict=True)
        ],
        "pairs": [
            {
                "run": key,
                "name": pair.name,
                "verdict": pair.measures[comparison.first].verdict,
                "measure": comparison.first,
                "measures": _documents(pair.measures),
                "by_group": _documents(pair.by_group),
            }
            for pair, key in zip(comparison.pairs, keys[1:], strict=True)
        ],
    }


def _documents(measures: Mapping[str, PairedMeasure]) -> dict[str, Any]:
    """With the field names of an exam's pairs."""
    documents = {name: measure.model_dump(mode="json") for name, measure in measures.items()}
    return {
        name: {("p_holm" if field == "p_adjusted" else field): value for field, value in document.items()}
        for name, document in documents.items()
    }
