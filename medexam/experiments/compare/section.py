"""A further part of a comparison, which is found only if somebody asks for it: its tables, sentences and JSON.

It knows none of the parts; each is a module beside this one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.measures import Benchmark
from medexam.measures.comparing import Paired, RunAnswers
from medexam.measures.margins import Noise
from medexam.measures.paired import Sheet
from medexam.questions import AnySet, Item
from medexam.tables import Table


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
    exclusions: Mapping[str, int]
    """Reason -> questions that at least one run was asked for and that are not compared, each under its first one."""
    noises: tuple[Noise | None, ...]
    """How far each run varies; None: it was not asked again."""
    names: Sequence[str] = ()
    """What tables call the runs."""
    run_keys: Sequence[str] = ()
    """What `--json` calls them."""

    @cached_property
    def scored(self) -> Sheet:
        """The items that all runs have a score for in the measure that runs are known by."""
        return self.statistics.sheet.only(~np.isnan(self.statistics.sheet.first).any(axis=0))


@dataclass(frozen=True)
class ComparisonSection:
    """What was found."""

    name: str
    """Its key in `--json`."""
    sentences: Sequence[str]
    """What may be said."""
    document: Mapping[str, Any]
    """What `--json` says, where runs are called by their keys."""
    tables: Sequence[Table] = ()


Finder = Callable[[ComparisonScope], ComparisonSection | None]
"""Finds a part; None if the runs have nothing for it."""
