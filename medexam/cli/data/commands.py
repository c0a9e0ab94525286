"""`medexam data`: which data sets are here, are they sound, what do they ask, and bring one from the hub.

It parses, calls `medexam.datasets` and prints; it decides nothing about data. Errors go to the caller as they are.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from medexam.cli.data.own import KindOption, find_own, init, print_task
from medexam.cli.options import JsonOption, PathOption, refuse, settings_as_flags
from medexam.cli.views.output import print_by_kind, print_json
from medexam.cli.views.questions import print_question
from medexam.errors import SpecError
from medexam.settings import Setting

if TYPE_CHECKING:
    from medexam.cli.terminal import Terminal
    from medexam.datasets import Anomaly, CatalogueEntry, CheckReport, LanguageCheck
    from medexam.questions import Language
    from medexam.specs import DatasetSpec

UNSOUND = 2

app = typer.Typer(help="Data sets: what is here, is it sound, what does it ask.", no_args_is_help=True)

app.command()(init)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set, as `medexam data list` names it.")]
NameOrSpec = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A data set, as `medexam data list` names it, or a spec of your own."),
]
Languages = Annotated[list[str] | None, typer.Option("--language", help="May be repeated; all of them when left out.")]


@app.command("list")
def list_sets(as_json: JsonOption = False) -> None:
    """List data sets by name: languages, size, and where they lie or how to bring them."""
    from medexam.specs.catalogue import CATALOGUE

    sets = [_describe(entry) for entry in CATALOGUE.values()]
    if as_json:
        print_json(sets)
        return
    from medexam.cli.views.runs import print_tables
    from medexam.tables import Table

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
    print_tables(_console(), [(Table("", headers, tuple(rows), text_columns=4), "")])


@app.command()
def stats(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A data set, as `medexam data list` names it.")],
    language: Annotated[str, typer.Option("--language")] = "en",
    path: PathOption = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            "--pictures", metavar="DIR|FILE", help="Write the figures: PNG into a folder, or FILE.pdf, .svg or .pgf."
        ),
    ] = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Leave private-use characters as they are.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Count questions by discipline, year and split; lengths, places of right answers; or explanations in sentences."""
    from medexam.datasets import load_exam_set
    from medexam.experiments.report.dataset_statistics import compute_statistics
    from medexam.specs import DatasetSpec
    from medexam.specs.validation import validate

    fields = {"name": dataset, "language": language, "path": path}
    spec = validate(DatasetSpec, {**fields, "as_published": True} if as_published else fields)
    if spec.question_form == "explanations":
        _print_explanations(spec, pictures, as_json=as_json)
        return
    exams = load_exam_set(spec)
    statistics = compute_statistics(exams.questions, exams.golds, name=exams.name, language=exams.language)
    if pictures is not None:
        from medexam.experiments.report.plots.datasets import statistics_plots
        from medexam.experiments.report.plots.pictures import render_plot, write_pictures

        for picture_path in write_pictures(map(render_plot, statistics_plots(statistics)), pictures, "--pictures"):
            typer.echo(f"wrote {picture_path}", err=True)
    if as_json:
        typer.echo(statistics.model_dump_json(indent=2))
        return
    from medexam.cli.terminal import Terminal
    from medexam.cli.views.runs import print_tables
    from medexam.experiments.report.dataset_tables import statistics_tables

    print_tables(Terminal(), statistics_tables(statistics))


def _print_explanations(spec: "DatasetSpec", pictures: Path | None, *, as_json: bool) -> None:
    """Print the documents, words and sentences of explanations."""
    from medexam.datasets.readers import EXPLANATION_STATISTICS

    if pictures is not None:
        raise SpecError(f"--pictures: {spec.name} has no figures: leave it out")
    statistics = EXPLANATION_STATISTICS[spec.name](spec)
    if as_json:
        typer.echo(statistics.model_dump_json(indent=2))
        return
    from medexam.cli.terminal import Terminal
    from medexam.cli.views.runs import print_tables
    from medexam.experiments.report.dataset_tables import explanation_tables

    print_tables(Terminal(), explanation_tables(statistics))


