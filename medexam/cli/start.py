"""`medexam demo`, `init` and `schema`: a first look, a first spec, and what may stand in one."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.views.output import print_json
from medexam.errors import SpecError
from medexam.files import write_new


def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="A kind of program, such as retrieve_verify.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the kind, such as k=7.")
    ] = None,
) -> None:
    """Print the JSON Schema of a spec, for editors; or a program that ships as the YAML of its steps.

    Below `program:` in a spec the steps ask and answer as the kind does, and continue its runs.
    """
    if kind is None:
        from medexam.specs.schema import spec_schema

        print_json(spec_schema())
        return
    from medexam.cli.views.programs import render_program
    from medexam.specs import parse_overrides

    program_settings = [f"program.{setting.removeprefix('program.')}" for setting in settings or ()]
    sys.stdout.write(render_program(kind, parse_overrides(program_settings)))


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the runs and the page go.")] = Path("demo"),
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
) -> None:
    """Show what a study of fifteen ways of asking found, in seconds and without a model.

    The answers of 1,020 questions ship with the package. They are scored and compared as any runs are.
    """
    from medexam.datasets.kept import reads_kept
    from medexam.experiments.demo.sentences import study_sentences
    from medexam.experiments.demo.study_runs import DESCRIPTION, MODEL, make_runs
    from medexam.experiments.entry.terminal import Terminal
    from medexam.experiments.report.page import write_page
    from medexam.experiments.report.shown import print_blocks
    from medexam.experiments.report.tables import overview_tables
    from medexam.specs.catalogue import SAMPLE

    page = out / "page.html"
    with reads_kept():
        runs = make_runs(out)
        english = [run for run in runs if run.record.cell.dataset.language == "en"]
        sentences = study_sentences(runs)
        print_blocks(Terminal(), [*overview_tables(english), f"What helps {MODEL}?", *sentences, DESCRIPTION])
        write_page(runs, page, sentences)
    sys.stderr.write(f"The page with every question: {page}\n")
    sys.stderr.write(f"All {len(runs)} runs: medexam report {out}; the study: medexam run study\n")
    sys.stderr.write(f"Your own model: medexam run {SAMPLE.name} --model openai/gpt-4o-mini\n")
    if not no_open and _has_display():
        webbrowser.open(page.absolute().as_uri())


def _has_display() -> bool:
    """Return whether a browser can show a page to the one who reads this output."""
    windows = sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return windows and sys.stdout.isatty()


def init(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="[FILE]",
            help="Your own questions as JSONL, JSON, CSV, TSV, Parquet or XLSX; or the spec to write, NAME.yaml.",
        ),
    ] = Path("experiment.yaml"),
    out: Annotated[Path | None, typer.Option(help="The spec to write; FILE's name with .yaml by default.")] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="A server's base address, such as http://127.0.0.1:8000/v1.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="choice, short_answer or spans; recognised from FILE by default.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="KEY", help="The right answers, if they are in another file.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="The column that FILE and KEY share; by default both have the same order of rows."),
    ] = None,
) -> None:
    """Write a commented spec to start from, or one that asks a file of your own questions.

    Without questions of your own it asks the sample with the embedded model. Exit code 3: something is to decide.
    """
    if file.suffix not in (".yaml", ".yml"):
        from medexam.cli.data.actions.own import write_spec

        write_spec(file, out, kind, answers, on, endpoint)
        return
    if flags := [name for name, value in (("out", out), ("kind", kind), ("answers", answers), ("on", on)) if value]:
        raise SpecError(f"{', '.join(f'--{name}' for name in flags)}: {file} is a spec to write; give your questions")
    from medexam.specs.starter import starter_spec

    text = starter_spec(file, endpoint)
    try:
        write_new(file, text)
    except FileExistsError:
        raise SpecError(f"{file} exists: choose another name, medexam init FILE.yaml") from None
    except OSError as error:
        raise SpecError(
            f"cannot write {file}: {error.strerror or error}; choose another name, medexam init FILE.yaml"
        ) from None
    sys.stderr.write(f"wrote {file}; medexam plan {file} shows what it would ask\n")
