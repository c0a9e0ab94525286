"""What `medexam data` does with a set: list, count, check or show it, or bring it from the hub."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import typer
from rich.table import Table as RichTable

from medexam.cli.data.actions.own import find_own
from medexam.cli.flags.data_sample import SampleSettings
from medexam.cli.options import refuse
from medexam.cli.views.output import print_by_kind, print_json
from medexam.cli.views.questions import print_question, print_task
from medexam.datasets import check_exam_set, find_files, load_exam_set, load_task_set
from medexam.datasets.checking import Anomaly, CheckReport, LanguageCheck, check_own_set
from medexam.datasets.loading import find_question
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.dataset_statistics import compute_statistics
from medexam.experiments.report.dataset_tables import statistics_tables
from medexam.experiments.report.shown import print_blocks
from medexam.plugins import load_object
from medexam.questions import Language
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import CATALOGUE, DatasetInfo, find_entry
from medexam.specs.names import BENCHMARKS
from medexam.specs.validation import validate
from medexam.tables import Table

UNSOUND = 2


def list_known(*, as_json: bool) -> None:
    """List data sets by name: languages, size, and where they lie or how to bring them."""
    sets = [_describe(entry) for entry in CATALOGUE.values()]
    if as_json:
        print_json(sets)
        return
    rows = []
    for document in sets:
        folders: dict[str, list[str]] = {}
        for language, files in document["files"].items():
            if files:
                folders.setdefault(str(Path(files[0]).parent), []).append(language)
        places = [f"{' '.join(codes)} in {folder}" for folder, codes in folders.items()]
        languages, place = " ".join(document["files"]), "; ".join(places) or f"not here: {document['get']}"
        rows.append((document["name"], document["title"], languages, place, f"{document['questions']:,}"))
    headers = ("Name", "What", "Languages", "Where", "Questions")
    print_blocks(_console(), [Table("", headers, tuple(rows), text_columns=4)])


def count_questions(dataset: str, language: str, path: Path | None, *, as_published: bool, as_json: bool) -> None:
    """Count questions by discipline, year and split; lengths, places of right answers; or explanations in sentences."""
    fields = {"name": dataset, "language": language, "path": path}
    spec = validate(DatasetSpec, {**fields, "as_published": True} if as_published else fields)
    if counted_by := find_entry(spec.name).statistics:
        own_statistics = load_object(counted_by, BENCHMARKS)(spec)
        if as_json:
            typer.echo(own_statistics.model_dump_json(indent=2))
        else:
            print_blocks(Terminal(), own_statistics.tables())
        return
    exams = load_exam_set(spec)
    statistics = compute_statistics(exams.questions, exams.golds, name=exams.name, language=exams.language)
    if as_json:
        print_json(statistics)
        return
    print_blocks(Terminal(), statistics_tables(statistics))


def check_set(
    name: str | None, language: list[str] | None, path: Path | None, kind: str | None, *, as_json: bool
) -> None:
    """Count a data set's questions and list every anomaly; exit code 2 when there are errors."""
    own_spec = find_own(name, path, kind)
    if own_spec is not None:
        report = check_own_set(own_spec)
    else:
        report = check_exam_set(str(name), cast("list[Language] | None", language), path)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        _print_report(_console(), report)
    if not report.passed:
        raise typer.Exit(UNSOUND)


def show_questions(
    context: typer.Context,
    sample: SampleSettings,
    name: str | None,
    key: str | None,
    language: str,
    path: Path | None,
    kind: str | None,
    *,
    as_json: bool,
) -> None:
    """Print real questions with the official answer marked."""
    own_spec = find_own(name, path, kind)
    fields: dict[str, Any] = (
        {"name": name, "language": language, "path": path} if own_spec is None else own_spec.model_dump()
    )
    if key is not None:
        refuse(context, SampleSettings, "--key names the one question to show: leave out one or the other")
    else:
        fields |= {field: None if value == () else value for field, value in asdict(sample).items()}
    if own_spec is not None and own_spec.kind != "choice":
        tasks = load_task_set(validate(DatasetSpec, fields))
        if as_json:
            print_json([{**asdict(task), "answers": tasks.golds[task.key].answers} for task in tasks.questions])
            return
        for task in tasks.questions:
            _console().print(f"{task.key}  {task.group}, {task.language}", style="bold cyan")
            print_task(_console(), task, tasks.golds[task.key])
            _console().print()
        return
    exam_set = load_exam_set(validate(DatasetSpec, fields))
    questions = exam_set.questions if key is None else (find_question(exam_set, key),)
    if as_json:
        documents = [
            question.model_dump(mode="json") | {"gold": exam_set.golds[question.key].number} for question in questions
        ]
        print_json(documents)
        return
    console = _console()
    for question in questions:
        print_question(console, question, exam_set.golds[question.key])


def _console() -> Terminal:
    return Terminal(highlight=False, markup=False, soft_wrap=True)


def _describe(entry: DatasetInfo) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "questions": entry.questions,
        "licence": entry.licence,
        "citation": entry.citation,
        "terms": entry.terms,
        "files": {language: [str(file) for file in find_files(entry.name, language)] for language in entry.languages},
        "get": _ways_to(entry),
    }


def _ways_to(entry: DatasetInfo) -> str:
    if entry.hub is not None:
        return f"medexam data fetch {entry.name}, or set MEDEXAM_DATA"
    return "ships in the package" if entry.origin is None else f"set MEDEXAM_DATA; from {entry.origin}"


def _print_report(console: Terminal, report: CheckReport) -> None:
    for checked in report.languages:
        console.print(f"{report.name} {checked.language} {checked.version}  {checked.source}", style="bold")
        _print_counts(console, checked)
        _print_anomalies(console, checked.errors, checked.notes, checked.corrections)
        console.print()
    if len(report.languages) > 1:
        console.print(
            f"languages compared: {', '.join(checked.language for checked in report.languages)}", style="bold"
        )
        _print_anomalies(console, report.language_errors, report.language_notes)
    errors = len(report.language_errors) + sum(len(checked.errors) for checked in report.languages)
    console.print(
        "sound" if report.passed else f"not sound: {errors} errors", style="green" if report.passed else "red"
    )


def _print_counts(console: Terminal, checked: LanguageCheck) -> None:
    options = ", ".join(f"{count:,} with {number} options" for number, count in checked.by_option_count.items())
    console.print(
        f"{checked.exams} exams, {checked.questions:,} questions: {options or 'none'}; "
        f"{checked.with_images:,} with images; "
        f"{checked.without_official_answer:,} without an official answer",
        soft_wrap=False,
    )
    years = sorted({year for counts in checked.by_discipline.values() for year in counts})
    table = RichTable("", *(str(year or "no year") for year in years), "all", box=None, pad_edge=False)
    for discipline, counts in checked.by_discipline.items():
        table.add_row(discipline, *(f"{counts.get(year, 0):,}" for year in years), f"{sum(counts.values()):,}")
    console.print(table)


def _print_anomalies(
    console: Terminal,
    errors: tuple[Anomaly, ...],
    notes: tuple[Anomaly, ...],
    corrections: tuple[Anomaly, ...] = (),
) -> None:
    groups = (("error", "red", errors), ("note", "yellow", notes), ("corrected", "yellow", corrections))
    for word, style, anomalies in groups:
        lines = [(anomaly.kind, f"{anomaly.place}: {anomaly.detail}") for anomaly in anomalies]
        print_by_kind(console, word, style, lines, "; --json lists them all")
