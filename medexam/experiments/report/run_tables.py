"""Tables of how one run went: what it took, and how its questions failed."""

from medexam.experiments.score.refusals import TIMES, find_refused
from medexam.experiments.store.stored_run import AnyRun
from medexam.tables import NONE, Captioned, Table, amount
from medexam.text import shorten

SHOWN_CHARACTERS = 160
"""Of a failure's message."""
_ELSEWHERE = ("vllm", "litellm")
"""Engines whose models run on machines of others."""


def cost_tables(run: AnyRun) -> list[Captioned]:
    """Build the table of what a run took a question and a right answer; empty for a control or if nothing is known."""
    costs = run.costs
    if costs is None:
        return []
    cost_by_name = {
        "Prompt tokens": costs.prompt_tokens,
        "Completion tokens": costs.completion_tokens,
        "Thinking tokens": costs.thinking_tokens,
        "Seconds": costs.seconds,
        "GPU-seconds": costs.gpu_seconds,
        "US dollars": costs.usd,
    }
    rows = tuple(
        (name, amount(cost.total), amount(cost.per_question), amount(cost.per_right))
        for name, cost in cost_by_name.items()
        if cost is not None
    )
    if not rows:
        return []
    unknown = [name for name in ("Prompt tokens", "Completion tokens") if cost_by_name[name] is None]
    rows = (*((name, NONE, NONE, NONE) for name in unknown), *rows)
    caption = _describe_counted(run, bool(unknown))
    if costs.thinking_tokens is not None:
        caption += " Thinking tokens are part of the completions'."
    if costs.questions_per_s is not None:
        caption += (
            f" {amount(costs.questions_per_s)} questions a second: seconds count while questions were asked, "
            "failures included."
        )
    if costs.usd is not None:
        caption += " Dollars by litellm's price list on the day of the run."
    if costs.gpu_seconds is not None:
        caption += f" {amount(costs.gpu_seconds.total / 3600)} GPU-hours, counting one GPU."
    elif (run.environment.get("engine") or {}).get("engine") in _ELSEWHERE:
        caption += " GPU-hours are not known, because the server does not report its GPUs: compare tokens instead."
    return [(Table("Cost", ("What", "In all", "A question", "A right answer"), rows), caption)]


def _describe_counted(run: AnyRun, unknown: bool) -> str:
    """Describe whose tokens the table of costs counts; `unknown`: those of prompts or of completions are not known at
    all.
    """
    question_count = run.costs.counted if run.costs is not None else None
    if question_count is not None:
        replies = f"{question_count:,} of {run.metrics.n:,} questions"
        return f"Tokens and dollars are those of {replies}: the server reported no tokens of the other replies."
    if unknown:
        return "-: the server reported no tokens, so tokens and dollars are not known."
    return "Tokens are those of the scored questions."


def failure_tables(run: AnyRun, advice: str = "") -> list[Captioned]:
    """List the failed questions by kind, the commonest first, with `advice` as the caption; empty without any."""
    if not run.failures:
        return []
    rows = tuple(
        (failure.boundary, failure.kind, shorten(failure.example, SHOWN_CHARACTERS), str(failure.questions))
        for failure in run.failures
    )
    headers = ("Boundary", "Type", "For example", "Questions")
    table = Table(f"Failed questions: {run.title}", headers, rows, text_columns=3)
    return [(table, " ".join(filter(None, (advice, _describe_refused(run)))))]


def _describe_refused(run: AnyRun) -> str:
    """Describe how many failed questions fail whenever they are asked, and what ends that; empty if none does."""
    failures = find_refused(run.folder, frozenset(run.record.questions))
    if not failures:
        return ""
    reason = shorten(" ".join(next(iter(failures.values())).message.split()), SHOWN_CHARACTERS)
    return (
        f"{len(failures):,} of them failed in {TIMES} runs in a row, such as: {reason}. `medexam run "
        "--accept-refusals` counts them as unanswered and asks them no more."
    )