@app.command()
def check(
    name: NameOrSpec = None,
    language: Languages = None,
    path: PathOption = None,
    kind: KindOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count a data set's questions and list every anomaly; exit code 2 when there are errors.

    Several languages are also compared with each other.
    """
    from medexam.datasets import check_exam_set
    from medexam.datasets.checking import check_own_set

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


@dataclass(frozen=True)
class SampleSettings:
    """Which questions are shown, in the words of `DatasetSpec`."""

    limit: Annotated[int, Setting("How many questions, spread over the exams.")] = 3
    seed: Annotated[int, Setting("Which questions the limit keeps.")] = 0
    split: Annotated[str, Setting("all, train, dev or test.")] = "all"
    years: Annotated[tuple[int, ...], Setting("May be repeated; all by default.", flag="--year")] = ()
    disciplines: Annotated[
        tuple[str, ...], Setting("May be repeated; all of them by default.", flag="--discipline")
    ] = ()
    images: Annotated[str, Setting("all, with or without.")] = "all"


@app.command()
@settings_as_flags
def show(
    context: typer.Context,
    sample: SampleSettings,
    name: NameOrSpec = None,
    key: Annotated[str | None, typer.Option(help="One question, by its key.")] = None,
    language: Annotated[str, typer.Option(help="The questions' language.")] = "en",
    path: PathOption = None,
    kind: KindOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print real questions with the official answer marked."""
    from medexam.datasets import find_question, load_exam_set, load_task_set
    from medexam.specs import DatasetSpec
    from medexam.specs.validation import validate

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


@app.command()
def fetch(
    name: Name,
    language: Languages = None,
    hub: Annotated[
        str | None, typer.Option("--hub", help="Another hub id, or a folder with a copy of the hub's.")
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="Keep the pictures that questions refer to.")] = False,
) -> None:
    """Bring a data set from the Hugging Face hub to $MEDEXAM_CACHE (~/.cache/medexam)."""
    from medexam.datasets import fetch_exam_set

    for fetched in fetch_exam_set(name, cast("list[Language] | None", language), hub=hub, images=images):
        typer.echo(
            f"{name} {fetched.language}: {fetched.questions:,} questions from {fetched.origin} in {fetched.path}"
        )


def _console() -> "Terminal":
    from medexam.cli.terminal import Terminal

    return Terminal(highlight=False, markup=False, soft_wrap=True)


def _describe(entry: "CatalogueEntry") -> dict[str, Any]:
    from medexam.datasets import find_files

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


def _ways_to(entry: "CatalogueEntry") -> str:
    if entry.hub is not None:
        return f"medexam data fetch {entry.name}, or set MEDEXAM_DATA"
    return "ships in the package" if entry.origin is None else f"set MEDEXAM_DATA; from {entry.origin}"


def _print_report(console: "Terminal", report: "CheckReport") -> None:
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


def _print_counts(console: "Terminal", checked: "LanguageCheck") -> None:
    from rich.table import Table

    options = ", ".join(f"{count:,} with {number} options" for number, count in checked.by_option_count.items())
    console.print(
        f"{checked.exams} exams, {checked.questions:,} questions: {options or 'none'}; "
        f"{checked.with_images:,} with images; "
        f"{checked.without_official_answer:,} without an official answer",
        soft_wrap=False,
    )
    years = sorted({year for counts in checked.by_discipline.values() for year in counts})
    table = Table("", *(str(year or "no year") for year in years), "all", box=None, pad_edge=False)
    for discipline, counts in checked.by_discipline.items():
        table.add_row(discipline, *(f"{counts.get(year, 0):,}" for year in years), f"{sum(counts.values()):,}")
    console.print(table)


def _print_anomalies(
    console: "Terminal",
    errors: "tuple[Anomaly, ...]",
    notes: "tuple[Anomaly, ...]",
    corrections: "tuple[Anomaly, ...]" = (),
) -> None:
    groups = (("error", "red", errors), ("note", "yellow", notes), ("corrected", "yellow", corrections))
    for word, style, anomalies in groups:
        lines = [(anomaly.kind, f"{anomaly.place}: {anomaly.detail}") for anomaly in anomalies]
        print_by_kind(console, word, style, lines, "; --json lists them all")
