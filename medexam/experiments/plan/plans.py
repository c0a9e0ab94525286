"""Plans: the runs of an experiment before anything is asked, what they need and cost, and a real prompt of each."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import util
from pathlib import Path
from typing import Any

from medexam.errors import EngineError, SpecError
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.store.environment import list_prices
from medexam.measures.margins import FLIPPED, detectable_difference
from medexam.process import background_loop
from medexam.programs.outcome import look
from medexam.programs.own import OwnProgram
from medexam.programs.wrapping import find_nearest
from medexam.questions import Question, Task
from medexam.signatures.answer_format import answer_opening, render_answer
from medexam.specs import ModelSpec
from medexam.specs.identity import distinct_labels
from medexam.tables import Table, percent
from medexam.text import nearest

_USUAL_KEYS = frozenset(
    f"{provider}_API_KEY" for provider in ("OPENAI", "ANTHROPIC", "GROQ", "MISTRAL", "DEEPSEEK", "OPENROUTER", "XAI")
)
"""Variables that hold the key of providers whose name they begin with."""
_PACKAGES = {"bm25": "bm25s", "retrieval": "sentence_transformers", "local": "transformers"}
"""Extra -> a package of it."""
_SAMPLE_SIZE = 40
"""Questions whose prompts are counted, spread over all that are pending."""
_FREE = {"prompt_usd": 0.0, "completion_usd": 0.0}


@dataclass(frozen=True, repr=False)
class Plan(Displayed):
    """An experiment, several, or one run: it is carried out, and shows its runs, what they need, and what they cost."""

    name: str
    """The experiments'."""
    runs: tuple[PlannedCell, ...]
    runs_dir: Path
    documents: Sequence[Mapping[str, Any]] = ()
    """The specs that it was made of."""

    @cached_property
    def cells(self) -> list[dict[str, Any]]:
        """One entry a run, as `medexam plan --json` prints it, with the first question's `prompt`.

        A run whose corpus is not here has no id and no digest.
        """
        cells = [run.cell for run in self.runs]
        # Model and language have columns of their own, so cells that differ in them need no other name.
        behind = [f"\n{cell.model.label}\n{cell.dataset.language}" for cell in cells]
        labels = distinct_labels([cell.program.label + end for cell, end in zip(cells, behind, strict=True)], cells)
        return [
            _describe(run, label.replace(end, "")) for run, end, label in zip(self.runs, behind, labels, strict=True)
        ]

    @property
    def notes(self) -> list[str]:
        """What a user should know before it is carried out, a line each; usually none."""
        warnings = [f"warning: {warning}" for run in self.runs for warning in run.warnings]
        runs = [run for run in self.runs if not run.folder.repeat_number]
        news = [
            f"run {run.run_id}: golds of its data have changed since it was scored; its scores are made again"
            for run in runs
            if run.folder.exists() and run.folder.read_record().dataset_golds != run.question_set.golds_fingerprint
        ]
        return list(dict.fromkeys([*warnings, *filter(None, [run.lent_note for run in runs]), *news]))

    def check_ready(self) -> None:
        """Raise `EngineError` for a name of no provider or a missing key, and `SpecError` for a missing package."""
        runs = [run for run in self.runs if run.pending]
        for name, model in _find_billed(runs).items():
            has_place, variable = bool(model.api_key_env), f"{name.partition('/')[0].upper()}_API_KEY"
            # litellm, which knows all of them, takes seconds to import.
            if has_place or model.endpoints or variable not in _USUAL_KEYS or os.environ.get(variable):
                request = _missing_key(name)
            else:
                request = f"{name} needs a key: set {variable} in the environment, or name another in model.api_key_env"
            if request is not None and not has_place:
                raise EngineError(request)
        for run in runs:
            retriever, reads = run.retrieval and run.retrieval.settings.retriever, run.cell.program.asking.local_reader
            extras = {
                "local": bool(reads) or any(model.engine == "embedded" for model in run.models.values()),
                "bm25": retriever and retriever.uses_words,
                "retrieval": find_nearest(run.program) or (retriever and (retriever.uses_vectors or retriever.rerank)),
            }
            for extra in (name for name, is_needed in extras.items() if is_needed):
                if util.find_spec(_PACKAGES[extra]) is None:
                    raise SpecError(
                        f"{run.run_id} needs {_PACKAGES[extra]}, so nothing is asked: pip install 'medexam[{extra}]'"
                    )

    @cached_property
    def expected_usd(self) -> tuple[float, float] | None:
        """The dollars of the pending calls' prompts, and with the longest replies, as if each showed the first prompt;
        None where nothing is billed or no price is known.
        """
        prompts_usd, replies_usd, has_price = 0.0, 0.0, False
        for run in (one for one in self.runs if one.pending):
            for name, sizes, reply, prices in _sizes(run, priced=True):
                calls, has_price = run.count_calls(name), True
                prompts_usd += calls * sum(sizes) / len(sizes) * prices["prompt_usd"]
                replies_usd += calls * reply * prices["completion_usd"]
        return (prompts_usd, prompts_usd + replies_usd) if has_price else None

    def describe_excess(self, max_cost: float | None) -> str | None:
        """Describe in a line that it may cost more than its limit; None where it cannot, as far as is known."""
        if max_cost is None or self.expected_usd is None or (most := self.expected_usd[1]) <= max_cost:
            return None
        return f"the plan may cost ${most:.4f}, and --max-cost is ${max_cost:.4f}: it may stop before its end"

    def _describe_prices(self) -> str | None:
        if self.expected_usd is None:
            return None
        by_spec = all(model.price is not None for run in self.runs for model in run.models.values())
        source = "the given price" if by_spec else "litellm's list"
        # More places of what is less than ten cents.
        prompts, most = (f"${usd:.{2 if usd >= 0.1 or not usd else 4}f}" for usd in self.expected_usd)
        return f"Price, by {source}: {prompts} for prompts, at most {most} with the longest replies."

    def blocks(self) -> list[Block]:
        """Show the runs with their questions and calls, then a prompt of each."""
        pairs = list(zip(self.runs, self.cells, strict=True))
        blocks: list[Block] = [_cells_table(self.name, self.cells)]
        blocks += filter(None, [_describe_power(self.runs), self._describe_prices()])
        for run, entry in pairs:
            if entry["calls"] and (calls := entry.get("calls_by_model")):
                counts = ", ".join(f"{model} at most {count:,}" for model, count in calls.items())
                blocks.append(f"Calls of {run.label}: {counts}.")
        requests = map(_missing_key, _find_billed(self.runs))
        blocks += [f"{request}." for request in filter(None, requests)]
        blocks += filter(None, map(_describe_unknown, _find_billed(self.runs)))
        # The others stand on stderr, as before a run.
        blocks += [f"Warning: {one}" for run, entry in pairs for one in entry["warnings"] if one not in run.warnings]
        for run, entry in pairs:
            if turns := tuple((turn["role"], turn["content"]) for turn in entry["prompt"]):
                blocks.append(Table(f"First prompt: {run.label}", ("Role", "Text"), turns, text_columns=2))
        return blocks


