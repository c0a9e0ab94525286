"""The stored replies of a run as today's readers read them; nothing is asked, and nothing is written."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from medexam.experiments.plan.cells import build_cell_program
from medexam.experiments.plan.planner import plan_resume
from medexam.experiments.store.derived_files import score_all
from medexam.experiments.store.items import load_items
from medexam.experiments.store.stored_run import StoredRun
from medexam.predictions import Prediction, Status
from medexam.process import background_loop
from medexam.programs import build_prediction, look
from medexam.programs.base import build_lm, in_bulk
from medexam.programs.outcome import read_both
from medexam.specs import CellSpec
from medexam.text import print_notice


def read_today(run: StoredRun) -> StoredRun:
    """Return a run with its stored replies read by today's readers, and say in a line how many answers that changes.

    Its program is run, with code of the user's own that it names. An answer whose program asks otherwise today stays as
    it is, and is counted. Raises `MedExamError` where the run cannot be planned here.
    """
    cell, folder = run.record.cell, run.folder
    if not cell.program.asks_model:
        return run
    items, stored = load_items(folder), folder.read_predictions()
    if cell.program.asking.retrieval is None:
        program = build_cell_program(cell)
    else:
        # It needs its data and corpus; whatever version read its replies.
        (planned,) = plan_resume(folder, but={"reader_version"}).runs
        if planned.retrieval is not None:
            planned.retrieval.recall(items.questions)
        program = planned.program
    calls = {key: one for key, one in stored.items() if one.status is not Status.FAILED and one.last_call is not None}
    pairs = [(question, calls[question.key]) for question in items.questions if question.key in calls]
    predictions = background_loop().run(_read(cell, program, pairs))
    unread, changed = len(pairs) - len(predictions), 0
    for key, today in predictions.items():
        fields = ("status", "reason", "answer", "text")
        changed += any(getattr(stored[key], name) != getattr(today, name) for name in fields)
    remainder = f"; {unread} cannot be read anew, since other calls would be made today" if unread else ""
    print_notice(f"{folder.name}: {changed} of {len(stored)} answers are read otherwise by today's reader{remainder}")
    metrics = score_all(folder, cell.metrics, run.benchmark, items, {**stored, **predictions}).metrics
    return replace(run, metrics=metrics)


async def _read(cell: CellSpec, program: Any, pairs: Sequence[tuple[Any, Prediction]]) -> dict[str, Prediction]:
    """Read each question's prediction anew, by key; what cannot be read is left out."""
    predictions = {}
    others = {name: build_lm(model, None, asked=name) for name, model in cell.asked_models.items()}
    # Stored replies take the place of the engines.
    with in_bulk(build_lm(cell.model, None), others):
        for question, before in pairs:
            today = await look(program, question, before.calls)
            if today.output is None:
                continue
            owner: dict[str, Any] = {name: getattr(before, name) for name in ("program", "spec_digest", "latency_s")}
            kept = {name: getattr(before, name) for name in ("answered_by", "metric_score")}
            after = build_prediction(question, today.output, today.calls, **owner).model_copy(update=kept)
            predictions[question.key] = await read_both(program, question, after)
    return predictions
