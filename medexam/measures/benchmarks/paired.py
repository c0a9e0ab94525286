"""Runs on the same items beside the first of them: what is found, whatever was asked. `paired_tables` shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from medexam.errors import DatasetError
from medexam.measures.benchmarks.answers import RunAnswers
from medexam.measures.counting import RIGHT, find_outcomes
from medexam.measures.paired.pairs import (
    NO_ANSWER,
    POINTS,
    Measured,
    Sheet,
    compare_all,
    compare_groups,
    compare_pair,
)
from medexam.measures.paired.results import Difference, PairedMeasure
from medexam.measures.paired.significance import adjust_all
from medexam.measures.results import Metrics, Resampling
from medexam.predictions import Reason, Status
from medexam.predictions.prediction import Answered
from medexam.questions import AnySet

if TYPE_CHECKING:
    from medexam.measures.benchmarks.base import Benchmark

FEW_CLUSTERS = 10
"""With fewer, a bootstrap over clusters is rough, and its reader is told so."""
UNREAD = frozenset({Reason.UNPARSED, Reason.EMPTY, Reason.TRUNCATED, Reason.TRUNCATED_THINKING})
"""Why a question has no answer where its reply has another form than was asked for: what it would be nobody knows."""
LEGIBLE = "where both replies could be read"
"""The view of a pair without the questions to which one of the two gave no readable reply."""


@dataclass(frozen=True, slots=True)
class TableRun:
    """A run as tables need it."""

    name: str
    """What tells it from the others."""
    labels: Mapping[str, str]
    """Header -> what the run is called in that column; the same headers for all runs of a table."""
    metrics: Metrics
    is_best: bool
    """Whether a verdict finds it better than every other run of the table."""


@dataclass(frozen=True)
class Pair:
    """One run beside the baseline."""

    measures: Measured
    """Measure -> both runs' scores on the same items; runs are known by the first."""
    views: Mapping[str, Measured] = field(default_factory=dict)
    """How else the replies may be read -> the measures so. A verdict holds in each of them."""
    floor: float | None = None
    """A difference that is not more is the noise of repeats; None: no run was asked again."""

    @property
    def first(self) -> PairedMeasure:
        """The measure that runs are known by."""
        return next(iter(self.measures.values()))

    def by_view(self, measure: str) -> Measured:
        """Map each way to read the replies to a measure."""
        return {name: measures[measure] for name, measures in self.views.items() if measure in measures}


@dataclass(frozen=True)
class Paired:
    """Several runs beside the first one, the baseline."""

    metrics: tuple[Metrics, ...]
    """Each run's metrics on the compared items alone."""
    sheet: Sheet
    pairs: tuple[Pair, ...]
    """Every other run beside the baseline, in their order."""
    clusters: str
    """What the intervals resample if there are five or more."""

    @property
    def measure(self) -> str:
        """The measure that runs are known by."""
        return next(iter(self.sheet.scores))

    @property
    def cluster_count(self) -> int:
        """How many clusters the items come from."""
        return len(set(self.sheet.clusters))

    @property
    def resampled(self) -> frozenset[Resampling]:
        """What the intervals of all differences resample, or why there are none."""
        return frozenset(measure.difference.resampled for pair in self.pairs for measure in pair.measures.values())

    @cached_property
    def by(self) -> dict[str, list[Measured]]:
        """Facet -> of each pair: group -> the first measure over it. A facet without groups is left out."""
        orders = {facet: [*groups] for facet, groups in self.metrics[0].by.items()}
        groups = {facet: compare_groups(self.sheet, facet, orders.get(facet, ())) for facet in self.sheet.facets or {}}
        return {facet: families for facet, families in groups.items() if any(families)}

    def with_floors(self, floors: Sequence[float | None]) -> Self:
        """Return the same with the noise floor of each pair, fractions of 1."""
        pairs = (replace(pair, floor=floor) for pair, floor in zip(self.pairs, floors, strict=True))
        return replace(self, pairs=tuple(pairs))

    def with_views(self, views: Mapping[str, "Paired"]) -> Self:
        """Return the same beside the same runs under other readings, by name; what can be read is judged by the last.

        Views say nothing, and are left out, where all replies read the same.
        """
        last = [*views.values()][-1] if views else self
        pairs = []
        for place, (pair, legible) in enumerate(zip(self.pairs, _legible(last.sheet), strict=True)):
            others = {name: view.pairs[place].measures for name, view in views.items()}
            pairs.append(replace(pair, views=others | ({LEGIBLE: legible} if legible else {})))
        return replace(self, pairs=tuple(pairs))


