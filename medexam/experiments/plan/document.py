"""A plan as data and in words: its runs, a real prompt of each, what they need, and what they cost."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import util
from typing import Any

from medexam.errors import EngineError, SpecError
from medexam.event_loop import background_loop
from medexam.experiments.plan.cells import Plan, PlannedCell, nearest_of
from medexam.experiments.store.environment import list_prices
from medexam.programs.own import OwnProgram
from medexam.programs.stored_calls import look
from medexam.questions import Question, Task
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.engines.provider import read_tables
from medexam.serve.request_settings import thinking_room
from medexam.signatures.answer_format import answer_opening, render_answer
from medexam.specs import ModelSpec
from medexam.specs.identity import distinct_labels
from medexam.tables import Table

_USUAL_KEYS = frozenset(
    f"{provider}_API_KEY" for provider in ("OPENAI", "ANTHROPIC", "GROQ", "MISTRAL", "DEEPSEEK", "OPENROUTER", "XAI")
)
"""Variables that hold the key of providers whose name they begin with."""
_PACKAGES = {
    "bm25": {"bm25s": "bm25s", "Stemmer": "PyStemmer"},
    "retrieval": {"datasets": "datasets", "faiss": "faiss-cpu", "sentence_transformers": "sentence-transformers"},
    "local": {"torch": "torch", "transformers": "transformers", "accelerate": "accelerate"},
}
"""Extra -> its modules that are imported, and the packages that they come in."""


_SAMPLE_SIZE = 40
"""Questions whose prompts are counted, spread over all that are pending."""


def plan_document(plan: Plan) -> list[dict[str, Any]]:
    """Build the plan as JSON-ready data, one entry a cell; a run whose corpus is not here has no id and no digest.

    `capabilities` is what litellm's tables say of a hosted model, None of others.
    """
    records = {name: record.model_dump(mode="json") for name, record in read_records(plan.cells).items()}
    cells = [planned.cell for planned in plan.cells]
    # Model and language have columns of their own, so cells that differ in them need no other name.
    behind = [f"\n{cell.model.label}\n{cell.dataset.language}" for cell in cells]
    labels = [cell.program.label + columns for cell, columns in zip(cells, behind, strict=True)]
    entries = []
    for planned, columns, label in zip(plan.cells, behind, distinct_labels(labels, cells), strict=True):
        cell, is_here = planned.cell, planned.retrieval is None or planned.retrieval.size is not None
        prompt, faults = _look(planned, planned.question_set.questions[0])
        further = cell.asked_models if planned.asks_model else {}
        calls = {cell.model.label: planned.count_calls(None)} if further else {}
        calls |= {f"{name}: {model.label}": planned.count_calls(name) for name, model in further.items()}
        may_ask_again = any(part.may_ask_again for _, part in planned.program.named_sub_modules(OwnProgram))
        entries.append(
            {
                "run_id": planned.run_id if is_here else None,
                "spec_digest": planned.spec_digest if is_here else None,
                "program": label.replace(columns, ""),
                "model": cell.model.label if planned.asks_model else None,
                "capabilities": records.get(cell.model.name or "") if planned.asks_model else None,
                "dataset": cell.dataset.name,
                "language": cell.dataset.language,
                "questions": len(planned.question_set.questions),
                "owed": len(planned.pending),
                "calls": planned.count_calls(),
                **({"calls_are_least": True} if may_ask_again else {}),
                **({"calls_by_model": calls} if calls else {}),
                "warnings": [*planned.warnings, *faults, *_warn_of_form(planned, prompt)],
                "prompt": prompt,
            }
        )
    return entries


def _warn_of_form(planned: PlannedCell, prompt: Sequence[Mapping[str, str]]) -> list[str]:
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
        "Questions": [f"{entry['questions']:,}" for entry in entries],
        "Pending": [f"{entry['owed']:,}" for entry in entries],
        "Calls": [f"{'at least ' * ('calls_are_least' in entry)}{entry['calls']:,}" for entry in entries],
    }
    rows = tuple(zip(*words.values(), *numbers.values(), strict=True))
    return Table(title, (*words, *numbers), rows, text_columns=len(words))


def prompt_of(planned: PlannedCell, question: Question | Task) -> list[dict[str, str]]:
    """Return the chat messages of the first call for a question, a line for its picture; empty if none is made."""
    return _look(planned, question)[0]


def _look(planned: PlannedCell, question: Question | Task) -> tuple[list[dict[str, str]], list[str]]:
    """Return what `prompt_of` does, and what a module of the user's own raises before it asks: one line, or none."""
    if not planned.asks_model:
        return [], []
    calls, _, fault = background_loop().run(look(planned.build_preview([question]), question))
    if not calls and fault is not None:
        message = " ".join(str(fault).split())
        reason = message if fault.kind in message else f"{fault.kind}: {message}"
        return [], [f"program {planned.cell.program.label} fails the first question before it asks: {reason}"]
    if not calls:
        return [], []
    messages = [dict(message) for message in calls[0].messages] or [{"role": "user", "content": calls[0].prompt or ""}]
    if isinstance(question, Question) and question.picture is not None:
        last = next(message for message in reversed(messages) if message["role"] == "user")
        kind, _, data = question.picture.removeprefix("data:").partition(";base64,")
        last["content"] = f"[picture: {kind}, {len(data) * 3 // 4 / 1000:.1f} kB]\n\n{last['content']}"
    return messages, []


