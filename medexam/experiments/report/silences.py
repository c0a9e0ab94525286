"""Why runs left much unanswered: a sentence for each with the commonest cause, an example, and what helps."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.stored_run import StoredRun
from medexam.model_calls import is_cut
from medexam.predictions import Prediction, Reason, Status
from medexam.text import shorten

SILENT = 0.1
"""Share of questions without an answer from which on a reader is told why."""
_FAR_BELOW = 0.9
"""Share of its budget below which a cut reply ended at something else."""
CAUSES: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.UNPARSED: "replies without a legal answer",
        Reason.EMPTY: "replies without text",
        Reason.TRUNCATED: "replies cut at their budget",
        Reason.TRUNCATED_THINKING: "replies cut at their budget while thinking (truncated_thinking)",
        Reason.REFUSED: "questions refused by the model",
        Reason.FILTERED: "replies withheld by the provider's filter",
        Reason.CONTEXT_OVERFLOW: "prompts too long for the model's context",
        Reason.NOT_IN_CONTEXT: "quotations that are not in the text",
        Reason.FAULTED: "examples with an error in the module or the metric",
    }
)
"""Why an asked model gave no answer -> the words of a sentence; questions that a program left blank are none."""
_FREE = (Reason.UNPARSED, Reason.EMPTY, Reason.TRUNCATED, Reason.NOT_IN_CONTEXT)
"""Causes that guided answers exclude: a choice is made among what is legal, whatever else the model would write."""
_CHOICE = re.compile(r"->.*\banswer\s*:\s*(?:int\b|Literal\[)", re.DOTALL)
"""A signature whose answer is chosen among the options where it is guided."""


def silences(runs: Sequence[StoredRun]) -> list[str]:
    """Return a sentence for each run whose model left much unanswered."""
    return list(filter(None, map(_silence, runs, run_names(runs))))


def _silence(run: StoredRun, name: str) -> str | None:
    """Return why a run left much unanswered; None if it left little, or no model was asked."""
    metrics, program = run.metrics, run.record.cell.program
    if not (metrics.n and program.asks_model) or metrics.unanswered / metrics.n < SILENT:
        return None
    questions = set(run.record.questions)
    counts: Counter[Reason] = Counter()
    context = 0
    examples: dict[Reason, str] = {}
    for prediction in run.folder.scan_predictions():
        is_blank = prediction.question in questions and prediction.status is Status.UNANSWERED
        if is_blank and (cause := prediction.reason) is not None and cause in CAUSES:
            counts[cause] += 1
            context = max(context, _filled_context(prediction))
            if reply := " ".join((prediction.reply or "").split()):
                examples.setdefault(cause, f', such as "{shorten(reply, 60)}"')
    if not counts:
        return None
    (first, most), *others = counts.most_common()
    other_causes = ", ".join(f"{CAUSES[cause]}: {count:,}" for cause, count in others)
    advice = ""
    if context and first in (Reason.TRUNCATED, Reason.TRUNCATED_THINKING):
        advice = f"; prompt and reply filled the context of {context:,} tokens: give the server a larger one"
    elif first is Reason.EMPTY and first in examples:
        advice = "; the server put all of them into thinking: set model.thinking to off, or end its parsing of thoughts"
    elif first in _FREE and _could_be_guided(run):
        advice = "; program.answer_format=guided makes that impossible"
    elif first in (Reason.TRUNCATED, Reason.TRUNCATED_THINKING):
        advice = "; a larger program.max_tokens leaves them room"
    elif first is Reason.UNPARSED and (adapter := getattr(program, "adapter", None)) is not None:
        adapter_name = adapter.rpartition(":")[2]
        advice = f"; an answer must be in the format of the module's adapter, {adapter_name}, and be one of the options"
    cause_words = f"{most:,} of {metrics.n:,} {CAUSES[first]}{examples.get(first, '')}"
    return f"{name}: {cause_words}{other_causes and f' ({other_causes})'}{advice}."


def _filled_context(prediction: Prediction) -> int:
    """Return the tokens of a prompt and of its reply that was cut far below its budget; 0 where none was."""
    for call in prediction.calls:
        budget, reply_tokens = call.sampling.get("max_tokens"), call.completion_tokens
        if is_cut(call.finish_reason) and budget and reply_tokens is not None and call.prompt_tokens:
            return call.prompt_tokens + reply_tokens if reply_tokens < _FAR_BELOW * budget else 0
    return 0


def _could_be_guided(run: StoredRun) -> bool:
    """Return whether the program has guided answers, and the engine that ran it is known to hold the model to them."""
    guided_by = (run.environment.get("engine") or {}).get("guided_by")
    ways = {"next_token", "prefill", "structured_outputs", "tool_choice"}
    if run.record.identity.get("pictures"):
        # Such questions are asked as a chat, where structured outputs alone guide.
        ways = {"structured_outputs"}
    program = run.record.cell.program
    is_choice = _CHOICE.search(getattr(program, "signature", "")) or getattr(program, "adapter", None) is None
    return getattr(program, "answer_format", None) == "free" and bool(is_choice) and guided_by in ways
