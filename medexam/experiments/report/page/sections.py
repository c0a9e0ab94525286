"""The tables of a page, in its order: the builders of the terminal's and of Markdown's tables, set side by side.

It computes no score and knows nothing of HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from medexam.errors import DatasetError
from medexam.experiments.compare.baselines import contrast_runs
from medexam.experiments.compare.result import describe_all
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.report.comparison_tables import breakdown_tables, headline, overall_tables, verdicts
from medexam.experiments.report.formatting import NONE, flatten
from medexam.experiments.report.page.side_by_side import Groups, matrix, merge, stack
from medexam.experiments.report.papers.human_baseline import against_people
from medexam.experiments.report.papers.human_baseline_tables import TITLE, people_tables
from medexam.experiments.report.retrieval_tables import contrast_table, retrieval_tables
from medexam.experiments.report.run_tables import cost_tables, failure_table
from medexam.experiments.report.score_tables import score_tables
from medexam.experiments.report.tables import LEGEND, Table, breakdowns, comparison
from medexam.experiments.store.stored_run import ExamRun

_MATRICES: dict[str, Groups] = {
    "Discipline": lambda metrics: {discipline.value: group for discipline, group in metrics.by_discipline.items()},
    "Year": lambda metrics: metrics.by_year,
    "Number of options": lambda metrics: metrics.by_option_count,
    "Exam": lambda metrics: metrics.by_exam,
}
SAID_PAIRS = 3
"""Pairs of a comparison whose verdicts stand in the open; more are folded, for the tables say the same."""


@dataclass(frozen=True)
class Captioned:
    """A table and how to read it."""

    table: Table
    caption: str = ""


@dataclass(frozen=True)
class Fold:
    """Tables and sentences that a reader opens when they want them."""

    title: str
    tables: tuple[Captioned, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """One part of the page."""

    anchor: str
    title: str
    tables: tuple[Captioned, ...] = ()
    lines: tuple[str, ...] = ()
    """Sentences before the tables."""
    folds: tuple[Fold, ...] = ()


def build_sections(runs: Sequence[ExamRun], names: Sequence[str]) -> list[Section]:
    """Every section but the pictures and the questions; `names` tell the runs apart, one each."""
    several = len(runs) > 1
    groups = _matrices(runs, names) if several else _breakdowns(runs[0])
    sections = [
        Section("scores", "Scores", (Captioned(replace(comparison(runs), title="Scores"), LEGEND),)),
        Section("runs", "Runs", (_runs(runs, names),)),
        *_compared(runs),
        Section("people", TITLE, _captioned(people_tables(against_people(runs), names))),
        *_passages(runs),
        *(_grouped(captioned) for captioned in groups),
        _stacked("costs", "Costs", [cost_tables(run) for run in runs], names),
        _stacked("failures", "Failed questions", [_failures(run) for run in runs], names),
        Section("details", "Details of each run", folds=tuple(_details(runs, names, several=several))),
    ]
    return [section for section in sections if section.tables or section.lines or section.folds]


def warnings(runs: Sequence[ExamRun], names: Sequence[str]) -> list[str]:
    """What a reader should know before the scores: what runs warn of, and what is pending in them."""
    found = [f"{name}: {warning}" for run, name in zip(runs, names, strict=True) for warning in run.warnings]
    for run, name in zip(runs, names, strict=True):
        metrics = run.metrics
        if not metrics.complete:
            found.append(
                f"{name} is incomplete: {metrics.n} of {metrics.selected} questions scored, {metrics.failed} failed, "
                f"{metrics.missing} not asked yet; these enter no score, and {run.folder.resume_command} asks them"
            )
    return found


def _runs(runs: Sequence[ExamRun], names: Sequence[str]) -> Captioned:
    rows = tuple(
        (
            name,
            run.record.cell.name,
            run.model or "none",
            run.record.cell.dataset.label,
            str(run.folder.path),
            when(run),
            str(run.metrics.n),
            str(run.metrics.exams),
            run.status,
        )
        for run, name in zip(runs, names, strict=True)
    )
    headers = ("Run", "Experiment", "Model", "Data set", "Folder", "When", "n", "Exams", "State")
    caption = "n: questions scored. Model none: a control, which asks no model. When: the last time it asked, UTC."
    return Captioned(Table("Runs", headers, rows, text_columns=6), caption)


def when(run: ExamRun) -> str:
    """Day and minute at which the run ended, as its environment says; `-` where it does not."""
    ended = str(run.environment.get("ended_at") or run.environment.get("started_at") or "")
    return ended[:16].replace("T", " ") or NONE


def _compared(runs: Sequence[ExamRun]) -> list[Section]:
    """One section for each data set that two runs or more were asked."""
    together: dict[str, list[ExamRun]] = {}
    for run in runs:
        together.setdefault(run.record.cell.dataset.name, []).append(run)
    sections = []
    for dataset, group in together.items():
        if len(group) > 1:
            title = "Paired comparison" if len(together) == 1 else f"Paired comparison on {dataset}"
            sections.append(_comparison(f"compared-{dataset}", title, group))
    return sections


def _comparison(anchor: str, title: str, runs: Sequence[ExamRun]) -> Section:
    try:
        found = compare_runs([run.folder for run in sorted(runs, key=lambda run: run.mixed)])
    except DatasetError as error:
        return Section(anchor, title, lines=(f"{describe_all(runs).capitalize()} cannot be compared: {error}.",))
    lines, said = headline(found), verdicts(found)
    groups = "By discipline and by year" if any(pair.by_year for pair in found.pairs) else "By discipline"
    folds = [Fold(f"{groups}, every run", _captioned(breakdown_tables(found)))]
    if len(said) > SAID_PAIRS:
        folds.insert(0, Fold("In words", lines=tuple(said)))
    else:
        lines += said
    return Section(anchor, title, _captioned(overall_tables(found)), tuple(lines), tuple(folds))


def _passages(runs: Sequence[ExamRun]) -> list[Section]:
    try:
        contrasts = contrast_runs(runs)
    except DatasetError:
        return []
    tables = _captioned([contrast_table(contrast) for contrast in contrasts])
    return [Section("passages", "What passages change", tables)] if tables else []


def _matrices(runs: Sequence[ExamRun], names: Sequence[str]) -> list[Captioned]:
    caption = (
        "Accuracy, percent of n, in brackets 95 % intervals (Wilson); the highest is stressed if runs are ranked. "
        "Chance: a uniform choice on the same questions."
    )
    tables = [matrix(what, runs, names, groups) for what, groups in _MATRICES.items()]
    return [Captioned(table, caption) for table in tables if table.rows]


def _grouped(captioned: Captioned) -> Section:
    title = captioned.table.title
    return Section(f"by-{title.rsplit(maxsplit=1)[-1].lower()}", title, (captioned,))


def _breakdowns(run: ExamRun) -> list[Captioned]:
    first, *others = breakdowns(run.metrics, published=True)
    published = LEGEND + " v1: rounded and averaged over exams as the HEAD-QA v1 paper does."
    return [Captioned(first, published), *(Captioned(table, LEGEND) for table in others)]


def _failures(run: ExamRun) -> list[tuple[Table, str]]:
    table = failure_table(run)
    return [] if table is None else [(table, f"{run.folder.resume_command} asks them again.")]


def _stacked(anchor: str, title: str, of_runs: Sequence[Sequence[tuple[Table, str]]], names: Sequence[str]) -> Section:
    """The tables that each run has, of several runs as one table."""
    named = [(name, table, text) for name, tables in zip(names, of_runs, strict=True) for table, text in tables]
    tables = [replace(table, title=title) for _, table, _ in named]
    if len(of_runs) > 1:
        tables = stack(tables, [name for name, _, _ in named])
    caption = merge([text for _, _, text in named], [name for name, _, _ in named])
    return Section(anchor, title, tuple(Captioned(table, caption) for table in tables))


def _details(runs: Sequence[ExamRun], names: Sequence[str], *, several: bool) -> list[Fold]:
    """What the sections above do not show of each run; its settings at least."""
    folds = []
    for run, name in zip(runs, names, strict=True):
        tables = _breakdowns(run) if several else []
        tables += _captioned([*score_tables(run.metrics), *retrieval_tables(run.metrics)])
        folds.append(Fold(name, (*tables, Captioned(_settings(run)))))
    return folds


def _settings(run: ExamRun) -> Table:
    record = run.record
    shown = {"dataset", "program"} if run.model is None else {"dataset", "program", "model"}
    rows = {
        "run": record.run_id,
        "spec digest": record.spec_digest,
        "data set version": record.dataset_version,
        "data set SHA-256": record.dataset_fingerprint,
        "golds SHA-256": record.dataset_golds or "in that of the data set",
        **flatten(record.cell.model_dump(mode="json", include=shown)),
        **flatten(run.environment, "ran."),
    }
    return Table("Settings", ("Setting", "Value"), tuple(rows.items()), text_columns=2)


def _captioned(tables: Sequence[tuple[Table, str]]) -> tuple[Captioned, ...]:
    return tuple(Captioned(table, caption) for table, caption in tables)
