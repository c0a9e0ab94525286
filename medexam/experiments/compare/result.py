"""What `medexam compare` finds of several runs, as one value: tables, Markdown, `--json` and MLflow are made from it.

Only data and its JSON; `runs.py` finds it.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from medexam.benchmarks.measures import paired_documents
from medexam.benchmarks.paired import PairedRuns
from medexam.distributions import LEVEL
from medexam.experiments.compare.section import ComparisonSection
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics.intervals import RESAMPLES, SEED
from medexam.metrics.paired.results import PairedMeasure
from medexam.metrics.results import Resampling


@dataclass(frozen=True)
class LeftOut:
    """Questions that at least one run was asked for and that are not compared, each counted under its first reason."""

    not_in_every_run: int
    """At least one run was not asked for the question."""
    failed: int
    """Every run was asked for it, and in at least one the asking failed."""
    not_asked_yet: int
    """Every run was asked for it, and at least one has no prediction yet."""
    other_gold: int
    """The runs' data sets do not agree on its right answer."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.not_in_every_run + self.failed + self.not_asked_yet + self.other_gold


@dataclass(frozen=True)
class Comparison:
    """Two runs or more on the same questions."""

    runs: tuple[AnyRun, ...]
    """The baseline first. Their metrics are those of the compared questions and of no others."""
    names: tuple[str, ...]
    """What tells each run from the others."""
    question_counts: tuple[int, ...]
    """Questions that each run was asked for, compared or not."""
    pending: tuple[int, ...]
    """Questions that each run was asked for and has not scored: failed, or not asked yet."""
    questions: tuple[str, ...]
    """Keys of the compared questions, in the baseline's order."""
    exclusions: LeftOut
    notes: tuple[str, ...]
    """What a reader should know of how the runs differ in what they asked; usually empty."""
    corrected: tuple[str, ...]
    """One line for each run whose golds have changed since it was last scored; usually empty."""
    statistics: PairedRuns[Any]
    """The statistics, as the benchmark compares its runs."""
    own: tuple[Mapping[str, PairedMeasure], ...]
    """Of each pair, the user's own metrics that all runs were scored by; empty if there is none."""
    sections: tuple[ComparisonSection, ...]
    """Further parts that were asked for."""

    method: ClassVar[str] = ""
    """How the runs are compared if not as usual; it makes another comparison of them."""

    def document(self) -> dict[str, Any]:
        """Build what `--json` prints, JSON-ready.

        Scores are fractions of 1 but for `points`, and differences are the run's score minus the baseline's. Runs are
        named by their `key`.
        """
        keys, statistics = run_keys(self.runs), self.statistics
        own = [{"own": paired_documents(pair)} for pair in self.own] or [{} for _ in self.names[1:]]
        return {
            "dataset": self.runs[0].record.cell.dataset.name,
            "baseline": keys[0],
            "questions": len(self.questions),
            **statistics.size,
            "dropped": asdict(self.exclusions),
            "notes": list(self.notes),
            "interval": {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED, "clusters": _clusters(statistics)},
            "runs": [
                {**document, **extra, "metrics": run.metrics.model_dump(mode="json")}
                for document, extra, run in zip(run_documents(self), statistics.run_documents(), self.runs, strict=True)
            ],
            "pairs": [
                {"run": key, "name": name, **document, **own_document}
                for key, name, document, own_document in zip(
                    keys[1:], self.names[1:], statistics.pair_documents(), own, strict=True
                )
            ],
            **statistics.more_documents(keys),
            **{section.name: section.document(keys) for section in self.sections},
        }


def _clusters(statistics: PairedRuns[Any]) -> str:
    """Name what the intervals resample; a difference that has none says why."""
    return str(Resampling.WITHIN_EXAMS) if Resampling.WITHIN_EXAMS in statistics.resampled else statistics.clusters


def describe_all(runs: Sized) -> str:
    """Return `both runs`, or `all 3 runs`."""
    return "both runs" if len(runs) == 2 else f"all {len(runs)} runs"


def describe_dropped(exclusions: LeftOut) -> str:
    """Describe how many questions are dropped for which reasons."""
    counts = {
        "not in every run": exclusions.not_in_every_run,
        "failed in at least one": exclusions.failed,
        "not asked yet in at least one": exclusions.not_asked_yet,
        "with another text or right answer in another run's data": exclusions.other_gold,
    }
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
    return f"Dropped: {reasons}" if reasons else "None dropped"


def run_keys(runs: Sequence[AnyRun]) -> tuple[str, ...]:
    """Return what `--json` calls each run: its id, or its folder if two of `runs` have the same id."""
    ids = tuple(run.record.run_id for run in runs)
    return ids if len(set(ids)) == len(ids) else tuple(str(run.folder.path.resolve()) for run in runs)


def run_documents(comparison: Comparison) -> list[dict[str, Any]]:
    """Build what `--json` says of each run beside its scores, JSON-ready."""
    return [
        {
            "key": key,
            "run_id": run.record.run_id,
            "run_dir": str(run.folder.path.resolve()),
            "spec_digest": run.record.spec_digest,
            "name": name,
            "language": run.record.cell.dataset.language,
            "program": run.program,
            "model": run.model_name,
            "answered_by": [answerer._asdict() for answerer in run.answerers],
            "mixed": run.mixed,
            "asked": question_count,
            "owed": pending_count,
        }
        for key, run, name, question_count, pending_count in zip(
            run_keys(comparison.runs),
            comparison.runs,
            comparison.names,
            comparison.question_counts,
            comparison.pending,
            strict=True,
        )
    ]
