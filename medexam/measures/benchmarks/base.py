"""The protocol of a benchmark: how its items are loaded, scored and shown.

Planning, asking, storing, comparing, reports, pages, MLflow and audits know this and no implementation.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from medexam.measures.results import ItemScores, ScoredRun
from medexam.predictions import Prediction
from medexam.questions import ItemSet, Scoring
from medexam.specs import DatasetSpec

I = TypeVar("I", bound=Any)  # noqa: E741 - the item
G = TypeVar("G", bound=Mapping[str, Any])
Predictions = Mapping[str, Prediction]
USAGE = {
    **dict.fromkeys(("prompt_tokens", "completion_tokens"), "int64"),
    "latency_s": "double",
    "finish_reason": "string",
}
"""The columns of `predictions.parquet` that say what an answer took."""


class Benchmark(ABC, Generic[I, G]):
    """One benchmark: `I` is an item as it is shown, `G` maps its key to what is expected."""

    name: str
    """The data set's name in a spec, or the kind of questions of one's own."""
    family: str
    """Runs of one family share a table."""
    right_or_wrong: bool = False
    """Whether every answer is right or wrong, so that runs have traces, flips, and languages side by side."""
    scoring: Scoring | None = None
    """What a wrong answer costs, where the data set declares it; None: answers are right or wrong, or more or less."""
    clusters: str = "questions"
    """What the intervals resample if there are five or more."""
    facets: Mapping[str, str]
    """Name in `place` -> what tables and a page's filters call it."""
    columns: Mapping[str, str]
    """Column of `predictions.parquet` -> Arrow's type, in brackets: a list. Those of measures come beside them."""

    @abstractmethod
    def load(self, spec: DatasetSpec) -> ItemSet[I, G]:
        """Load the items that `spec` selects; `DatasetError` if files are missing or unsound or nothing is left."""

    def check(self) -> None:
        """Raise `EngineError` if what scoring needs is not installed; called before anything is asked."""
        return

    @abstractmethod
    def score(self, items: ItemSet[I, G], predictions: Predictions) -> ScoredRun:
        """Score the predictions, by key, on all of `items`; failed and missing ones enter no score."""

    def cluster(self, item: I) -> str:
        """Return what an item is resampled with for intervals of the user's metrics: itself or what it is part of."""
        return str(item.key)

    @abstractmethod
    def expected(self, gold: Any) -> Any:
        """Return the right answer as `predictions.parquet` and the page hold it."""

    def golds_agree(self, key: str, sets: Sequence[ItemSet[I, G]]) -> bool:
        """Return whether all data sets expect the same of an item; in another language, words are others."""
        golds: dict[object, Any] = {}
        for each in sets:
            if key not in each.golds:
                return False
            # In a tuple, one and the same object is seen as equal at once.
            gold = (each.golds[key],)
            if gold != golds.setdefault(self.right_or_wrong or each.language, gold):
                return False
        return True

    def row(self, item: I, gold: Any, prediction: Prediction) -> dict[str, Any]:
        """Return the values of those `columns` for one item that are not those of every prediction."""
        return {**self.place(item), "language": item.language, "gold": self.expected(gold)}

    @abstractmethod
    def place(self, item: I) -> dict[str, Any]:
        """Return where an item stands, by columns of `predictions.parquet` such as `exam`; `number` is as printed."""

    @abstractmethod
    def wording(self, item: I, gold: Any) -> dict[str, Any]:
        """Return what a page shows of an item, JSON-ready: `stem`, `options` as number and text, others as `shown`."""

    def item_scores(self, items: ItemSet[I, G], predictions: Predictions) -> ItemScores:
        """Return the scores of single items, as `ScoredRun` has them."""
        return {} if self.right_or_wrong else self.score(items, predictions).items