def read_records(cells: Sequence[PlannedCell]) -> dict[str, Capabilities]:
    """Read what the tables say of each model that a provider bills, by name; raises `EngineError` for no provider."""
    models = [planned.cell.model for planned in cells if planned.asks_model and planned.cell.model.is_billed]
    return {name: read_tables(name) for name in dict.fromkeys(model.name for model in models) if name is not None}


def check_ready(cells: Sequence[PlannedCell]) -> None:
    """Raise `EngineError` for a name of no provider or a key that is in no variable, and `SpecError` for a package that
    is missing.
    """
    cells = [planned for planned in cells if planned.pending]
    for planned in cells:
        model = planned.cell.model
        # litellm, which knows all of them, takes seconds to import.
        variable = f"{(model.name or '').partition('/')[0].upper()}_API_KEY"
        needs_key = planned.asks_model and model.is_billed and not (_names_key(model) or model.endpoints)
        if needs_key and variable in _USUAL_KEYS and not os.environ.get(variable):
            raise EngineError(
                f"{model.name} needs a key: set {variable} in the environment, or name another variable in "
                "model.api_key_env"
            )
        retriever = planned.retrieval and planned.retrieval.settings.retriever
        extras = {
            "local": planned.asks_model and any(model.engine == "embedded" for model in planned.models),
            "bm25": retriever and retriever.uses_words,
            "retrieval": nearest_of(planned.program) or (retriever and (retriever.uses_vectors or retriever.rerank)),
        }
        for extra in (name for name, is_needed in extras.items() if is_needed):
            missing = [package for module, package in _PACKAGES[extra].items() if util.find_spec(module) is None]
            if missing:
                raise SpecError(
                    f"{planned.run_id} needs {', '.join(missing)}, so nothing is asked: pip install 'medexam[{extra}]'"
                )
    records = read_records(cells)
    for model in (planned.cell.model for planned in cells):
        record = None if _names_key(model) else records.get(model.name or "")
        if record is not None and (request := record.missing_key) is not None:
            raise EngineError(request)


def _names_key(model: ModelSpec) -> bool:
    return bool(model.api_key_env or model.api_key_file)


def describe_records(cells: Sequence[PlannedCell]) -> list[str]:
    """Describe in a line each hosted model: what it takes, by the tables."""
    lines = []
    for name, record in read_records(cells).items():
        traits = record.describe()
        if (request := record.missing_key) is not None:
            lines.append(f"{request}.")
        described = (f"{trait}: {traits[trait]}" for trait in ("guided", "seeds", "thinking", "price"))
        lines.append(f"{name}, by litellm's tables: {'; '.join(described)}.")
    return lines


