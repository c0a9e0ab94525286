"""A plan as data: the runs of an experiment, and a real prompt of each."""

from typing import Any

from medexam.experiments.plan.cells import AnyCell, Plan
from medexam.experiments.plan.hosted import read_records
from medexam.programs import AskingProgram, replay
from medexam.questions import Question
from medexam.tasks import Task


def plan_document(plan: Plan) -> list[dict[str, Any]]:
    """Build the plan as JSON-ready data, one entry a cell; a run whose corpus is not here has no id and no digest.

    `capabilities` is what litellm's tables say of a hosted model, None of others.
    """
    records = {name: record.model_dump(mode="json") for name, record in read_records(plan.cells).items()}
    return [
        {
            "run_id": planned.folder.name if planned.corpus_is_here else None,
            "spec_digest": planned.spec_digest if planned.corpus_is_here else None,
            "program": planned.cell.program.label,
            "model": planned.cell.model.label if planned.asks_model else None,
            "capabilities": records.get(planned.cell.model.name or "") if planned.asks_model else None,
            "dataset": planned.cell.dataset.name,
            "language": planned.cell.dataset.language,
            "questions": len(planned.question_set.questions),
            "owed": len(planned.pending),
            "calls": planned.calls,
            "warnings": list(planned.warnings),
            "prompt": prompt_of(planned, planned.question_set.questions[0]),
        }
        for planned in plan.cells
    ]


def prompt_of(planned: AnyCell, question: Question | Task) -> list[dict[str, str]]:
    """Render the chat messages of the first call for a question, a line for its picture; empty for a control."""
    program = planned.build_preview([question])
    if not isinstance(program, AskingProgram):
        return []
    if program.replayed:
        return replay(program, question, ())[0][0]
    call = next(program.steps(question))
    demonstrations = call.inputs.get("demos", call.predictor.demos)
    messages: list[dict[str, str]] = program.adapter.format(call.predictor.signature, demonstrations, call.inputs)
    if isinstance(question, Question) and question.picture is not None:
        last = next(message for message in reversed(messages) if message["role"] == "user")
        last["content"] = f"{_describe(question.picture)}\n\n{last['content']}"
    return messages


def _describe(picture: str) -> str:
    kind, _, data = picture.removeprefix("data:").partition(";base64,")
    return f"[picture: {kind}, {len(data) * 3 // 4 / 1000:.1f} kB]"
