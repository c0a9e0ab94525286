"""How answers flow from one run to another: right, wrong and unanswered before and after, on the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from medexam.errors import DatasetError
from medexam.experiments.compare.runs import find_scope
from medexam.experiments.store.stored_run import StoredRun
from medexam.metrics.paired.pairs import NO_ANSWER
from medexam.metrics.paired.results import Difference


class FlowMark(StrEnum):
    """How one question that was asked and scored is marked."""

    RIGHT = "right"
    WRONG = "wrong"
    UNANSWERED = "unanswered"


@dataclass(frozen=True)
class Flow:
    """One run beside the first, on the questions that all runs have scored."""

    before: StoredRun
    after: StoredRun
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


def find_flows(runs: Sequence[StoredRun]) -> list[Flow]:
    """Set every further run beside the first, on the questions that all runs of the first one's data set have scored.

    A run that mixes models is the first only if all do. Empty where fewer than two runs have that data set, and where
    no question is scored by all of them, or answers are not right or wrong.
    """
    peers = [run for run in runs if run.record.cell.dataset.name == runs[0].record.cell.dataset.name]
    peers.sort(key=lambda run: run.mixed)
    if len(peers) < 2:
        return []
    try:
        paired = find_scope([run.folder for run in peers]).statistics
    except DatasetError:
        return []
    if paired.sheet.answers is None:
        return []
    marks, parts = np.where(paired.sheet.first == 1, 0, np.where(paired.sheet.answers == NO_ANSWER, 2, 1)), [*FlowMark]
    flows = []
    for place, (run, pair) in enumerate(zip(peers[1:], paired.pairs, strict=True), 1):
        counts = np.bincount(marks[0] * len(parts) + marks[place], minlength=len(parts) ** 2).reshape(len(parts), -1)
        cells = {(parts[i], parts[j]): int(n) for (i, j), n in np.ndenumerate(counts) if n}
        flows.append(Flow(peers[0], run, cells, pair.first.difference, paired.clusters))
    return flows