def _describe(run: PlannedCell, program: str) -> dict[str, Any]:
    cell, is_here = run.cell, run.retrieval is None or run.retrieval.planned is not None
    prompt, faults = _look(run, run.question_set.questions[0])
    names: dict[str | None, str] = {name: f"{name}: {model.label}" for name, model in cell.asked_models.items()}
    calls = {name: run.count_calls(key) for key, name in ({None: cell.model.label} | names).items()} if names else {}
    may_ask_again = any(part.may_ask_again for _, part in run.program.named_sub_modules(OwnProgram))
    return {
        "run_id": run.run_id if is_here else None,
        "spec_digest": run.spec_digest if is_here else None,
        "program": program,
        "model": cell.model.label if run.asks_model else None,
        "dataset": cell.dataset.name,
        "language": cell.dataset.language,
        "questions": len(run.question_set.questions),
        "owed": len(run.pending),
        "calls": run.count_calls(),
        **({"calls_are_least": True} if may_ask_again else {}),
        **({"calls_by_model": calls} if calls else {}),
        "warnings": [*run.warnings, *faults, *_warn_of_form(run, prompt)],
        "prompt": prompt,
    }


def _warn_of_form(planned: PlannedCell, prompt: Sequence[Mapping[str, str]]) -> list[str]:
    """Warn of a prompt of one's own whose reply is read in a form that it does not say; usually empty."""
    program = planned.cell.program
    form, file = getattr(program, "answer_form", None), str(getattr(program, "prompt", ""))
    is_free = getattr(program, "answer_format", None) == "free"
    if form is None or not (is_free and prompt and file.endswith((".yaml", ".yml"))):
        return []
    answer, texts = render_answer("n", form), [turn["content"] for turn in prompt]
    if any(answer_opening(form).strip() in text for text in texts):
        return []
    return [
        f"{file} does not say how to answer, so few replies can be read: put $form, which becomes {answer}, into it"
    ]


def _cells_table(name: str, entries: Sequence[Mapping[str, Any]]) -> Table:
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


