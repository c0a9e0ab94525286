"""Asking by a rule: in which order, how far each cell has to be asked by now, and which comparisons have ended.

All of it follows from the stored answers, so that a run that is continued comes to the same decisions.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from medexam.datasets.selection import draw_lot
from medexam.errors import SpecError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.store.stopped import ALL_ENDED, RAN_OUT, InterimLook, StopRecord
from medexam.metrics.paired.power import FLIPPED, questions_needed
from medexam.metrics.paired.sequential import SequentialTest
from medexam.predictions import Status
from medexam.specs.experiment import StopSpec

LOOKS = 51
"""Looks at a comparison at most, at equal distances."""
LEAST_BLOCK = 10
"""Questions between two looks at least."""


@dataclass(frozen=True)
class StoppingRule:
    """A spec's `stop_when` for its cells."""

    spec: StopSpec
    baseline: int
    """Position of the cell that the others are compared with."""
    order: tuple[str, ...]
    """Keys of the questions in the order in which they are asked."""
    test: SequentialTest

    @classmethod
    def of(cls, spec: StopSpec, cells: Sequence[AnyCell]) -> "StoppingRule":
        """Build the rule for `cells`; raises `SpecError` where they cannot be compared question by question."""
        if len(cells) < 2:
            raise SpecError("stop_when compares cells, and this spec has one: add a matrix, or leave stop_when out")
        for cell in cells:
            if not cell.benchmark.right_or_wrong:
                raise SpecError(f"stop_when compares right and wrong answers, and {cell.label} is answered in words")
        keys = [{question.key for question in cell.question_set.questions} for cell in cells]
        if any(cell_keys != keys[0] for cell_keys in keys):
            raise SpecError("stop_when compares cells on the same questions, and these select different ones")
        test = SequentialTest(spec.difference / 100, spec.power)
        # Several comparisons share the level (Bonferroni).
        bonferroni_test = replace(test, level=test.level / (len(cells) - 1))
        return cls(spec, _find_baseline(spec.baseline, cells), _shuffle(keys[0], spec.seed), bonferroni_test)

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many questions a comparison is looked at."""
        return find_looks(len(self.order))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know before anything is asked, a line each."""
        needed_count, total = questions_needed(self.test.difference, FLIPPED), len(self.order)
        block = f"stop_when: asks blocks of {self.looks[0]:,} questions until every comparison has ended, at most all"
        if needed_count is None or needed_count <= total:
            return (block,)
        return (
            block,
            f"stop_when: {total:,} questions detect a difference of {self.spec.difference:g} points with less than "
            f"80 % power ({needed_count:,} are needed, if 3 of 10 are right in one run alone): close comparisons ask "
            "all questions",
        )

    def _follow(self, cells: Sequence[AnyCell], right: Sequence[Mapping[str, bool | None]]) -> tuple[StopRecord, ...]:
        """Decide from what `_find_right` found how far each cell has to be asked, and how its comparison ended."""
        baseline_id = cells[self.baseline].run_id
        stop_by_position = {
            position: self._compare(right[self.baseline], right[position], baseline_id)
            for position in range(len(cells))
            if position != self.baseline
        }
        baseline_stop = self._stopped(
            baseline_id,
            max(stop.asked for stop in stop_by_position.values()),
            ALL_ENDED if all(stop.ended for stop in stop_by_position.values()) else None,
        )
        return tuple(stop_by_position.get(position, baseline_stop) for position in range(len(cells)))

    def settle(self, cells: Sequence[AnyCell]) -> tuple[AnyCell, ...]:
        """Return the cells with what was decided of them; one that has ended selects only what it was asked."""
        stops = self._follow(cells, list(map(_find_right, cells)))
        return tuple(self._settle(cell, stop) for cell, stop in zip(cells, stops, strict=True))

    def next_blocks(self, cells: Sequence[AnyCell]) -> dict[int, AnyCell]:
        """Map a position to the cell with the pending questions that have to be asked next; empty if there are none."""
        blocks = {}
        right = list(map(_find_right, cells))
        for position, (cell, stop) in enumerate(zip(cells, self._follow(cells, right), strict=True)):
            keys = set(self.order[: stop.asked])
            block = tuple(question for question in cell.pending if question.key in keys)
            if block:
                blocks[position] = replace(
                    cell,
                    pending=block,
                    later=len(cell.pending) - len(block),
                    right=sum(map(bool, right[position].values())),
                    stopped=replace(stop, ended=None),
                )
        return blocks

    def _settle(self, cell: AnyCell, stop: StopRecord) -> AnyCell:
        cell = replace(cell, stopped=stop)
        if stop.ended is None:
            return cell
        keys = set(self.order[: stop.asked])
        questions = tuple(question for question in cell.question_set.questions if question.key in keys)
        pending = tuple(question for question in cell.pending if question.key in keys)
        return replace(cell, question_set=replace(cell.question_set, questions=questions), pending=pending)

    def _compare(
        self, before: Mapping[str, bool | None], after: Mapping[str, bool | None], baseline: str
    ) -> StopRecord:
        """Look at a run after each block that both have been asked, until it is decided or a block is not asked yet."""
        looks: list[InterimLook] = []
        n = gained = lost = block_start = 0
        for block_end in self.looks:
            block = self.order[block_start:block_end]
            pairs = [
                (baseline_right, run_right)
                for baseline_right, run_right in ((before.get(key), after.get(key)) for key in block)
                if baseline_right is not None and run_right is not None
            ]
            # A block of which all failed tells that nobody answers any more.
            if not pairs or any(key not in before or key not in after for key in block):
                return self._stopped(baseline, block_end, None, looks)
            n += len(pairs)
            gained += sum(run_right and not baseline_right for baseline_right, run_right in pairs)
            lost += sum(baseline_right and not run_right for baseline_right, run_right in pairs)
            looks.append(self._look(block_end, n, gained, lost))
            if ending := self.test.decide(gained, lost, n):
                return self._stopped(baseline, block_end, str(ending), looks)
            block_start = block_end
        return self._stopped(baseline, len(self.order), RAN_OUT, looks)

    def _look(self, question_count: int, n: int, gained: int, lost: int) -> InterimLook:
        evidence = self.test.evidence(gained, lost, n)
        better, worse, small = (float(e_value) for e_value in (evidence.better, evidence.worse, evidence.small))
        interval = self.test.interval(gained, lost, n)
        return InterimLook(
            asked=question_count,
            n=n,
            gained=gained,
            lost=lost,
            better=better,
            worse=worse,
            small=small,
            interval=interval,
        )

    def _stopped(
        self, baseline: str, question_count: int, ended: str | None, looks: Sequence[InterimLook] = ()
    ) -> StopRecord:
        return StopRecord(
            difference=self.spec.difference,
            power=self.spec.power,
            level=self.test.level,
            seed=self.spec.seed,
            baseline=baseline,
            questions=len(self.order),
            asked=question_count,
            ended=ended,
            looks=tuple(looks),
        )


