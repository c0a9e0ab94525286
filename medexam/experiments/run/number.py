"""How many processes of this machine ask a plan's questions, and whether several can."""

import os
from collections.abc import Sequence
from typing import Literal

from medexam.errors import SpecError
from medexam.experiments.plan.cells import AnyCell

Wanted = int | Literal["auto"] | None
"""How many workers a user wants; None: the executor's default."""
QUESTIONS_EACH = 10_000
"""Questions that make a process worth its start: it takes 3 s, in which one that is there asks as many."""


def choose_number(cells: Sequence[AnyCell], workers: Wanted) -> tuple[int, str]:
    """Choose how many processes ask the cells, and say why; 1 stands for this process.

    `auto` is as many as help, None is 1. Raises `SpecError` if several are wanted and a cell can have one alone.
    """
    if workers is None or workers == 1:
        return 1, ""
    reason = next(filter(None, map(_why_one_alone, cells)), "")
    pending = sum(len(planned.pending) for planned in cells)
    if workers != "auto":
        if reason:
            raise SpecError(f"--workers {workers}: {reason}; leave --workers out")
        return min(workers, pending), "as --workers says"
    if reason or (reason := next(filter(None, map(_why_rather_one, cells)), "")):
        return 1, reason
    cores, helpful = usable_cores(), max(1, pending // QUESTIONS_EACH)
    if helpful < cores:
        return helpful, f"one for each {QUESTIONS_EACH:,} of {pending:,} questions"
    return cores, f"one for each of {cores} cores"


def _why_one_alone(planned: AnyCell) -> str:
    """Name what a cell has that several processes of a machine cannot share; empty if nothing."""
    for model in planned.models:
        if model.ask_engine("works_in_folder"):
            return f"engine {model.engine} submits and waits in one process"
        if model.loads_weights:
            return "engine embedded holds the model in the process that asks"
        if model.start:
            return "model.start starts a server for one process; several processes need one of `medexam serve`"
    return "program.reader reads passages in the process that asks" if planned.cell.program.local_reader else ""


def _why_rather_one(planned: AnyCell) -> str:
    """Name what a cell has that every process would hold once more; empty if nothing."""
    if any(model.is_own for model in planned.models):
        return "an engine of your own may hold the model"
    if planned.retrieval is not None and planned.retrieval.settings.query == "written":
        return "each process would open the index"
    return ""


def usable_cores() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