def pair_runs(
    benchmark: "Benchmark[Any, Any]",
    items: AnySet,
    sets: Sequence[AnySet],
    runs: Sequence[RunAnswers],
    metrics: Sequence[Metrics] = (),
) -> Paired:
    """Compare the first of `runs` with each other one, on exactly `items`, which every run has scored.

    `sets[i]` holds the same items as run `i` was asked them. `metrics` are those of right or wrong answers where they
    need not be computed. Raises `DatasetError` if the runs share no measure.
    """
    keys = [item.key for item in items.questions]
    places = [benchmark.place(item) for item in items.questions]
    groups = {name: [place[name] for place in places] for name in benchmark.facets}
    common: dict[str, Any] = {
        "keys": keys,
        "clusters": [benchmark.cluster(item) for item in items.questions],
        "facets": {name: [None if each is None else str(each) for each in column] for name, column in groups.items()},
        "unread": np.array([[_is_unread(run.outcomes[key]) for key in keys] for run in runs]),
    }
    if benchmark.right_or_wrong:
        metrics = metrics or [run.metrics_of(keys) or benchmark.score(items, run).metrics for run in runs]
        sheet = Sheet(**common, **_choices(benchmark, keys, items.golds, runs, metrics[0]))
    else:
        scored = [benchmark.score(task_set.only(keys), run) for task_set, run in zip(sets, runs, strict=True)]
        metrics = [each.metrics for each in scored]
        names = [name for name in scored[0].items if all(name in each.items for each in scored)]
        scores = {
            name: np.array([[each.items[name].get(key, np.nan) for key in keys] for each in scored]) for name in names
        }
        sheet = Sheet(**common, scores={name: each for name, each in scores.items() if _is_shared(each)})
    if not sheet.scores:
        raise DatasetError(
            "there is nothing to compare: no measure is scored in all of these runs, because their data hold different "
            "right answers; compare runs whose dataset.path is the same"
        )
    has_exams = len(set(sheet.clusters)) < len(keys)
    clusters = ("exams" if has_exams else "questions") if benchmark.right_or_wrong else "whole questions"
    return Paired(tuple(metrics), sheet, tuple(map(Pair, compare_all(sheet))), clusters)


def _choices(
    benchmark: "Benchmark[Any, Any]", keys: Sequence[str], golds: Any, runs: Sequence[RunAnswers], metrics: Metrics
) -> dict[str, Any]:
    """Score right and wrong answers by the measures that the first run has."""
    outcomes = np.array([find_outcomes(keys, golds, run.outcomes) for run in runs])
    answers = ((run.outcomes[key].answer for key in keys) for run in runs)
    scores = {"accuracy": (outcomes == RIGHT) * 1.0}
    if benchmark.scoring is not None and "exam_score" in metrics.measures:
        scores["exam_score"] = np.array([1.0, -benchmark.scoring.penalty, 0.0])[outcomes]
        if POINTS in metrics.measures:
            cancelling = benchmark.scoring.cancelling
            scores[POINTS] = np.array([cancelling, -1.0, 0.0])[outcomes]
    return {
        "scores": scores,
        "answers": np.array([[NO_ANSWER if each is None else each for each in row] for row in answers], dtype=np.int64),
        "units": {name: metrics.measures[name].unit for name in scores},
    }


def _is_unread(outcome: Answered) -> bool:
    return outcome.status is Status.UNANSWERED and outcome.reason in UNREAD


def _is_shared(scores: Any) -> bool:
    return bool((~np.isnan(scores)).all(axis=0).any())


def _legible(sheet: Sheet) -> list[Measured]:
    """Compare each run with the first where both replies could be read; empty where all could.

    Without such a question nothing differs. One family of tests over all runs and measures.
    """
    families: list[Measured] = []
    for other in range(1, len(sheet.first)):
        unread = np.zeros(len(sheet.keys), bool) if sheet.unread is None else sheet.unread[0] | sheet.unread[other]
        measures = compare_pair(sheet.only(~unread), 0, other) if unread.any() else {}
        families.append({name: measures.get(name, _NOTHING) for name in sheet.scores} if unread.any() else {})
    return adjust_all(families)


_NOTHING = PairedMeasure(
    n=0,
    clusters=0,
    baseline=0.0,
    other=0.0,
    difference=Difference(value=0.0, interval=None, resampled=Resampling.TOO_FEW),
    p=1.0,
)


def count_together(sheet: Sheet) -> dict[str, int]:
    """Count what the runs have right together: in any run (the oracle), in all, and in none."""
    right_counts = sheet.first.sum(axis=0)
    return {
        "n": len(sheet.keys),
        "any_right": int((right_counts > 0).sum()),
        "all_right": int((right_counts == len(sheet.first)).sum()),
        "none_right": int((right_counts == 0).sum()),
    }


def count_alone(sheet: Sheet) -> list[int]:
    """Count the questions that each run has right and all the others have not."""
    return [int(each) for each in ((sheet.first == 1) & (sheet.first.sum(axis=0) == 1)).sum(axis=1)]
