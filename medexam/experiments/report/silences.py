"""Why runs left much unanswered: a sentence for each with the commonest cause, an example, and what helps."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.stored_run import AnyRun
from medexam.predictions import Prediction, Reason, Status

SILENT = 0.1
"""Share of questions without an answer from which on a reader is told why."""
QUOTED = 60
"""Characters that are shown of a reply."""
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
_UNREAD = (Reason.UNPARSED, Reason.EMPTY)
_FREE = (*_UNREAD, Reason.TRUNCATED, Reason.NOT_IN_CONTEXT)
"""Causes that guided answers exclude: a choice is made among what is legal, whatever else the model would write."""
_ENFORCED_BY = ("next_token", "prefill", "structured_outputs", "tool_choice")
"""Ways to guide an answer that hold the model to it."""


def silences(runs: Sequence[AnyRun]) -> list[str]:
    """Return a sentence for each run whose model left much unanswered."""
    return list(filter(None, map(_silence, runs, run_names(runs))))


def _silence(run: AnyRun, name: str) -> str | None:
    """Return why a run left much unanswered; None if it left little, or no model was asked."""
    metrics = run.metrics
    if not (metrics.n and run.record.cell.program.asks_model) or metrics.unanswered / metrics.n < SILENT:
        return None
    questions = set(run.record.questions)
    counts: Counter[Reason] = Counter()
    examples: dict[Reason, str] = {}
    for prediction in run.folder.scan_predictions():
        if prediction.question in questions and (cause := _cause(prediction)) is not None:
            counts[cause] += 1
            if cause not in examples and (reply := " ".join((prediction.reply or "").split())):
                examples[cause] = reply if len(reply) <= QUOTED else f"{reply[:QUOTED].rstrip()} ..."
    if not counts:
        return None
    (first, most), *others = counts.most_common()
    example = f', such as "{examples[first]}"' if first in examples else ""
    other_causes = ", ".join(f"{CAUSES[cause]}: {count:,}" for cause, count in others)
    advice = _advice(run, first)
    return (
        f"{name}: {most:,} of {metrics.n:,} {CAUSES[first]}{example}{other_causes and f' ({other_causes})'}"
        f"{advice and f'; {advice}'}."
    )


def _cause(prediction: Prediction) -> Reason | None:
    """Return why a prediction has no answer; None if it has one, or nobody was asked."""
    return prediction.reason if prediction.status is Status.UNANSWERED and prediction.reason in CAUSES else None


def _advice(run: AnyRun, cause: Reason) -> str:
    """Return what would change the commonest cause; empty if nothing is known to."""
    program = run.record.cell.program
    if cause is Reason.UNPARSED and (unasked := _unasked_format(run)) is not None:
        return unasked
    if cause in _FREE and _could_be_guided(run):
        return "program.answer_format=guided makes that impossible"
    if cause in (Reason.TRUNCATED, Reason.TRUNCATED_THINKING):
        return "a larger program.max_tokens leaves them room"
    if cause is Reason.UNPARSED and (adapter := program.module_adapter) is not None:
        return f"an answer must be in the format of the module's adapter, {adapter}, and be one of the options"
    return ""


def _could_be_guided(run: AnyRun) -> bool:
    """Return whether the program has guided answers, and the engine that ran it is known to hold the model to them."""
    engine, cell = _engine(run), run.record.cell
    enforced_by = engine.get("guided_by")
    if run.record.identity.get("pictures") or (engine.get("engine") == "vllm" and cell.model.extra_body):
        # Such requests are asked as a chat, where structured outputs alone guide.
        return cell.program.could_be_guided and enforced_by == "structured_outputs" and not cell.model.extra_body
    return cell.program.could_be_guided and enforced_by in _ENFORCED_BY


def _engine(run: AnyRun) -> Mapping[str, Any]:
    """Return what `environment.json` says of the engine; empty if nothing."""
    return run.environment.get("engine") or {}


def _unasked_format(run: AnyRun) -> str | None:
    """Return that a prompt of one's own shows no answer format; None if it does, or that is not known."""
    program = run.record.cell.program
    words: Mapping[str, Any] = run.record.identity.get("words") or {}
    form = getattr(program, "answer_form", None)
    if form is None or "instructions" not in words or words.get("examples"):
        return None
    from medexam.signatures.answer_format import answer_opening

    opening = answer_opening(form).strip()
    if program.words is None or opening in str(words["instructions"]):
        return None
    return f"program.prompt {program.words.prompt} lacks $form, so it does not ask for the answer format"
