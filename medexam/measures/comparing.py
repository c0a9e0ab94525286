"""Runs on the same items beside the first of them: what is found, whatever was asked. `paired_tables` shows it."""

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from medexam.errors import DatasetError
from medexam.measures.benchmarks.base import Benchmark
from medexam.measures.paired import (
    NO_ANSWER,
    POINTS,
    Difference,
    Measured,
    PairedMeasure,
    Sheet,
    adjust_all,
    compare_all,
    compare_groups,
    compare_pair,
)
from medexam.measures.results import Metrics, Resampling, Unit
from medexam.measures.scoring import find_outcomes
from medexam.predictions import Prediction, Reason
from medexam.predictions.prediction import Answered, Outcome
from medexam.questions import AnySet, Scoring

FEW_CLUSTERS = 10
"""With fewer, a bootstrap over clusters is rough, and its reader is told so."""
UNREAD = frozenset({Reason.UNPARSED, Reason.EMPTY, Reason.TRUNCATED, Reason.TRUNCATED_THINKING})
"""Why a question has no answer where its reply has another form than was asked for: what it would be nobody knows."""
LEGIBLE = "where both replies could be read"
"""The view of a pair without the questions to which one of the two gave no readable reply."""
_NOTHING_DIFFERS = Difference(value=0.0, interval=None, resampled=Resampling.TOO_FEW)
_NOTHING = PairedMeasure(n=0, clusters=0, baseline=0.0, other=0.0, difference=_NOTHING_DIFFERS, p=1.0)


class RunAnswers(UserDict[str, Prediction]):
    """The predictions of a run by key, all of which are read when one is looked at first."""

    def __init__(
        self,
        read: Callable[[], Mapping[str, Prediction]],
        outcomes: Mapping[str, Outcome] | None = None,
        keys: tuple[str, ...] = (),
        metrics: Metrics | None = None,
    ) -> None:
        """Take what reads the predictions, and what stands beside them: outcomes, and the metrics of these items."""
        self._read, self._outcomes, self._keys, self._metrics = read, outcomes, keys, metrics

    @cached_property
    def data(self) -> dict[str, Prediction]:  # type: ignore[override]
        """The predictions."""
        return dict(self._read())

    @property
    def outcomes(self) -> Mapping[str, Answered]:
        """How each question came out, by key."""
        return self.data if self._outcomes is None else self._outcomes

    def metrics_of(self, keys: tuple[str, ...]) -> Metrics | None:
        """Return the stored metrics of exactly these items in this order; None if there are none."""
        return self._metrics if self._keys == keys else None


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

    @classmethod
    def of(cls, metrics: Sequence[Metrics], sheet: Sheet, clusters: str) -> Self:
        """Compare the first run of the sheet with each other one."""
        return cls(tuple(metrics), sheet, tuple(map(Pair, compare_all(sheet))), clusters)

    @property
    def measure(self) -> str:
        """The measure that runs are known by."""
        return next(iter(self.sheet.scores))

    @property
    def resampled(self) -> frozenset[Resampling]:
        """What the intervals of all differences resample, or why there are none."""
        return frozenset(measure.difference.resampled for pair in self.pairs for measure in pair.measures.values())

    @cached_property
    def by(self) -> dict[str, list[Measured]]:
        """Facet -> of each pair: group -> the first measure over it. A facet without groups is left out."""
        orders, facets = self.metrics[0].by, self.sheet.facets or {}
        groups = {facet: compare_groups(self.sheet, facet, [*orders.get(facet, ())]) for facet in facets}
        return {facet: families for facet, families in groups.items() if any(families)}

    def with_views(self, views: Mapping[str, "Paired"], floors: Sequence[float | None] = ()) -> Self:
        """Return the same beside the same runs under other readings, by name; what can be read is judged by the last.

        Views say nothing, and are left out, where all replies read the same. `floors`: noise floor of each pair.
        """
        last: Paired = [*views.values()][-1] if views else self
        legible = _legible(last.sheet)
        pairs = []
        for place, pair in enumerate(self.pairs):
            others = {name: view.pairs[place].measures for name, view in views.items()}
            others |= {LEGIBLE: legible[place]} if legible[place] else {}
            pairs.append(replace(pair, views=others, floor=floors[place] if floors else None))
        return replace(self, pairs=tuple(pairs))


