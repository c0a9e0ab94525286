"""A further part of a comparison, which is found only if somebody asks for it: its tables, sentences and JSON.

It knows none of the parts; each is a module beside this one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medexam.benchmarks import Benchmark
from medexam.benchmarks.answers import RunAnswers
from medexam.benchmarks.paired import PairedRuns
from medexam.experiments.store.run_folder import RunFolder
from medexam.predictions import Prediction
from medexam.questions import AnySet, Item
from medexam.tables import Captioned


@dataclass(frozen=True)
class ComparisonScope:
    """What a part may be found from: runs, and the items that all of them have scored."""

    benchmark: Benchmark[Any, Any, Any]
    statistics: PairedRuns[Any]
    folders: Sequence[RunFolder]
    """The baseline first, as in all that follows."""
    sets: Sequence[AnySet]
    """The data of each run."""
    items: Sequence[Item]
    predictions: Sequence[RunAnswers]
    """The whole run's, also of items that are not compared."""

    @cached_property
    def scores(self) -> tuple[dict[str, float], ...]:
        """Of each run item -> its score in the measure that runs are known by, for the items that all have one of."""
        return tuple(score_runs(self.benchmark, self.items, self.sets, self.predictions))

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """The same scores: row i is run i, column j is item j of `scores`."""
        return np.array([list(run.values()) for run in self.scores])

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """What each of these items is resampled with: its exam or its whole question."""
        cluster_of = {item.key: self.benchmark.cluster(item) for item in self.items}
        return tuple(cluster_of[key] for key in self.scores[0])


def score_runs(
    benchmark: Benchmark[Any, Any, Any],
    items: Sequence[Item],
    sets: Sequence[AnySet],
    runs: Sequence[Mapping[str, Prediction]],
) -> list[dict[str, float]]:
    """Score `items` that all `runs` have scored, as `Compared.scores` says; `sets` holds the data of each run."""
    if benchmark.right_or_wrong:
        golds = sets[0].golds
        return [{item.key: float(benchmark.is_right(run[item.key], golds[item.key])) for item in items} for run in runs]
    keys = [item.key for item in items]
    measures = [benchmark.item_scores(data.only(keys), run) for data, run in zip(sets, runs, strict=True)]
    measure = next(name for name in measures[0] if all(name in scores_by_measure for scores_by_measure in measures))
    run_scores = [scores_by_measure[measure] for scores_by_measure in measures]
    common = [key for key in keys if all(key in scores for scores in run_scores)]
    return [{key: scores[key] for key in common} for scores in run_scores]


class ComparisonSection(ABC):
    """What was found."""

    name: ClassVar[str]
    """Its key in `--json`."""

    def tables(self, names: Sequence[str]) -> list[Captioned]:  # noqa: ARG002
        """Build its tables, each with its caption, if it has any; `names` are those of the runs."""
        return []

    @abstractmethod
    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said."""

    @abstractmethod
    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build what `--json` says; `keys` are those of the runs."""


Finder = Callable[[ComparisonScope], ComparisonSection | None]
"""Finds a part; None if the runs have nothing for it."""
