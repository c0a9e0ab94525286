"""Asking a spec block by block, and no further than its comparisons need.

A block is a larger `dataset.limit`, which keeps the questions of a smaller one. So every run is an ordinary one on the
questions that it was asked, and all decisions follow from stored answers: the same command continues.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medexam.errors import SpecError
from medexam.experiments import AnyCell, AnyRun, Plan, Stop
from medexam.metrics import FLIPPED, questions_needed
from medexam.predictions import Status
from medexam_companions.analysis.sequential import SequentialTest

RECORD = "sequential.json"
"""The file of a run's folder that says how its comparison ended."""
RAN_OUT = "questions ran out"
LOOKS = 51
"""Looks at a comparison at most, at equal distances."""
LEAST_BLOCK = 10
"""Questions between two looks at least."""


@dataclass(frozen=True)
class StoppingRule:
    """When the comparisons of a spec's cells end."""

    difference: float
    """The smallest difference of accuracy that matters, in percentage points."""
    power: float = 0.8
    """A true difference of that size is missed with a probability of at most 1 - power."""
    baseline: str | None = None
    """The cell that the others are compared with, as `medexam plan` names it; None: the first."""

    def check(self, plan: Plan) -> tuple[int, SequentialTest]:
        """Find the baseline's position and the test; raises `SpecError` where the cells cannot be compared."""
        cells = plan.cells
        if not (0 < self.difference <= 50 and 0.5 <= self.power < 1):
            raise SpecError("--difference is over 0 and at most 50 points, --power from 0.5 to under 1")
        if len(cells) < 2:
            raise SpecError(f"{plan.name} has one cell, and comparisons need two: add a matrix")
        for cell in cells:
            if not cell.benchmark.right_or_wrong:
                raise SpecError(f"right and wrong answers are compared, and {cell.label} is answered in words")
        keys = [{question.key for question in cell.question_set.questions} for cell in cells]
        if any(cell_keys != keys[0] for cell_keys in keys):
            raise SpecError("cells are compared on the same questions, and these select different ones")
        test = SequentialTest(self.difference / 100, self.power)
        # Several comparisons share the level (Bonferroni).
        return self._find_baseline(cells), replace(test, level=test.level / (len(cells) - 1))

    def ask(
        self, plan_at: Callable[[int | None], Plan], carry_out: Callable[[Plan], tuple[Sequence[AnyRun], Stop | None]]
    ) -> tuple[dict[str, dict[str, Any]], list[AnyRun], Stop | None]:
        """Ask until every comparison has ended, a limit is reached, or nobody answers any more.

        `plan_at` plans the spec with that many questions, None as many as it names; `carry_out` asks a plan's pending
        ones. Returns what each run's `sequential.json` says, the runs that were asked, and why asking stopped early.
        """
        whole = plan_at(None)
        baseline, test = self.check(whole)
        total, scored, stop = whole.cells[0].total, 0, None
        shared: dict[str, Any] = {
            "difference": self.difference,
            "power": self.power,
            "level": test.level,
            "questions": total,
        }
        shared |= {"baseline": whole.cells[baseline].run_id}
        records: dict[int, dict[str, Any]] = {
            place: {**shared, "looks": []} for place in range(len(whole.cells)) if place != baseline
        }
        runs: dict[str, AnyRun] = {}
        for asked in find_looks(total):
            going_on = [place for place, record in records.items() if not record.get("ended")]
            plan = plan_at(asked)
            cells = {place: plan.cells[place] for place in sorted((baseline, *going_on))}
            if any(cell.pending for cell in cells.values()):
                stored_runs, stop = carry_out(replace(plan, cells=tuple(cells.values())))
                runs |= {run.folder.name: run for run in stored_runs}
            before = _find_right(cells[baseline])
            for place in going_on:
                look = _look(before, _find_right(cells[place]), test)
                is_over = asked == total and look["n"] == total
                ended = test.decide(look["gained"], look["lost"], look["n"]) or (RAN_OUT if is_over else None)
                records[place] |= {"asked": asked, "ended": ended and str(ended)}
                records[place]["looks"].append({"asked": asked, **look})
                if cells[place].folder.exists():
                    cells[place].folder.write_json(RECORD, records[place])
            # A block of which all failed tells that nobody answers any more.
            if stop is not None or len(before) <= scored or all(record["ended"] for record in records.values()):
                break
            scored = len(before)
        return {whole.cells[place].run_id: record for place, record in records.items()}, list(runs.values()), stop

    def note(self, questions: int) -> str | None:
        """Say that so many questions are too few for the difference; None if they suffice."""
        needed = questions_needed(self.difference / 100, FLIPPED)
        if needed is None or needed <= questions:
            return None
        return (
            f"{questions:,} questions detect a difference of {self.difference:g} points with less than 80 % power "
            f"({needed:,} are needed, if 3 of 10 are right in one run alone): close comparisons ask all questions"
        )

    def _find_baseline(self, cells: Sequence[AnyCell]) -> int:
        if self.baseline is None:
            return 0
        places = [place for place, cell in enumerate(cells) if self.baseline in _names(cell)]
        if len(places) != 1:
            subject = "no cell is" if not places else f"{len(places)} cells are"
            names = ", ".join(_names(cell)[-1] for cell in cells)
            raise SpecError(f"--baseline: {subject} called {self.baseline!r}; the cells are {names}")
        return places[0]


def find_looks(questions: int) -> tuple[int, ...]:
    """Return after how many of that many questions a comparison is looked at; the last is all of them."""
    block = max(LEAST_BLOCK, math.ceil(questions / LOOKS))
    return (*range(block, questions, block), questions)


def _look(before: Mapping[str, bool], after: Mapping[str, bool], test: SequentialTest) -> dict[str, Any]:
    """Weigh the answers that a run and its baseline both have scored."""
    pairs = [(before[key], after[key]) for key in before if key in after]
    n, gained = len(pairs), sum(run and not base for base, run in pairs)
    lost = sum(base and not run for base, run in pairs)
    evidence = test.evidence(gained, lost, n)
    e_values = {name: float(getattr(evidence, name)) for name in ("better", "worse", "small")}
    return {"n": n, "gained": gained, "lost": lost, **e_values, "interval": test.interval(gained, lost, n)}


def _find_right(cell: AnyCell) -> dict[str, bool]:
    """Map each of the cell's questions that is scored to whether it is right."""
    outcomes = cell.folder.read_outcomes() if cell.folder.exists() else {}
    golds, benchmark = cell.question_set.golds, cell.benchmark
    return {
        question.key: benchmark.is_right(outcomes[question.key], golds[question.key])
        for question in cell.question_set.questions
        if question.key in outcomes and outcomes[question.key].status is not Status.FAILED
    }


def _names(cell: AnyCell) -> list[str]:
    """List what a cell may be called, from the shortest to the one that tells it from all others."""
    program, model = cell.cell.program.label, cell.cell.model.label if cell.asks_model else ""
    language = cell.cell.dataset.language
    full_name = " ".join(filter(None, (program, model, language)))
    return [program, f"{program} {language}", f"{program} {model}".strip(), cell.label, full_name]
