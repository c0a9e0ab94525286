"""Runs in tables and sentences: side by side, and each with its state, costs, failures and settings."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from medexam.distributions import WILSON
from medexam.experiments.compare.ranking import describe_difference, find_standing
from medexam.experiments.compare.runs import label_rows, run_names
from medexam.experiments.report.shown import Unbroken
from medexam.experiments.store.environment import describe_answerers, read_models
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.shown import show_measure
from medexam.measures.tables import TableRun, legend, overview
from medexam.plugins import load_added
from medexam.tables import NONE, Number, Table, flatten
from medexam.text import shorten

SHOWN_CHARACTERS = 160
"""Of a failure's message."""
REPORT_TABLES = "medexam.report_tables"
"""The group: functions of runs that return what `--json` says of each of them, and tables."""
_TOKENS = ("prompt_tokens", "completion_tokens")
_COSTS = {f"{name}_tokens": f"{name.capitalize()} tokens" for name in ("prompt", "completion", "thinking")}
_COSTS |= {"seconds": "Seconds", "usd": "US dollars"}
Added = tuple[list[dict[str, Any]], list[Table]]


def describe_state(run: StoredRun) -> str:
    """Describe whether all questions of a run are scored, what asks the others, and whether several models answered."""
    metrics = run.metrics
    if metrics.complete:
        origin = "" if metrics.exams is None else f" of {metrics.exams} exams"
        state = f"Complete: {metrics.n} questions{origin} scored."
    elif run.running:
        state = f"{str(run.note).capitalize()}."
    else:
        state = (
            f"Incomplete: {metrics.n} of {metrics.selected} questions scored, {metrics.failed} failed, "
            f"{metrics.missing} not asked yet. They do not count; `{run.folder.resume_command}` asks them."
        )
    return state if not run.mixed else f"{state} **Mixed models:** {describe_answerers(run.answerers)}."


def describe_pending(counts: Iterable[tuple[StoredRun, int]]) -> list[Unbroken]:
    """Say what asks the questions that runs still have to ask: their numbers, of which 0 says nothing."""
    return [
        Unbroken(f"{run.title}: {count} questions are pending; `{run.folder.resume_command}` asks them")
        for run, count in counts
        if count
    ]


def describe_warnings(runs: Sequence[StoredRun]) -> list[str]:
    """List what a reader should know of the runs, a sentence each; usually empty."""
    named_runs = list(zip(run_names(runs), runs, strict=True))
    warnings = merge_notes([(name, text) for name, run in named_runs for text in run.warnings], len(runs))
    notes = dict.fromkeys(note for run in runs for note in run.metrics.notes)
    lines = [*(f"Warning: {text}" for text in warnings), *(f"Note: {note}" for note in notes)]
    return [f"{' '.join(line.split()).rstrip('.')}." for line in lines]


def merge_notes(name_texts: Sequence[tuple[str, str]], count: int) -> list[str]:
    """Write each text once, behind the names that it is said of unless it is said of all `count`."""
    names_by_text: dict[str, list[str]] = {}
    for name, text in name_texts:
        if name not in names_by_text.setdefault(text, []):
            names_by_text[text].append(name)
    return [f"{', '.join(names)}: {text}" if len(names) < count else text for text, names in names_by_text.items()]


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
        "Means over the questions that have a score, in the metric's own unit, in brackets 95 % intervals by bootstrap "
        f"or {WILSON} if each scores 0 or 1. No score: the other questions, answered or not."
    )
    headers = ("Metric", "Run", "n", "No score", "Mean")
    return [Table("Own metrics", headers, rows, text_columns=2, caption=caption)] if rows else []


def cost_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """Build the table of what runs took a question and a right answer; empty for controls or if nothing is known."""
    names = [(name,) for name in run_names(runs)] if len(runs) > 1 else [()]
    all_costs = [(name, run.metrics.n, run.costs) for name, run in zip(names, runs, strict=True)]
    costed = [(name, n, costs) for name, n, costs in all_costs if costs and any(map(costs.get, _COSTS))]
    if not costed:
        return []
    rows = tuple(
        (*name, label, *((NONE,) * 3 if cost is None else map(_amount, cost.values())))
        for name, _, costs in costed
        for key, label in _COSTS.items()
        if (cost := costs.get(key)) is not None or key in _TOKENS
    )
    caption = (
        "Tokens and dollars are those of the scored questions; dollars by litellm's price list on the day of the run. "
        "Thinking tokens are part of the completions'. Seconds count while questions were asked, failures included."
    )
    for name, n, costs in costed:
        if "counted" in costs:
            who = "".join(f"{each}: " for each in name)
            caption += f" {who}the server reported no tokens of {n - costs['counted']:,} of {n:,} replies."
    if any(costs[key] is None for _, _, costs in costed for key in _TOKENS):
        caption += " -: the server reported no tokens."
    headers = ("Run",) * (len(runs) > 1) + ("What", "In all", "A question", "A right answer")
    return [Table("Cost", headers, rows, text_columns=len(headers) - 3, caption=caption)]


