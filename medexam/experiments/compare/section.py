"""A further part of a comparison, which is found only if somebody asks for it: its tables, sentences and JSON.

It knows none of the parts; each is a module beside this one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medexam.benchmarks import Benchmark, PairedRuns
from medexam.benchmarks.answers import RunAnswers
from medexam.experiments.store.run_folder import RunFolder
from medexam.items import AnySet, Item
from medexam.predictions import Prediction
from medexam.tables import Captioned


@dataclass(frozen=True)
class Compared:
    """What a part may be found from: runs, and the items that all of them have scored."""

    benchmark: Benchmark[Any, Any, Any]
    found: PairedRuns
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
        cluster_of = {one.key: self.benchmark.cluster(one) for one in self.items}
        return tuple(cluster_of[key] for key in self.scores[0])


def score_runs(
    benchmark: Benchmark[Any, Any, Any],
    items: Sequence[Item],
    sets: Sequence[AnySet],
    runs: Sequence[Mapping[str, Prediction]],
) -> list[dict[str, float]]:
    """What `Compared.scores` says, of `items` that all `runs` have scored; `sets` holds the data of each run."""
    if benchmark.right_or_wrong:
        golds = sets[0].golds
        return [{one.key: float(benchmark.is_right(run[one.key], golds[one.key])) for one in items} for run in runs]
    kept = [one.key for one in items]
    measured = [benchmark.item_scores(_only(data, kept), run) for data, run in zip(sets, runs, strict=True)]
    first = next(name for name in measured[0] if all(name in each for each in measured))
    known = [each[first] for each in measured]
    common = [key for key in kept if all(key in scores for scores in known)]
    return [{key: scores[key] for key in common} for scores in known]


class Section(ABC):
    """What was found."""

    name: ClassVar[str]
    """Its key in `--json`."""

    def tables(self, names: Sequence[str]) -> list[Captioned]:  # noqa: ARG002
        """Its tables, each with its caption, if it has any; `names` are those of the runs."""
        return []

    @abstractmethod
    def sentences(self, names: Sequence[str]) -> list[str]:
        """What may be said."""

    @abstractmethod
    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """What `--json` says; `keys` are those of the runs."""


Finder = Callable[[Compared], Section | None]
"""Finds a part; None if the runs have nothing for it."""


def _only(data: AnySet, keys: Sequence[str]) -> AnySet:
    items = {one.key: one for one in data.questions}
    golds = {key: data.golds[key] for key in keys}
    return replace(data, questions=tuple(items[key] for key in keys), golds=golds)
