"""Asking a spec block by block, and no further than its comparisons need.

A block is a larger `dataset.limit`, which keeps the questions of a smaller one. So every run is an ordinary one on the
questions that it was asked, and all decisions follow from stored answers: the same command continues.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.experiments import Plan, PlannedCell, Stop, StoredRun, carry_out, plan_spec
from medexam.measures import ALPHA
from medexam.predictions import Status
from medexam_companions.analysis.sequential import SequentialTest

RAN_OUT = "questions ran out"
LOOKS = 51
"""Looks at a comparison at most, at equal distances."""
LEAST_BLOCK = 10
"""Questions between two looks at least."""
EARLY = "asked only as far as `medexam sequential` needed, and p-values assume a number that was fixed before"
"""The warning of a run that was not asked everything."""


def find_test(plan: Plan, difference: float, power: float) -> SequentialTest:
    """Find the test of a plan's cells against the first; raises `SpecError` where they cannot be compared.

    `difference` is the smallest difference of accuracy that matters, in percentage points; a true one of that size is
    missed with a probability of at most 1 - `power`.
    """
    cells = plan.runs
    if not (0 < difference <= 50 and 0.5 <= power < 1):
        raise SpecError("--difference is over 0 and at most 50 points, --power from 0.5 to under 1")
    if len(cells) < 2:
        raise SpecError(f"{plan.name} has one cell, and comparisons need two: add a matrix")
    if not all(cell.benchmark.right_or_wrong for cell in cells):
        raise SpecError("right and wrong answers are compared, and not those in words: name other data sets")
    keys = [{question.key for question in cell.question_set.questions} for cell in cells]
    if any(cell_keys != keys[0] for cell_keys in keys):
        raise SpecError("cells are compared on the same questions, and these select different ones")
    # Several comparisons share the level (Bonferroni).
    return SequentialTest(difference / 100, power, ALPHA / (len(cells) - 1))


def ask_by_blocks(
    spec: str, runs_dir: Path, difference: float, power: float
) -> tuple[dict[str, dict[str, Any]], list[StoredRun], Stop | None]:
    """Ask until every comparison with the first cell has ended, a limit is reached, or nobody answers any more.

    Returns how the comparison of each run ended, the runs that were asked, and why asking stopped early.
    """
    whole = plan_spec(spec, {}, runs_dir=runs_dir)
    test = find_test(whole, difference, power)
    total, scored, stop = len(whole.runs[0].question_set.questions), 0, None
    shared: dict[str, Any] = {"baseline": whole.runs[0].run_id, "questions": total, "level": test.level}
    records = [shared | {"ended": None} for _ in whole.runs[1:]]
    runs: dict[str, StoredRun] = {}
    block = max(LEAST_BLOCK, math.ceil(total / LOOKS))
    for limit in (*range(block, total, block), total):
        plan = plan_spec(spec, {"dataset.limit": limit}, runs_dir=runs_dir)
        first, *others = plan.runs
        going_on = [(cell, record) for cell, record in zip(others, records, strict=True) if not record["ended"]]
        cells = (first, *(cell for cell, _ in going_on))
        if limit < total:
            sets = [replace(cell.question_set, notes=(*cell.question_set.notes, EARLY)) for cell in cells]
            cells = tuple(replace(cell, question_set=items) for cell, items in zip(cells, sets, strict=True))
        if any(cell.pending for cell in cells):
            stored_runs, stop, *_ = carry_out(replace(plan, runs=cells))
            runs |= {run.folder.name: run for run in stored_runs}
        before = _find_right(first)
        for cell, record in going_on:
            look = _look(before, _find_right(cell), test)
            is_over = limit == total and look["n"] == total
            ended = test.decide(look["gained"], look["lost"], look["n"]) or (RAN_OUT if is_over else None)
            record |= {"asked": limit, "ended": ended, **look}
        # A block of which all failed tells that nobody answers any more.
        if stop is not None or len(before) <= scored or all(record["ended"] for record in records):
            break
        scored = len(before)
    ids = (cell.run_id for cell in whole.runs[1:])
    return dict(zip(ids, records, strict=True)), list(runs.values()), stop


def _look(before: Mapping[str, bool], after: Mapping[str, bool], test: SequentialTest) -> dict[str, Any]:
    """Weigh the answers that a run and its baseline both have scored."""
    pairs = [(before[key], after[key]) for key in before if key in after]
    n, gained = len(pairs), sum(run and not base for base, run in pairs)
    lost = sum(base and not run for base, run in pairs)
    e_values = {ending: float(value) for ending, value in test.evidence(gained, lost, n).items()}
    return {"n": n, "gained": gained, "lost": lost, **e_values, "interval": test.interval(gained, lost, n)}


def _find_right(cell: PlannedCell) -> dict[str, bool]:
    """Map each of the cell's questions that is scored to whether it is right."""
    outcomes = cell.folder.read_outcomes() if cell.folder.exists() else {}
    golds = cell.question_set.golds
    return {
        question.key: golds[question.key].accepts(outcomes[question.key].answer)
        for question in cell.question_set.questions
        if question.key in outcomes and outcomes[question.key].status is not Status.FAILED
    }