def pair_runs(
    benchmark: Benchmark[Any, Any],
    items: AnySet,
    sets: Sequence[AnySet],
    runs: Sequence[RunAnswers],
    metrics: Sequence[Metrics] = (),
) -> Paired:
    """Compare the first of `runs` with each other one, on exactly `items`, which every run has scored.

    `sets[i]` holds the same items as run `i` was asked them. `metrics` are those of right or wrong answers where they
    need not be computed. Raises `DatasetError` if the runs share no measure.
    """
    entries = [
        (item.key, benchmark.cluster(item), *(None if cell is None else str(cell) for cell in cells))
        for item in items.questions
        for cells in [map(benchmark.place(item).get, benchmark.facets)]
    ]
    keys, clusters, *groups = zip(*entries, strict=True)
    scores: dict[str, Any] = {}
    answers = None
    if benchmark.right_or_wrong:
        metrics = metrics or [run.metrics_of(keys) or benchmark.score(items, run).metrics for run in runs]
        scoring = benchmark.scoring or Scoring()
        gains = {"accuracy": (1, 0, 0), "exam_score": (1, -scoring.penalty, 0), POINTS: (scoring.cancelling, -1, 0)}
        outcomes = np.array([find_outcomes(keys, items.golds, run.outcomes) for run in runs])
        names = metrics[0].measures if benchmark.scoring else {"accuracy"}
        scores = {name: np.array(each, dtype=float)[outcomes] for name, each in gains.items() if name in names}
        numbers = ((run.outcomes[key].answer for key in keys) for run in runs)
        answers = np.array([[NO_ANSWER if each is None else each for each in row] for row in numbers], dtype=np.int64)
        name = "exams" if len(set(clusters)) < len(keys) else "questions"
    else:
        scored = [benchmark.score(task_set.only(keys), run) for task_set, run in zip(sets, runs, strict=True)]
        metrics, name = [each.metrics for each in scored], "whole questions"
        for measure in scored[0].items:
            rows = np.array([[each.items.get(measure, {}).get(key, np.nan) for key in keys] for each in scored])
            if (~np.isnan(rows)).all(axis=0).any():
                scores[measure] = rows
    if not scores:
        raise DatasetError(
            "there is nothing to compare: no measure is scored in all of these runs, because their data hold different "
            "right answers; compare runs whose dataset.path is the same"
        )
    sheet = Sheet(
        keys,
        clusters,
        scores,
        answers,
        unread=np.array([[run.outcomes[key].reason in UNREAD for key in keys] for run in runs]),
        facets=dict(zip(benchmark.facets, groups, strict=True)),
        units={POINTS: Unit.POINTS},
    )
    return Paired.of(metrics, sheet, name)


def _legible(sheet: Sheet) -> list[Measured]:
    """Compare each run with the first where both replies could be read; empty where all could.

    Without such a question nothing differs. One family of tests over all runs and measures.
    """
    families: list[Measured] = []
    for other in range(1, len(sheet.first)):
        families.append({})
        if sheet.unread is not None and (unread := sheet.unread[0] | sheet.unread[other]).any():
            measures = compare_pair(sheet.only(~unread), 0, other)
            families[-1] = {name: measures.get(name, _NOTHING) for name in sheet.scores}
    return adjust_all(families)


def count_together(sheet: Sheet) -> dict[str, int]:
    """Count what the runs have right together: in any run (the oracle), in all, and in none."""
    rights = sheet.first == 1
    counts = {"any": rights.any(axis=0), "all": rights.all(axis=0), "none": ~rights.any(axis=0)}
    return {"n": len(sheet.keys)} | {f"{name}_right": int(each.sum()) for name, each in counts.items()}