def _describe_power(cells: Sequence[PlannedCell]) -> str | None:
    """Describe how small a difference between two runs their questions show; None for a single run."""
    sizes = [len(cell.question_set.questions) for cell in cells if cell.benchmark.right_or_wrong]
    if len(sizes) < 2:
        return None
    difference, n = detectable_difference(min(sizes), FLIPPED), f"{min(sizes):,} questions"
    if difference is None:
        return f"{n} are too few to detect a difference between two runs."
    return (
        f"With {n} you will usually detect only differences above {percent(difference)} percentage points between two "
        "runs (80 % power by McNemar's test, if 3 of 10 are right in one run alone)."
    )


def _look(planned: PlannedCell, question: Question | Task) -> tuple[list[dict[str, str]], list[str]]:
    """Return the chat messages of the first call for a question, a line for its picture, and what a module of the
    user's own raises before it asks: one line, or none.
    """
    if not planned.asks_model:
        return [], []
    with planned.retrieval.marked([question]) if planned.retrieval else nullcontext():
        calls, _, fault = background_loop().run(look(planned.program, question))
    if not calls and fault:
        message = " ".join(str(fault).split())
        reason = message if fault.kind in message else f"{fault.kind}: {message}"
        return [], [f"program {planned.cell.program.label} fails the first question before it asks: {reason}"]
    if not calls:
        return [], []
    messages = [dict(message) for message in calls[0].messages] or [{"role": "user", "content": calls[0].prompt or ""}]
    if isinstance(question, Question) and question.picture:
        last = next(message for message in reversed(messages) if message["role"] == "user")
        kind, _, data = question.picture.removeprefix("data:").partition(";base64,")
        last["content"] = f"[picture: {kind}, {len(data) * 3 // 4 / 1000:.1f} kB]\n\n{last['content']}"
    return messages, []


def _describe_unknown(model: str) -> str | None:
    """Say which name of litellm's list was probably meant; None for a name of the list, or near none of it."""
    from medexam.serve.engines.litellm_calls import get_litellm

    provider, _, name = model.partition("/")
    names = [each.removeprefix(f"{provider}/") for each in get_litellm().models_by_provider.get(provider, ())]
    suggestion = "" if name in names else nearest(name, sorted(names))
    return f"litellm's list has no {model}: did you mean {suggestion}?" if suggestion else None


def _find_billed(runs: Sequence[PlannedCell]) -> dict[str, ModelSpec]:
    models = [model for run in runs for model in run.models.values() if model.is_billed]
    return {model.name: model for model in models if model.name is not None}


def _missing_key(model: str) -> str | None:
    # Imported here: a plan that asks no provider needs none of what asks them.
    from medexam.serve.engines.provider import read_tables

    return read_tables(model).missing_key


def _sample(planned: PlannedCell) -> Sequence[Any]:
    return planned.pending[:: max(len(planned.pending) // _SAMPLE_SIZE, 1)]


def _sizes(planned: PlannedCell, *, priced: bool) -> Iterator[tuple[str | None, list[int], int, Mapping[str, float]]]:
    """Yield of each model that a cell asks, or of those with a price if `priced`: its name, the tokens of the first
    prompts of some pending questions, those that a reply may have with its thinking, and its prices.
    """
    from medexam.serve.engines.litellm_calls import get_litellm
    from medexam.serve.engines.provider import read_tables
    from medexam.serve.request_settings import thinking_room

    models = {name: (model, list_prices(model)) for name, model in planned.models.items()}
    models = {name: pair for name, pair in models.items() if pair[1] is not None or not priced}
    prompts = [_look(planned, question)[0] for question in _sample(planned)] if models else []
    for name, (model, prices) in models.items():
        tokens = [get_litellm().token_counter(model=model.name or "", messages=prompt) for prompt in prompts]
        budget = planned.cell.program.budget(model.max_tokens)
        reply = max(budget.values()) if isinstance(budget, Mapping) else budget or 0
        if reply and model.is_billed and not model.endpoints:
            reply += thinking_room(model, thinks=bool(read_tables(str(model.name)).thinks))
        yield name, tokens, reply, prices or _FREE


def find_most(planned: PlannedCell) -> tuple[int, int, float]:
    """Find how many calls, tokens and dollars a pending question takes at most, as far as its first prompt tells."""
    all_calls, all_tokens, usd = 0, 0, 0.0
    ones = [replace(planned, pending=(question,)) for question in _sample(planned)]
    for name, sizes, reply, prices in _sizes(planned, priced=False):
        calls, prompt = max((one.count_calls(name) for one in ones), default=0), max(sizes, default=0)
        all_calls, all_tokens = all_calls + calls, all_tokens + calls * (prompt + reply)
        usd += calls * (prompt * prices["prompt_usd"] + reply * prices["completion_usd"])
    return max(all_calls, 1), all_tokens, usd
