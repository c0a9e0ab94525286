"""What a comparison of runs on the same items finds, whatever was asked: tables, sentences and documents."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

from medexam.metrics.paired.pairs import hold_to
from medexam.metrics.paired.results import Difference, Paired, Verdict
from medexam.metrics.results import Resampling, RunMetrics
from medexam.tables import Captioned

M_co = TypeVar("M_co", bound=RunMetrics, covariant=True)

FEW_CLUSTERS = 10
"""With fewer, a bootstrap over clusters is rough, and its reader is told so."""
TOLD = {"better": "is better than", "worse": "is worse than", "not told apart": "shows no difference from"}


@dataclass(frozen=True, slots=True)
class TableRun(Generic[M_co]):
    """A run as tables need it."""

    name: str
    """What tells it from the others."""
    labels: Mapping[str, str]
    """Header -> what the run is called in that column; the same headers for all runs of a table."""
    metrics: M_co
    is_best: bool
    """Whether a paired test finds it better than every other run of the table."""


@dataclass(frozen=True)
class PairedGroup:
    """The questions of one discipline or year, beside the baseline."""

    paired: Paired
    p_adjusted: float
    """McNemar's p after Holm, over all groups of the breakdown and all pairs."""


class Pair(ABC):
    """One run beside the baseline."""

    verdict: Verdict
    """What may be said of it in the measure that runs are known by."""

    @property
    @abstractmethod
    def differences(self) -> Sequence[Difference]:
        """The difference of each measure over all items, that which runs are known by first."""

    @abstractmethod
    def with_verdict(self, verdict: Verdict) -> Self:
        """Return the same with another verdict."""


@dataclass(frozen=True)
class PairedRun(Pair):
    """One run beside the baseline, whose answers are right or wrong."""

    paired: Paired
    p_adjusted: float
    """McNemar's p after Holm, over all pairs; the same as before if there is one pair."""
    verdict: Verdict
    by_discipline: Mapping[str, PairedGroup]
    by_year: Mapping[str, PairedGroup]

    @property
    def differences(self) -> tuple[Difference, Difference]:
        """Accuracy and exam score; points are of exams, whatever the intervals of the others resample."""
        return self.paired.accuracy, self.paired.exam_score

    def with_verdict(self, verdict: Verdict) -> Self:
        """Return the same with another verdict on its accuracy."""
        return replace(self, verdict=verdict)


@dataclass(frozen=True)
class Flipped:
    """A question that some runs have right and others have not."""

    question: str
    """Its key."""
    gold: int
    answers: tuple[int | None, ...]
    """The printed number that each run chose, in their order; None if it chose none."""
    others: tuple[int, ...] = ()
    """Numbers of further options that are right as well."""


P = TypeVar("P", bound=Pair)


@dataclass(frozen=True)
class PairedRuns(ABC, Generic[P]):
    """Several runs beside the first one, the baseline."""

    metrics: tuple[Any, ...]
    """Each run's metrics on the compared items alone."""
    pairs: tuple[P, ...]
    """Every other run beside the baseline, in their order."""
    clusters: str
    """What the intervals resample if there are five or more."""
    cluster_count: int

    @property
    @abstractmethod
    def breakdown(self) -> str:
        """What the breakdowns are by."""

    @property
    def paired(self) -> Sequence[PairedRun]:
        """The right and wrong answers of each pair; empty if answers are more or less right."""
        return ()

    @property
    def verdicts(self) -> list[Verdict]:
        """What may be said of each pair in the measure that runs are known by."""
        return [pair.verdict for pair in self.pairs]

    @property
    def known_by(self) -> list[Difference]:
        """The difference of each pair in that measure."""
        return [pair.differences[0] for pair in self.pairs]

    def held_to(self, floors: Sequence[float | None]) -> Self:
        """Return the same, where a pair whose difference in that measure is not over its floor is not told apart.

        Floors are fractions of 1; None sets none.
        """
        pairs = (
            pair.with_verdict(hold_to(pair.verdict, pair.differences[0], floor))
            for pair, floor in zip(self.pairs, floors, strict=True)
        )
        return replace(self, pairs=tuple(pairs))

    @property
    def resampled(self) -> frozenset[Resampling]:
        """What the intervals of all differences resample, or why there are none."""
        return frozenset(difference.resampled for pair in self.pairs for difference in pair.differences)

    @property
    def size(self) -> dict[str, int]:
        """How many clusters there are, by name, such as `{"exams": 30}`."""
        return {self.clusters.replace(" ", "_"): self.cluster_count}

    @property
    @abstractmethod
    def origin(self) -> str:
        """What the items come from, behind their number in a sentence."""

    @abstractmethod
    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each pair."""

    @abstractmethod
    def overall_tables(self, runs: Sequence[TableRun[Any]]) -> list[Captioned]:
        """Show scores and differences over all items."""

    @abstractmethod
    def breakdown_tables(self, names: Sequence[str]) -> list[Captioned]:
        """Show the differences of every pair by each facet; empty if there is only one group."""

    def flipped_tables(self, names: Sequence[str], limit: int) -> list[Captioned]:
        """Show the first `limit` items that some runs have right and others have not."""
        return []

    def run_documents(self) -> list[dict[str, Any]]:
        """Return what `--json` says of each run beside its scores."""
        return [{} for _ in self.metrics]

    @abstractmethod
    def pair_documents(self) -> list[dict[str, Any]]:
        """Return what `--json` says of each pair."""

    def more_documents(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return what else `--json` says, where runs are called by `keys`."""
        return {}