def find_most(planned: PlannedCell) -> tuple[int, int, float]:
    """Find how many calls, tokens and dollars a pending question takes at most, as far as its first prompt tells."""
    all_calls, tokens, usd, ones = 0, 0, 0.0, _sample(planned)
    for name, model in planned.named_models.items():
        calls = max((one.count_calls(name) for one in ones), default=0)
        prompt, reply = max(_prompt_sizes(ones, model), default=0), _longest_reply(planned, model)
        prices = list_prices(model) or {"prompt_usd": 0.0, "completion_usd": 0.0}
        all_calls, tokens = all_calls + calls, tokens + calls * (prompt + reply)
        usd += calls * (prompt * prices["prompt_usd"] + reply * prices["completion_usd"])
    return max(all_calls, 1), tokens, usd


def _estimate(cells: Sequence[PlannedCell]) -> tuple[float, float] | None:
    """Estimate the dollars of the pending prompts, as if each call showed the first one, and of all at most.

    None where nothing is billed or no price is known.
    """
    prompts, most, has_price = 0.0, 0.0, False
    for planned in (one for one in cells if one.asks_model and one.pending):
        for name, model in planned.named_models.items():
            if (prices := list_prices(model)) is not None:
                calls, sizes = planned.count_calls(name), _prompt_sizes(_sample(planned), model)
                usd = calls * sum(sizes) / len(sizes) * prices["prompt_usd"]
                replies_usd = calls * _longest_reply(planned, model) * prices["completion_usd"]
                prompts, most, has_price = prompts + usd, most + usd + replies_usd, True
    return (prompts, most) if has_price else None


def _sample(planned: PlannedCell) -> list[PlannedCell]:
    """Return the cell with one of its pending questions, for some of them."""
    step = max(len(planned.pending) // _SAMPLE_SIZE, 1)
    return [replace(planned, pending=(question,)) for question in planned.pending[::step]]


def _prompt_sizes(ones: Sequence[PlannedCell], model: ModelSpec) -> list[int]:
    """Count the tokens of the first prompts of the pending questions."""
    prompts = [prompt_of(one, one.pending[0]) for one in ones]
    return [get_litellm().token_counter(model=model.name or "", messages=prompt) for prompt in prompts]


def _longest_reply(planned: PlannedCell, model: ModelSpec) -> int:
    """Count the tokens that a reply of the program may have, with those of its thinking."""
    budget = planned.cell.program.budget(model.max_tokens)
    reply_tokens = max(budget.values()) if isinstance(budget, Mapping) else budget or 0
    if model.endpoints or not model.is_billed or not reply_tokens:
        return reply_tokens
    return reply_tokens + thinking_room(model, thinks=bool(read_tables(str(model.name)).thinks))


def _dollars(usd: float) -> str:
    """Format dollars and cents, with more places of what is less than ten cents."""
    return f"${usd:.2f}" if usd >= 0.1 or not usd else f"${usd:.4f}"


def describe_prices(cells: Sequence[PlannedCell]) -> str | None:
    """Describe in a line what the pending calls cost at most; None where nothing is billed or no price is known."""
    if (estimate := _estimate(cells)) is None:
        return None
    by_spec = all(model.price is not None for planned in cells for model in planned.models)
    source = "the given price" if by_spec else "litellm's list"
    prompts, most = map(_dollars, estimate)
    return f"Price, by {source}: {prompts} for prompts, at most {most} with the longest replies."


def describe_excess(cells: Sequence[PlannedCell], max_cost: float | None) -> str | None:
    """Describe in a line that a plan may cost more than its limit; None where it cannot, as far as is known."""
    most = 0.0 if max_cost is None else (_estimate(cells) or (0.0, 0.0))[1]
    if max_cost is None or most <= max_cost:
        return None
    return f"the plan may cost {_dollars(most)}, and --max-cost is {_dollars(max_cost)}: it may stop before its end"
