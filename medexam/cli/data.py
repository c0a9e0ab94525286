"""List, check, show and fetch data sets."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from medexam.cli.options import JsonOption, PathOption, refuse
from medexam.cli.output import print_by_kind, print_json
from medexam.errors import SpecError

if TYPE_CHECKING:
    from medexam.datasets.checking import Anomaly, CheckReport
    from medexam.questions import AnySet, Language
    from medexam.specs import DatasetSpec

UNSOUND = 2
app = typer.Typer(help="List, check, show and fetch data sets.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set, as `medexam data list` names it.")]
NameOrSpec = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A data set, as `medexam data list` names it, or a spec of your own."),
]
Languages = Annotated[list[str] | None, typer.Option("--language", help="May be repeated; all by default.")]


@app.command("list")
def list_sets(as_json: JsonOption = False) -> None:
    """List data sets by name: languages, size, and where they lie or how to bring them.

    For example:
        medexam data list
    """
    from medexam.datasets import find_files
    from medexam.experiments.report.shown import Terminal, print_blocks
    from medexam.specs.catalogue import CATALOGUE
    from medexam.tables import Table

    sets: list[dict[str, Any]] = []
    rows = []
    for entry in CATALOGUE.values():
        if entry.hub is not None:
            way = f"medexam data fetch {entry.name}, or set MEDEXAM_DATA"
        else:
            way = "ships in the package" if entry.origin is None else f"set MEDEXAM_DATA; from {entry.origin}"
        files = {code: [str(file) for file in find_files(entry.name, code)] for code in entry.languages}
        facts = {name: getattr(entry, name) for name in ("name", "title", "questions", "licence", "citation", "terms")}
        sets.append({**facts, "files": files, "get": way})
        folders: dict[str, list[str]] = {}
        for code, paths in files.items():
            if paths:
                folders.setdefault(str(Path(paths[0]).parent), []).append(code)
        places = [f"{' '.join(codes)} in {folder}" for folder, codes in folders.items()]
        place = "; ".join(places) or f"not here: {way}"
        rows.append((entry.name, entry.title, " ".join(files), place, f"{entry.questions:,}"))
    headers = ("Name", "What", "Languages", "Where", "Questions")
    print_json(sets) if as_json else print_blocks(Terminal(), [Table("", headers, tuple(rows), text_columns=4)])


@app.command()
def stats(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A data set, as `medexam data list` names it.")],
    language: Annotated[str, typer.Option("--language")] = "en",
    path: PathOption = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Leave private-use characters as they are.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Count questions by discipline, year and split; lengths, places of right answers; or explanations in sentences.

    For example:
        medexam data stats headqa_sample
    """
    from medexam.datasets import load_exam_set
    from medexam.experiments.report.dataset_statistics import compute_statistics, statistics_tables
    from medexam.experiments.report.shown import Terminal, print_blocks
    from medexam.plugins import load_object
    from medexam.specs import DatasetSpec
    from medexam.specs.base import BENCHMARKS, validate
    from medexam.specs.catalogue import find_entry

    fields = {"name": dataset, "language": language, "path": path}
    spec = validate(DatasetSpec, {**fields, "as_published": True} if as_published else fields)
    if counted_by := find_entry(spec.name).statistics:
        own = load_object(counted_by, BENCHMARKS)(spec)
        print_json(own.model_dump(mode="json")) if as_json else print_blocks(Terminal(), own.tables())
        return
    exams = load_exam_set(spec)
    statistics = compute_statistics(exams.questions, exams.golds, name=exams.name, language=exams.language)
    print_json(statistics) if as_json else print_blocks(Terminal(), statistics_tables(statistics))