def _amount(value: float | None) -> Number:
    if value is None:
        return Number(NONE, None)
    return Number(f"{value:,.0f}" if value >= 100 else f"{value:.3g}", value)


def failure_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """List the failed questions of runs by kind, the commonest first; empty without any."""
    rows: list[tuple[str, ...]] = []
    for run, name in zip(runs, run_names(runs), strict=True):
        who = (name,) if len(runs) > 1 else ()
        rows += [
            (*who, each["boundary"], each["kind"], shorten(each["example"], SHOWN_CHARACTERS), str(each["questions"]))
            for each in run.failures
        ]
    headers = ("Run",) * (len(runs) > 1) + ("Boundary", "Type", "For example", "Questions")
    columns = len(headers) - 1
    return [Table("Failed questions", headers, tuple(rows), text_columns=columns)] if rows else []


def describe_settings(run: StoredRun) -> Table:
    """List what was asked for and what ran, for the end of a report."""
    record = run.record
    parts = {"dataset", "program"} | ({"model"} if record.cell.program.asks_model else set())
    names = ("run_id", "spec_digest", "dataset_version", "dataset_source", "dataset_fingerprint", "dataset_golds")
    settings = {
        **{name.replace("_", " "): getattr(record, name) for name in names},
        **record.cell.model_dump(mode="json", include=parts),
        "answered by": [
            f"{count.answers:,} answers of {models[count.print].identity.describe()}"
            if count.print in models
            else f"{count.answers:,} answers of {count.name}"
            for models in [read_models(run.folder)]
            for count in run.answerers
        ],
        "ran": run.environment,
    }
    return Table("Settings", ("Setting", "Value"), tuple(flatten(settings).items()), text_columns=2)


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


BOLD = "Bold: better than every other run, by McNemar's test after Holm, however the replies are read."


def overview_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """Build the comparison of runs of one family, the best first, and what their own metrics say."""
    if describe_difference(runs) is None:
        runs = sorted(runs, key=lambda run: -(run.score or 0))
    return [comparison(runs), *own_tables(runs)]


def comparison(runs: Sequence[StoredRun]) -> Table:
    """Build runs of one family side by side, the scores of the best stressed; what they share goes into the title."""
    table = overview(label_runs(runs)[0], table_runs(runs))
    caption = legend([run.benchmark for run in runs], [run.metrics for run in runs])
    return replace(table, caption=f"{caption} {BOLD}" if table.best else caption)


def split_families(runs: Sequence[StoredRun]) -> list[list[StoredRun]]:
    """Split the runs into those that share a table, in their order: first those whose answers are right or wrong."""
    families: dict[str, list[StoredRun]] = {}
    for run in runs:
        families.setdefault(run.benchmark.family, []).append(run)
    return sorted(families.values(), key=lambda family: not family[0].benchmark.right_or_wrong)


def table_runs(runs: Sequence[StoredRun]) -> list[TableRun]:
    """Return the runs as a benchmark's tables need them."""
    names, labels = run_names(runs), label_runs(runs)[1]
    standing = find_standing(runs, names)
    best = standing.first if standing is not None and standing.is_best else None
    return [
        TableRun(name, {header: values[position] for header, values in labels.items()}, run.metrics, run is best)
        for position, (name, run) in enumerate(zip(names, runs, strict=True))
    ]


def label_runs(runs: Sequence[StoredRun]) -> tuple[str, dict[str, list[str]]]:
    """Return a title with what all runs share, and a column, by its header, for each thing in which they differ.

    Controls beside runs of one model are named in the title as asking none.
    """
    labels = label_rows(runs)
    experiments = [run.record.cell.name for run in runs]
    title = [", ".join(dict.fromkeys(experiments))]
    models = list(dict.fromkeys(run.model for run in runs if run.model is not None))
    controls = dict.fromkeys(run.program for run in runs if run.model is None)
    if len(models) == 1:
        title.append(models[0] + (f" (no model: {', '.join(controls)})" if controls else ""))
    if "Data set" not in labels:
        dataset = runs[0].record.cell.dataset
        title.append(" ".join([dataset.called, *dataset.changes]) if "Language" in labels else dataset.label)
    return " · ".join(title), labels
