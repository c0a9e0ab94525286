"""How answers flow from one run to another: right, wrong and unanswered before and after, on the same questions.

It reads the runs' predictions and the answer key of their data set; nothing is asked.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from medexam.errors import DatasetError
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.stored_run import ExamRun
from medexam.metrics.paired.results import Difference
from medexam.predictions import Prediction, Status
from medexam.questions import AnswerKey, Gold


class FlowMark(StrEnum):
    """How one question that was asked and scored is marked."""

    RIGHT = "right"
    WRONG = "wrong"
    UNANSWERED = "unanswered"


@dataclass(frozen=True)
class Flow:
    """One run beside the first, on the questions that all runs have scored."""

    before: ExamRun
    after: ExamRun
    counts: Mapping[tuple[FlowMark, FlowMark], int]
    """(mark in `before`, mark in `after`) -> questions; only those that occur."""
    accuracy: Difference
    """That of `after` minus that of `before`, a fraction of 1."""
    clusters: str
    """What its interval resamples if there are enough."""

    @property
    def n(self) -> int:
        """The questions that both runs have scored."""
        return sum(self.counts.values())


def find_flows(runs: Sequence[ExamRun]) -> list[Flow]:
    """Set every further run beside the first, on the questions that all runs of the first one's data set have scored.

    A run that mixes models is the first only if all do.

    Empty where fewer than two runs have that data set, and where no question is scored by all of them.
    """
    peers = [run for run in runs if run.record.cell.dataset.name == runs[0].record.cell.dataset.name]
    peers.sort(key=lambda run: run.mixed)
    if len(peers) < 2:
        return []
    try:
        comparison = compare_runs([run.folder for run in peers])
        key = load_items(peers[0].folder).golds
    except DatasetError:
        return []
    clusters = comparison.statistics.clusters
    before, *others = (run.folder.read_predictions() for run in peers)
    return [
        Flow(peers[0], run, count_marks(comparison.questions, key, before, after), pair.paired.accuracy, clusters)
        for run, after, pair in zip(peers[1:], others, comparison.statistics.paired, strict=True)
    ]


def count_marks(
    questions: Sequence[str], key: AnswerKey, before: Mapping[str, Prediction], after: Mapping[str, Prediction]
) -> dict[tuple[FlowMark, FlowMark], int]:
    """Count how many of `questions` have each pair (mark before, mark after); both runs have scored all of them."""
    return dict(
        Counter((mark(before[question], key[question]), mark(after[question], key[question])) for question in questions)
    )


def mark(prediction: Prediction, gold: Gold) -> FlowMark:
    """Mark a question with the right answer `gold`; the prediction has not failed."""
    if prediction.status is Status.UNANSWERED:
        return FlowMark.UNANSWERED
    return FlowMark.RIGHT if gold.accepts(prediction.answer) else FlowMark.WRONG
