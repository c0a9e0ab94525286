"""A plan as data: the runs of an experiment, and a real prompt of each."""

from collections.abc import Mapping, Sequence
from typing import Any

from medexam.errors import ProgramFaultError
from medexam.event_loop import background_loop
from medexam.experiments.plan.cells import AnyCell, Plan
from medexam.experiments.plan.hosted import read_records
from medexam.programs.own import OwnProgram
from medexam.programs.stored_calls import look
from medexam.questions import Question, Task
from medexam.signatures.answer_format import answer_opening, render_answer
from medexam.specs.identity import distinct_labels
from medexam.tables import Table


def plan_document(plan: Plan) -> list[dict[str, Any]]:
    """Build the plan as JSON-ready data, one entry a cell; a run whose corpus is not here has no id and no digest.

    `capabilities` is what litellm's tables say of a hosted model, None of others.
    """
    records = {name: record.model_dump(mode="json") for name, record in read_records(plan.cells).items()}
    cells = [planned.cell for planned in plan.cells]
    # Model and language have columns of their own, so cells that differ in them need no other name.
    behind = [f"\n{cell.model.label}\n{cell.dataset.language}" for cell in cells]
    labels = [cell.program.label + columns for cell, columns in zip(cells, behind, strict=True)]
    programs = [
        label.replace(columns, "") for label, columns in zip(distinct_labels(labels, cells), behind, strict=True)
    ]
    prompts_and_faults = [_look(planned, planned.question_set.questions[0]) for planned in plan.cells]
    return [
        {
            "run_id": planned.folder.name if planned.corpus_is_here else None,
            "spec_digest": planned.spec_digest if planned.corpus_is_here else None,
            "program": program,
            "model": planned.cell.model.label if planned.asks_model else None,
            "capabilities": records.get(planned.cell.model.name or "") if planned.asks_model else None,
            "dataset": planned.cell.dataset.name,
            "language": planned.cell.dataset.language,
            "questions": len(planned.question_set.questions),
            "owed": len(planned.pending),
            "calls": planned.calls,
            **({"calls_are_least": True} if _may_ask_again(planned) else {}),
            **({"calls_by_model": calls} if (calls := _calls_by_model(planned)) else {}),
            "warnings": [*planned.warnings, *faults, *_unsaid_form(planned, prompt)],
            "prompt": prompt,
        }
        for planned, program, (prompt, faults) in zip(plan.cells, programs, prompts_and_faults, strict=True)
    ]


def _unsaid_form(planned: AnyCell, prompt: Sequence[Mapping[str, str]]) -> list[str]:
    """Warn of a prompt of one's own whose reply is read in a form that it does not say; usually empty."""
    program = planned.cell.program
    form, file = getattr(program, "answer_form", None), str(getattr(program, "prompt", ""))
    if form is None or getattr(program, "answer_format", None) != "free" or not file.endswith((".yaml", ".yml")):
        return []
    if not prompt or any(answer_opening(form).strip() in turn["content"] for turn in prompt):
        return []
    answer = render_answer("n", form)
    return [
        f"{file} does not say how to answer, so few replies can be read: put $form, which becomes {answer}, into it"
    ]


def cells_table(name: str, entries: Sequence[Mapping[str, Any]]) -> Table:
    """Build a row a cell; what is the same in all of them stands in the title."""
    words = {
        "Program": [entry["program"] for entry in entries],
        "Model": [entry["model"] or "none" for entry in entries],
        "Data set": [entry["dataset"] for entry in entries],
        "Language": [entry["language"] for entry in entries],
    }
    shared_headers = [name for name, values in words.items() if name != "Program" and len(set(values)) == 1]
    title = " · ".join([name, *(words.pop(header)[0] for header in shared_headers)])
    numbers = {
        header: [f"{entry[key]:,}" for entry in entries]
        for header, key in (("Questions", "questions"), ("Pending", "owed"), ("Calls", "calls"))
    }
    at_least = ["at least " if entry.get("calls_are_least") else "" for entry in entries]
    numbers["Calls"] = [bound + count for bound, count in zip(at_least, numbers["Calls"], strict=True)]
    rows = tuple(zip(*words.values(), *numbers.values(), strict=True))
    return Table(title, (*words, *numbers), rows, text_columns=len(words))


def _may_ask_again(planned: AnyCell) -> bool:
    """Return whether a module of the user's own may ask more often than its predictors are counted."""
    return any(part.may_ask_again for _, part in planned.program.named_sub_modules(OwnProgram))


def _calls_by_model(planned: AnyCell) -> dict[str, int]:
    """Count the most calls of each model by its label; empty where one alone is asked."""
    further = planned.cell.asked_models if planned.asks_model else {}
    counts = {planned.cell.model.label: planned.calls_of(None)} if further else {}
    return {**counts, **{f"{name}: {model.label}": planned.calls_of(name) for name, model in further.items()}}


def prompt_of(planned: AnyCell, question: Question | Task) -> list[dict[str, str]]:
    """Return the chat messages of the first call for a question, a line for its picture; empty if none is made."""
    return _look(planned, question)[0]


def _look(planned: AnyCell, question: Question | Task) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """Return what `prompt_of` does, and what a module of the user's own raises before it asks: one line, or none."""
    if not planned.asks_model:
        return [], ()
    calls, _, fault = background_loop().run(look(planned.build_preview([question]), question))
    if not calls:
        return [], () if fault is None else (_describe_fault(planned, fault),)
    messages = [dict(message) for message in calls[0].messages] or [{"role": "user", "content": calls[0].prompt or ""}]
    if isinstance(question, Question) and question.picture is not None:
        last = next(message for message in reversed(messages) if message["role"] == "user")
        last["content"] = f"{_describe(question.picture)}\n\n{last['content']}"
    return messages, ()


def _describe_fault(planned: AnyCell, fault: ProgramFaultError) -> str:
    message = " ".join(str(fault).split())
    reason = message if fault.kind in message else f"{fault.kind}: {message}"
    return f"program {planned.cell.program.label} fails the first question before it asks: {reason}"


def _describe(picture: str) -> str:
    kind, _, data = picture.removeprefix("data:").partition(";base64,")
    return f"[picture: {kind}, {len(data) * 3 // 4 / 1000:.1f} kB]"
