"""The stored replies of a run as today's readers read them; nothing is asked, and nothing is written."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from medexam.event_loop import background_loop
from medexam.experiments.plan.cells import build_cell_program
from medexam.experiments.plan.planner import plan_resume
from medexam.experiments.store.derived_files import score_all
from medexam.experiments.store.items import load_items
from medexam.experiments.store.stored_run import StoredRun
from medexam.predictions import Prediction, Status
from medexam.programs import build_prediction, look
from medexam.programs.lm import build_lm, in_bulk
from medexam.programs.outcome import read_both


def read_today(run: StoredRun, say: Callable[[str], None]) -> StoredRun:
    """Return a run with its stored replies read by today's readers, and say in a line how many answers that changes.

    Its program is run, with code of the user's own that it names. An answer whose program asks otherwise today stays as
    it is, and is counted. Raises `MedExamError` where the run cannot be planned here.
    """
    if not run.record.cell.program.asks_model:
        return run
    stored = run.folder.read_predictions()
    predictions, unread = background_loop().run(_read(run, stored))
    changed = sum(
        any(getattr(before, name) != getattr(predictions[key], name) for name in ("status", "reason", "answer", "text"))
        for key, before in stored.items()
    )
    remainder = f"; {unread} cannot be read anew, since other calls would be made today" if unread else ""
    say(f"{run.folder.name}: {changed} of {len(stored)} answers are read otherwise by today's reader{remainder}")
    items = load_items(run.folder)
    return replace(run, metrics=score_all(run.folder, run.benchmark, items, predictions).metrics, files_fresh=False)


async def _read(run: StoredRun, stored: dict[str, Prediction]) -> tuple[dict[str, Prediction], int]:
    """Read every prediction anew; return those and how many stay as they are, since they cannot be read."""
    cell, items = run.record.cell, load_items(run.folder).questions
    if cell.program.asking.retrieval is None:
        program = build_cell_program(cell)
    else:
        # It needs its data and corpus; whatever version read its replies.
        path = run.folder.path
        planned = plan_resume(str(path), runs_dir=path.parent, but={"reader_version"}).runs[0]
        if planned.retrieval is not None:
            planned.retrieval.recall(items)
        program = planned.program
    questions, predictions, unread = {item.key: item for item in items}, dict(stored), 0
    others = {name: build_lm(model, None, asked=name) for name, model in cell.asked_models.items()}
    # Stored replies take the place of the engines.
    with in_bulk(build_lm(cell.model, None), others):
        for key, before in stored.items():
            if before.status is Status.FAILED or before.last_call is None or key not in questions:
                continue
            question, today = questions[key], await look(program, questions[key], before.calls)
            if today.output is None:
                unread += 1
                continue
            owner: dict[str, Any] = {"program": before.program, "spec_digest": before.spec_digest, "latency_s": 0.0}
            after = build_prediction(question, today.output, today.calls, **owner)
            fields = {name: getattr(before, name) for name in ("latency_s", "answered_by", "metric_score")}
            predictions[key] = await read_both(program, question, after.model_copy(update=fields))
    return predictions, unread
