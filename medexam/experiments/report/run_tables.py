"""How one run went, in sentences and tables: its state, what it took, how its questions failed, and its settings."""

from collections.abc import Callable, Sequence
from typing import Any

from medexam.distributions import WILSON
from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.answerers import describe_answerers, describe_models, read_models
from medexam.experiments.store.refusals import TIMES, find_refused
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.benchmarks.measures import show_measure
from medexam.measures.benchmarks.tables import origin
from medexam.plugins import load_added
from medexam.tables import NONE, Table, amount, flatten
from medexam.text import count_of, shorten

SHOWN_CHARACTERS = 160
"""Of a failure's message."""
REPORT_TABLES = "medexam.report_tables"
"""The group: functions of runs that return what `--json` says of each of them, and tables."""
_COSTS = {f"{name}_tokens": f"{name.capitalize()} tokens" for name in ("prompt", "completion", "thinking")}
_COSTS |= {"seconds": "Seconds", "gpu_seconds": "GPU-seconds", "usd": "US dollars"}
_ELSEWHERE = ("vllm", "litellm")
"""Engines whose models run on machines of others."""
Added = tuple[list[dict[str, Any]], list[Table]]


def describe_state(run: StoredRun) -> str:
    """Describe whether all questions of a run are scored, what asks the others, and whether several models answered."""
    metrics = run.metrics
    if metrics.complete:
        state = f"Complete: {metrics.n} questions{origin(metrics)} scored."
    elif run.running:
        state = f"{str(run.note).capitalize()}."
    else:
        state = (
            f"Incomplete: {metrics.n} of {metrics.selected} questions scored, {metrics.failed} failed, "
            f"{metrics.missing} not asked yet. They do not count; `{run.folder.resume_command}` asks them."
        )
    return state if not run.mixed else f"{state} **Mixed models:** {describe_answerers(run.answerers)}."


def describe_warnings(runs: Sequence[StoredRun]) -> list[str]:
    """List what a reader should know of the runs, a sentence each; usually empty."""
    names = [f"{run.title}: " if len(runs) > 1 else "" for run in runs]
    lines = [f"Warning: {name}{text}" for run, name in zip(runs, names, strict=True) for text in run.warnings]
    lines += dict.fromkeys(f"Note: {note}" for run in runs for note in run.metrics.notes)
    return [f"{' '.join(line.split()).rstrip('.')}." for line in lines]


def own_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """Build one row a metric of the user's own and run; empty if no run is scored by one."""
    named_runs = list(zip(run_names(runs), runs, strict=True))
    rows = tuple(
        (metric, name, str(measure.n), str(measure.skipped), show_measure(measure))
        for metric in dict.fromkeys(metric for run in runs for metric in run.metrics.own)
        for name, run in named_runs
        if (measure := run.metrics.own.get(metric)) is not None
    )
    caption = (
        "Means over the questions that have a score, in the metric's own unit, in brackets 95 % intervals (bootstrap "
        f"over exams or whole questions; with fewer than five exams over questions within them; {WILSON}, if each "
        "scores 0 or 1; none with too few questions). No score: the other questions, answered or not."
    )
    headers = ("Metric", "Run", "n", "No score", "Mean")
    return [Table("Own metrics", headers, rows, text_columns=2, caption=caption)] if rows else []


