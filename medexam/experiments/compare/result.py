"""What `medexam compare` finds of several runs, as one value: tables, Markdown, `--json` and MLflow are made from it.

Only data and its JSON; `comparing.py` finds it.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, dataclass
from typing import Any, Generic

from medexam.experiments.store.stored_run import AnyMetrics, AnyRun, ExamRun, M_co, StoredRun
from medexam.metrics import Metrics
from medexam.metrics.intervals import LEVEL, RESAMPLES, SEED
from medexam.metrics.paired.results import Complementarity, Paired, Verdict


@dataclass(frozen=True)
class Dropped:
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
class Group:
    """The questions of one discipline or year, beside the baseline."""

    paired: Paired
    p_adjusted: float
    """McNemar's p after Holm, over all groups of the breakdown and all pairs."""


@dataclass(frozen=True)
class Pair:
    """One run beside the baseline."""

    run: ExamRun
    name: str
    """What tells the run from the others."""
    paired: Paired
    p_adjusted: float
    """McNemar's p after Holm, over all pairs; the same as before where there is one pair."""
    verdict: Verdict
    by_discipline: Mapping[str, Group]
    by_year: Mapping[str, Group]


@dataclass(frozen=True)
class Flipped:
    """A question that some runs have right and others have not."""

    question: str
    """Its key."""
    gold: int
    answers: tuple[int | None, ...]
    """The printed number that each run chose, in their order; None where it chose none."""


@dataclass(frozen=True)
class Compared(Generic[M_co]):
    """Two runs or more on the same questions, of whatever kind."""

    runs: tuple[StoredRun[M_co], ...]
    """The baseline first. Their metrics are those of the compared questions and of no others."""
    names: tuple[str, ...]
    """What tells each run from the others."""
    asked: tuple[int, ...]
    """Questions that each run was asked for, compared or not."""
    pending: tuple[int, ...]
    """Questions that each run was asked for and has not scored: failed, or not asked yet."""
    questions: tuple[str, ...]
    """Keys of the compared questions, in the baseline's order."""
    dropped: Dropped
    notes: tuple[str, ...]
    """What a reader should know of how the runs differ in what they asked; mostly nothing."""
    corrected: tuple[str, ...]
    """One line for each run whose golds have changed since it was last scored; mostly nothing."""


@dataclass(frozen=True)
class Comparison(Compared[Metrics]):
    """Two runs or more on the same exams."""

    pairs: tuple[Pair, ...]
    """Every other run against the baseline, in their order."""
    together: Complementarity
    flipped: tuple[Flipped, ...]

    @property
    def exams(self) -> int:
        """Exams that the compared questions come from."""
        return len(self.runs[0].metrics.by_exam)


def describe_all(runs: Sized) -> str:
    """`both runs`, or `all 3 runs`."""
    return "both runs" if len(runs) == 2 else f"all {len(runs)} runs"


def describe_dropped(dropped: Dropped) -> str:
    """How many questions are dropped for which reasons, in words."""
    counts = {
        "not in every run": dropped.not_in_every_run,
        "failed in at least one": dropped.failed,
        "not asked yet in at least one": dropped.not_asked_yet,
        "with another right answer in another run's data": dropped.other_gold,
    }
    found = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
    return f"Dropped: {found}" if found else "None dropped"


def run_keys(runs: Sequence[AnyRun]) -> tuple[str, ...]:
    """What `--json` calls each run: its id, or its folder if two of `runs` have the same id."""
    ids = tuple(run.record.run_id for run in runs)
    return ids if len(set(ids)) == len(ids) else tuple(str(run.folder.path.resolve()) for run in runs)


def run_documents(comparison: Compared[AnyMetrics]) -> list[dict[str, Any]]:
    """What `--json` says of each run beside its scores, JSON-ready."""
    return [
        {
            "key": key,
            "run_id": run.record.run_id,
            "run_dir": str(run.folder.path.resolve()),
            "spec_digest": run.record.spec_digest,
            "name": name,
            "language": run.record.cell.dataset.language,
            "program": run.program,
            "model": run.model,
            "answered_by": [one._asdict() for one in run.answerers],
            "mixed": run.mixed,
            "asked": asked,
            "owed": pending,
        }
        for key, run, name, asked, pending in zip(
            run_keys(comparison.runs),
            comparison.runs,
            comparison.names,
            comparison.asked,
            comparison.pending,
            strict=True,
        )
    ]


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """What `--json` prints, JSON-ready.

    Scores are fractions of 1 but for `points`, and differences are the run's score minus the baseline's. Runs are
    named by their `key`.
    """
    keys = run_keys(comparison.runs)
    return {
        "dataset": comparison.runs[0].record.cell.dataset.name,
        "baseline": keys[0],
        "questions": len(comparison.questions),
        "exams": comparison.exams,
        "dropped": asdict(comparison.dropped),
        "notes": list(comparison.notes),
        "interval": {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED, "clusters": "exams"},
        "runs": [
            {**document, "alone_right": alone, "metrics": run.metrics.model_dump(mode="json")}
            for document, alone, run in zip(
                run_documents(comparison), comparison.together.alone_right, comparison.runs, strict=True
            )
        ],
        "pairs": [_pair_document(pair, key) for pair, key in zip(comparison.pairs, keys[1:], strict=True)],
        "together": comparison.together.model_dump(mode="json", exclude={"alone_right"}),
        "flipped": [
            {"question": each.question, "gold": each.gold, "answers": dict(zip(keys, each.answers, strict=True))}
            for each in comparison.flipped
        ],
    }


def _pair_document(pair: Pair, key: str) -> dict[str, Any]:
    groups = {"by_discipline": pair.by_discipline, "by_year": pair.by_year}
    return {
        "run": key,
        "name": pair.name,
        "verdict": pair.verdict,
        **_paired_document(pair.paired, pair.p_adjusted),
        **{
            title: {name: _paired_document(group.paired, group.p_adjusted) for name, group in found.items()}
            for title, found in groups.items()
        },
    }


def _paired_document(paired: Paired, p_adjusted: float) -> dict[str, Any]:
    """The flipped questions as counts: their keys stand in the document's own list."""
    flips = paired.flips
    return {
        **paired.model_dump(mode="json", exclude={"flips"}),
        "right_to_wrong": len(flips.right_to_wrong),
        "wrong_to_right": len(flips.wrong_to_right),
        "both_right": flips.both_right,
        "both_wrong": flips.both_wrong,
        "p": flips.p,
        "p_holm": p_adjusted,
    }
