"""`medexam data`: which data sets are here, are they sound, what do they ask, and bring one from the hub.

It parses, calls `medexam.datasets` and prints; it decides nothing about data. Errors go to the caller as they are.
"""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from medexam.cli.flags.data_sample import SampleSettings
from medexam.cli.options import JsonOption, PathOption, settings_as_flags

if TYPE_CHECKING:
    from medexam.questions import Language


app = typer.Typer(help="List, check, show and fetch data sets.", no_args_is_help=True)

KindOption = Annotated[
    str | None, typer.Option("--kind", help="With --path, your own questions: choice, short_answer or spans.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set, as `medexam data list` names it.")]
NameOrSpec = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A data set, as `medexam data list` names it, or a spec of your own."),
]
Languages = Annotated[list[str] | None, typer.Option("--language", help="May be repeated; all by default.")]


@app.command("list")
def list_sets(as_json: JsonOption = False) -> None:
    """List data sets by name: languages, size, and where they lie or how to bring them."""
    from medexam.cli.data.actions.sets import list_known

    list_known(as_json=as_json)


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
    """Count questions by discipline, year and split; lengths, places of right answers; or explanations in sentences."""
    from medexam.cli.data.actions.sets import count_questions

    count_questions(dataset, language, path, as_published=as_published, as_json=as_json)


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
    from medexam.cli.data.actions.sets import check_set

    check_set(name, language, path, kind, as_json=as_json)


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
    from medexam.cli.data.actions.sets import show_questions

    show_questions(context, sample, name, key, language, path, kind, as_json=as_json)


@app.command()
def fetch(
    name: Name,
    language: Languages = None,
    hub: Annotated[
        str | None, typer.Option("--hub", help="Another hub id, or a folder with a copy of the hub's files.")
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="Keep the pictures that questions refer to.")] = False,
) -> None:
    """Bring a data set from the Hugging Face hub to $MEDEXAM_CACHE (~/.cache/medexam)."""
    from medexam.datasets import fetch_exam_set

    for fetched in fetch_exam_set(name, cast("list[Language] | None", language), hub=hub, images=images):
        typer.echo(
            f"{name} {fetched.language}: {fetched.questions:,} questions from {fetched.origin} in {fetched.path}"
        )