def cost_tables(run: StoredRun) -> list[Table]:
    """Build the table of what a run took a question and a right answer; empty for a control or if nothing is known."""
    costs = run.costs
    if costs is None or not any(getattr(costs, name) for name in _COSTS):
        return []
    cost_by_label = {label: getattr(costs, name) for name, label in _COSTS.items()}
    rows = tuple(
        (label, *((NONE,) * 3 if cost is None else map(amount, (cost.total, cost.per_question, cost.per_right))))
        for label, cost in cost_by_label.items()
        if cost is not None or label in ("Prompt tokens", "Completion tokens")
    )
    notes = ["Tokens are those of the scored questions."]
    if costs.counted is not None:
        replies = f"{costs.counted:,} of {run.metrics.n:,} questions"
        notes = [f"Tokens and dollars are those of {replies}: the server reported no tokens of the other replies."]
    elif costs.prompt_tokens is None or costs.completion_tokens is None:
        notes = ["-: the server reported no tokens, so tokens and dollars are not known."]
    if costs.thinking_tokens is not None:
        notes.append("Thinking tokens are part of the completions'.")
    if costs.questions_per_s is not None:
        rate = f"{amount(costs.questions_per_s)} questions a second"
        notes.append(f"{rate}: seconds count while questions were asked, failures included.")
    if costs.usd is not None:
        notes.append("Dollars by litellm's price list on the day of the run.")
    if costs.gpu_seconds is not None:
        notes.append(f"{amount(costs.gpu_seconds.total / 3600)} GPU-hours, counting one GPU.")
    elif (run.environment.get("engine") or {}).get("engine") in _ELSEWHERE:
        notes.append("GPU-hours are not known, because the server does not report its GPUs: compare tokens instead.")
    return [Table("Cost", ("What", "In all", "A question", "A right answer"), rows, caption=" ".join(notes))]


def failure_tables(run: StoredRun, advice: str = "") -> list[Table]:
    """List the failed questions by kind, the commonest first, with `advice` as the caption; empty without any."""
    if not run.failures:
        return []
    rows = tuple(
        (failure.boundary, failure.kind, shorten(failure.example, SHOWN_CHARACTERS), str(failure.questions))
        for failure in run.failures
    )
    headers = ("Boundary", "Type", "For example", "Questions")
    if refused := find_refused(run.folder, frozenset(run.record.questions)):
        reason = shorten(" ".join(next(iter(refused.values())).message.split()), SHOWN_CHARACTERS)
        advice = (
            f"{advice} {len(refused):,} of them failed in {TIMES} runs in a row, such as: {reason}. `medexam run "
            "--accept-refusals` counts them as unanswered and asks them no more."
        ).strip()
    return [Table(f"Failed questions: {run.title}", headers, rows, text_columns=3, caption=advice)]


def describe_settings(run: StoredRun) -> Table:
    """List what was asked for and what ran, for the end of a report."""
    record = run.record
    names = {"dataset_version": "version", "dataset_source": "source", "dataset_fingerprint": "SHA-256"}
    rows = {"run": record.run_id, "spec digest": record.spec_digest}
    rows |= {f"data set {label}": getattr(record, name) for name, label in names.items()}
    if record.dataset_as_published is not None:
        n = count_of(len(record.dataset_corrected), "question")
        rows["data set SHA-256 as published"] = record.dataset_as_published
        rows["corrected"] = f"{n}, in which private-use characters are read as the signs that they stand for"
    rows["golds SHA-256"] = record.dataset_golds or "in that of the data set"
    for part in ("dataset", "program", *(["model"] if record.cell.program.asks_model else [])):
        rows |= flatten(record.cell.model_dump(mode="json", include={part}))
    for place, description in enumerate(describe_models(run.answerers, read_models(run.folder))):
        rows["answered by" if place == 0 else f"and by ({place})"] = description
    return Table(
        "Settings", ("Setting", "Value"), tuple((rows | flatten(run.environment, "ran.")).items()), text_columns=2
    )


def find_added_tables(runs: Sequence[StoredRun]) -> Added:
    """Return what installed packages say of each run, JSON-ready, and their tables."""
    documents: list[dict[str, Any]] = [{} for _ in runs]
    tables: list[Table] = []
    finders: dict[str, Callable[[Sequence[StoredRun]], Added]] = load_added(REPORT_TABLES)
    for find in finders.values():
        new_documents, new_tables = find(runs)
        for document, new_document in zip(documents, new_documents, strict=True):
            document |= new_document
        tables += new_tables
    return documents, tables