def find_looks(questions: int) -> tuple[int, ...]:
    """Return after how many of that many questions a comparison is looked at; the last is all of them."""
    block = max(LEAST_BLOCK, math.ceil(questions / LOOKS))
    return (*range(block, questions, block), questions)


def _find_right(cell: AnyCell) -> dict[str, bool | None]:
    """Map each question that the cell's folder holds to whether it is right; None if its asking failed."""
    outcomes = cell.folder.read_outcomes() if cell.folder.exists() else {}
    golds, benchmark = cell.question_set.golds, cell.benchmark
    return {
        key: None if outcome.status is Status.FAILED else benchmark.is_right(outcome, golds[key])
        for key, outcome in outcomes.items()
        if key in golds
    }


def _shuffle(keys: set[str], seed: int) -> tuple[str, ...]:
    """Put the keys into an order of their own, which is not that of the lots by which a limit chooses them."""
    return tuple(sorted(keys, key=lambda key: draw_lot(seed, f"stop_when:{key}")))


def _find_baseline(name: str | None, cells: Sequence[AnyCell]) -> int:
    if name is None:
        return 0
    positions = [position for position, cell in enumerate(cells) if name in _names(cell)]
    if len(positions) != 1:
        subject = "no cell is" if not positions else f"{len(positions)} cells are"
        cell_names = ", ".join(_names(cell)[-1] for cell in cells)
        raise SpecError(f"stop_when.baseline: {subject} called {name!r}; the cells are {cell_names}")
    return positions[0]


def _names(cell: AnyCell) -> list[str]:
    """List what a cell may be called, from the shortest to the one that tells it from all others."""
    program, model = cell.cell.program.label, cell.cell.model.label if cell.asks_model else ""
    language = cell.cell.dataset.language
    full_name = " ".join(filter(None, (program, model, language)))
    return [program, f"{program} {language}", f"{program} {model}".strip(), cell.label, full_name]
