"""A further part of a comparison, which is found only if somebody asks for it: its tables, sentences and JSON.

It knows none of the parts; each is a module beside this one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medexam.benchmarks import Benchmark
from medexam.benchmarks.answers import RunAnswers
from medexam.benchmarks.paired import Paired
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.metrics.paired.pairs import Sheet
from medexam.questions import AnySet, Item
from medexam.tables import Captioned


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


@dataclass(frozen=True)
class ComparisonScope:
    """What a part may be found from: runs, and the items that all of them have scored."""

    benchmark: Benchmark[Any, Any]
    statistics: Paired
    folders: Sequence[RunFolder]
    """The baseline first, as in all that follows."""
    records: Sequence[RunRecord]
    sets: Sequence[AnySet]
    """The data of each run."""
    items: Sequence[Item]
    predictions: Sequence[RunAnswers]
    """The whole run's, also of items that are not compared."""
    exclusions: LeftOut
    corrected: tuple[str, ...]
    """One line for each run whose golds have changed since it was last scored; usually empty."""
    noise: "ComparisonSection | None"
    """How far runs vary that were asked again; None if none was."""

    @cached_property
    def _scored(self) -> Sheet:
        """The items that all runs have a score for in the measure that runs are known by."""
        return self.statistics.sheet.only(~np.isnan(self.statistics.sheet.first).any(axis=0))

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Their scores in it: row i is run i, column j is item j of `keys`."""
        return self._scored.first

    @property
    def keys(self) -> Sequence[str]:
        """These items."""
        return self._scored.keys

    @property
    def clusters(self) -> tuple[str, ...]:
        """What each of these items is resampled with: its exam or its whole question."""
        return tuple(self._scored.clusters)


class ComparisonSection(ABC):
    """What was found."""

    name: ClassVar[str]
    """Its key in `--json`."""

    def tables(self, names: Sequence[str]) -> Sequence[Captioned]:  # noqa: ARG002
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