@app.command()
def check(
    name: NameOrSpec,
    language: Languages = None,
    path: PathOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count a data set's questions and list every anomaly; exit code 2 when there are errors.

    Several languages are also compared with each other.

    For example:
        medexam data check headqa_sample
    """
    from medexam.datasets import check_exam_set
    from medexam.datasets.checking import check_own_set

    own_spec, languages = _find_own(name), cast("list[Language] | None", language)
    report = check_exam_set(name, languages, path) if own_spec is None else check_own_set(own_spec)
    print_json(report.model_dump(mode="json")) if as_json else _print_report(report)
    if not report.passed:
        raise typer.Exit(UNSOUND)


@app.command()
def show(
    context: typer.Context,
    name: NameOrSpec,
    limit: Annotated[int, typer.Option(help="How many questions, spread over the exams.")] = 3,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A key of a spec's dataset: years=2016.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="One question, by its key.")] = None,
    language: Annotated[str, typer.Option(help="The questions' language.")] = "en",
    path: PathOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print real questions with the official answer marked.

    For example:
        medexam data show headqa_sample --limit 2
    """
    from medexam.cli.items import plain_terminal, print_item
    from medexam.datasets import load_exam_set, load_task_set
    from medexam.datasets.loading import find_question
    from medexam.specs import DatasetSpec, parse_overrides
    from medexam.specs.base import validate

    own_spec = _find_own(name)
    fields: dict[str, Any] = (
        {"name": name, "language": language, "path": path} if own_spec is None else own_spec.model_dump()
    )
    if key is not None:
        refuse(context, {"limit", "settings"}, "--key names the one question to show: leave out one or the other")
    else:
        fields |= {"limit": limit, **parse_overrides(settings or ())}
    spec = validate(DatasetSpec, fields)
    in_words = own_spec is not None and own_spec.kind != "choice"
    items: AnySet = load_task_set(spec) if in_words else load_exam_set(spec)
    questions = items.questions if key is None else (find_question(items, key),)
    if not as_json:
        for item in questions:
            print_item(plain_terminal(), item, items.golds[item.key])
    elif in_words:
        print_json([{**asdict(task), "answers": items.golds[task.key].answers} for task in questions])
    else:
        documents = (question.model_dump(mode="json") for question in questions)
        print_json([document | {"gold": items.golds[document["key"]].number} for document in documents])


@app.command()
def fetch(
    name: Name,
    language: Languages = None,
    images: Annotated[bool, typer.Option("--images", help="Keep the pictures that questions refer to.")] = False,
) -> None:
    """Bring a data set from the Hugging Face hub to $MEDEXAM_CACHE (~/.cache/medexam).

    For example:
        medexam data fetch headqa_v2
    """
    from medexam.datasets import fetch_exam_set

    for fetched in fetch_exam_set(name, cast("list[Language] | None", language), images=images):
        typer.echo(
            f"{name} {fetched.language}: {fetched.questions:,} questions from {fetched.origin} in {fetched.path}"
        )


def _find_own(name: str) -> "DatasetSpec | None":
    """Find the questions of one's own that a spec file asks; None if a data set is named."""
    from medexam.specs import DatasetSpec, load_document
    from medexam.specs.base import validate

    if not name.endswith((".yaml", ".yml")):
        return None
    tree = load_document(name).get("dataset", {})
    spec = validate(DatasetSpec, {"name": tree} if isinstance(tree, str) else tree)
    if spec.kind is None:
        raise SpecError(f"{name} asks {spec.name}, which ships: give that name instead of a file")
    return spec


def _print_report(report: "CheckReport") -> None:
    from medexam.experiments.report.shown import Terminal, Unbroken, print_blocks
    from medexam.tables import Table

    console = Terminal(highlight=False, markup=False, soft_wrap=True)
    for checked in report.languages:
        options = ", ".join(f"{count:,} with {number} options" for number, count in checked.by_option_count.items())
        years = sorted({year for counts in checked.by_discipline.values() for year in counts})
        headers = ("", *(str(year or "no year") for year in years), "all")
        rows = tuple(
            (discipline, *(f"{counts.get(year, 0):,}" for year in years), f"{sum(counts.values()):,}")
            for discipline, counts in checked.by_discipline.items()
        )
        title = f"{report.name} {checked.language} {checked.version}  {checked.source}"
        counts_line = (
            f"{checked.exams} exams, {checked.questions:,} questions: {options or 'none'}; "
            f"{checked.with_images:,} with images; "
            f"{checked.without_official_answer:,} without an official answer"
        )
        print_blocks(console, [Unbroken(title), Unbroken(counts_line), Table("", headers, rows)])
        _print_anomalies(console, checked.errors, checked.notes, checked.corrections)
    if len(report.languages) > 1:
        console.print(f"languages compared: {', '.join(checked.language for checked in report.languages)}")
        _print_anomalies(console, report.language_errors, report.language_notes)
    errors = len(report.language_errors) + sum(len(checked.errors) for checked in report.languages)
    console.print("sound" if report.passed else f"not sound: {errors} errors")


def _print_anomalies(console: Any, *groups: "tuple[Anomaly, ...]") -> None:
    styles = {"error": "red", "note": "yellow", "corrected": "yellow"}
    for (word, style), anomalies in zip(styles.items(), groups, strict=False):
        lines = [(anomaly.kind, f"{anomaly.place}: {anomaly.detail}") for anomaly in anomalies]
        print_by_kind(console, word, style, lines, "; --json lists them all")
