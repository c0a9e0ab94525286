"""The protocol of a benchmark: how its items are loaded, scored, compared and shown.

Planning, asking, storing, comparing, reports, pages, MLflow and audits know this and no implementation.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from medexam.benchmarks.answers import RunAnswers
from medexam.benchmarks.paired import PairedRuns, TableRun
from medexam.items import ItemSet
from medexam.metrics.audit import AuditItem
from medexam.metrics.results import RunMetrics
from medexam.predictions import Prediction
from medexam.specs import DatasetSpec
from medexam.tables import Captioned, Table

if TYPE_CHECKING:
    import pyarrow as pa

I = TypeVar("I", bound=Any)  # noqa: E741 - the item
G = TypeVar("G", bound=Mapping[str, Any])
M = TypeVar("M", bound=RunMetrics)
Predictions = Mapping[str, Prediction]
Scores = Mapping[str, Mapping[str, float]]
"""Measure -> item -> its score."""


class Chosen(Protocol):
    """An answer, as far as it is right or wrong."""

    @property
    def answer(self) -> int | None:
        """The printed number of the chosen option; None if there is none."""


@dataclass(frozen=True, slots=True)
class Scored(Generic[M]):
    """The metrics of a run, with the scores that they are means of."""

    metrics: M
    items: Scores
    """For the measures that are means over items; empty if right or wrong says it all."""
    own: Scores = field(default_factory=dict)
    """The scores that the user's own metrics give, by metric."""


class Benchmark(ABC, Generic[I, G, M]):
    """One benchmark: `I` is an item as it is shown, `G` maps its key to what is expected, `M` are a run's metrics."""

    name: str
    """The data set's name in a spec, or the kind of questions of one's own."""
    family: str
    """Runs of one family share a table."""
    right_or_wrong: bool = False
    """Whether every answer is right or wrong, so that runs have traces, flips, and languages side by side."""
    sat_by_people: bool = False
    """Whether people sat its exams, so that a report sets runs beside them."""
    plots: tuple[str, ...] = ()
    """The plots of its runs, in the order of a report; empty if it has none."""
    layouts: frozenset[str] = frozenset()
    """The papers whose tables its runs fit, as `--layout` names them."""
    metrics_type: type[M]
    clusters: str = "questions"
    """What the intervals resample if there are five or more."""
    published_legend: str = ""
    """Stands behind `legend` where figures are shown as a paper prints them."""
    report_each: bool = False
    """Whether a report on several runs shows the breakdowns of each."""
    facets: Mapping[str, str]
    """Name in `place` -> header, for what a page filters items by."""
    board: tuple[str, ...] = ()
    """The measures that runs are ranked by on a board of weighted groups; empty if it has no groups to weigh."""

    @abstractmethod
    def load(self, spec: DatasetSpec) -> ItemSet[I, G]:
        """The items that `spec` selects; raises `DatasetError` if files are missing or unsound or nothing is left."""

    def check(self) -> None:
        """Raises `EngineError` if what scoring needs is not installed; called before anything is asked."""
        return

    @abstractmethod
    def score(self, items: ItemSet[I, G], predictions: Predictions) -> Scored[M]:
        """The scores of the predictions, by key, on all of `items`; failed and missing ones enter no score."""

    def cluster(self, item: I) -> str:
        """What an item is resampled with for intervals of the user's own metrics: itself, or what it is part of."""
        return str(item.key)

    def is_right(self, found: Chosen, gold: Any) -> bool:
        """Whether an answer is right; False wherever answers are more or less right."""
        return False

    @abstractmethod
    def expected(self, gold: Any) -> Any:
        """The right answer as `predictions.parquet` and the page hold it."""

    def golds_agree(self, key: str, sets: Sequence[ItemSet[I, G]]) -> bool:
        """Whether all data sets expect the same of an item; in another language the same answer has other words."""
        first: dict[str, Any] = {}
        return all(each.golds[key] == first.setdefault(each.language, each.golds[key]) for each in sets)

    @abstractmethod
    def columns(self, items: Mapping[str, Any]) -> "list[tuple[str, pa.DataType]]":
        """Name and type of each column of `predictions.parquet`; `items` as `Scored` has them."""

    @abstractmethod
    def row(
        self, item: I, gold: Any, prediction: Prediction, items: Mapping[str, Mapping[str, float]]
    ) -> dict[str, Any]:
        """The values of `columns` for one item."""

    @abstractmethod
    def place(self, item: I) -> dict[str, Any]:
        """Where an item stands, by columns of `predictions.parquet` such as `exam`; `number` is the printed one."""

    @abstractmethod
    def wording(self, item: I, gold: Any) -> dict[str, Any]:
        """What a page shows of an item, JSON-ready: `stem`, `options` as number and text, further texts as `shown`."""

    def item_scores(self, items: ItemSet[I, G], predictions: Predictions) -> Scores:
        """The scores of single items, as `Scored` has them."""
        return {}

    @abstractmethod
    def legend(self, metrics: Sequence[M]) -> str:
        """How to read the overview and the breakdowns of runs with these metrics."""

    @abstractmethod
    def overview(self, title: str, runs: Sequence[TableRun[M]]) -> Table:
        """Runs side by side, the best scores stressed among those that may be best; at least one run."""

    @abstractmethod
    def headline(self, metrics: M) -> Table:
        """The scores over all items."""

    @abstractmethod
    def breakdowns(self, metrics: M, *, published: bool) -> list[Table]:
        """The scores by each facet; `published` adds figures as a paper prints them."""

    def matrices(self, runs: Sequence[TableRun[M]]) -> list[Captioned]:
        """One measure of several runs by each facet: a row a group, a column a run."""
        return []

    def details(self, metrics: M) -> list[Captioned]:
        """What else the metrics say, such as calibration."""
        return []

    def group_scores(self, metrics: M, measure: str) -> dict[str, float | None]:
        """Group -> a measure of it, for a board; None if nothing was scored."""
        return {}

    def name_measure(self, name: str) -> str:
        """A measure as tables call it."""
        return name.capitalize()

    def origin(self, metrics: M) -> str:
        """What the scored items come from, as ` of 30 exams` behind a number of questions."""
        return ""

    def notes(self, metrics: M) -> tuple[str, ...]:
        """What a reader of the scores should know; usually empty."""
        return ()

    @abstractmethod
    def values(self, metrics: M) -> dict[str, float]:
        """Name -> value of each number that MLflow keeps, one that a chart can read; scores are fractions of 1."""

    @abstractmethod
    def size(self, metrics: M) -> dict[str, int]:
        """What the items are counted in beside questions, such as `{"exams": 30}`."""

    @abstractmethod
    def compare(self, items: ItemSet[I, G], sets: Sequence[ItemSet[I, G]], runs: Sequence[RunAnswers]) -> PairedRuns:
        """The first of `runs` beside each other one, on exactly `items`, which every run has scored.

        `sets[i]` holds the same items as run `i` was asked them. Raises `DatasetError` if the runs share no measure.
        """

    @abstractmethod
    def audit_items(self, run: str, items: ItemSet[I, G], predictions: Predictions) -> Iterable[AuditItem]:
        """Every answer in words that the run called `run` holds, as people judge it."""
