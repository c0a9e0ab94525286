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
    predictions: Sequence[Mapping[str, Prediction]]
    """The whole run's, also of items that are not compared."""

    @cached_property
    def scores(self) -> tuple[dict[str, float], ...]:
        """Of each run item -> its score in the measure that runs are known by, for the items that all have one of."""
        if self.benchmark.right_or_wrong:
            golds = self.sets[0].golds
            return tuple(
                {one.key: float(self.benchmark.is_right(run[one.key], golds[one.key])) for one in self.items}
                for run in self.predictions
            )
        kept = [one.key for one in self.items]
        measured = [
            self.benchmark.item_scores(_only(data, kept), run)
            for data, run in zip(self.sets, self.predictions, strict=True)
        ]
        first = next(name for name in measured[0] if all(name in each for each in measured))
        known = [each[first] for each in measured]
        common = [key for key in kept if all(key in scores for scores in known)]
        return tuple({key: scores[key] for key in common} for scores in known)

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """The same scores: row i is run i, column j is item j of `scores`."""
        return np.array([list(run.values()) for run in self.scores])

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """What each of these items is resampled with: its exam or its whole question."""
        cluster_of = {one.key: self.benchmark.cluster(one) for one in self.items}
        return tuple(cluster_of[key] for key in self.scores[0])


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
