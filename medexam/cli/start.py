"""`medexam demo`, `init` and `schema`: a first look, a first spec, and what editors need to complete and check one."""

import os
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.options import INCOMPLETE
from medexam.cli.views.output import print_json
from medexam.errors import SpecError
from medexam.files import write_new


def schema() -> None:
    """Print the JSON Schema of a spec, for editors that complete and check YAML."""
    from medexam.specs.schema import spec_schema

    print_json(spec_schema())


def show_program(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="A kind of program, such as retrieve_verify.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the kind, such as k=7.")
    ] = None,
) -> None:
    """Print a program that ships as YAML: its steps, with your settings, to run as they are or to change.

    Below `program:` in a spec the steps ask and answer as the kind does, and continue its runs.
    """
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
    from medexam.cli.terminal import Terminal
    from medexam.datasets.kept import reads_kept
    from medexam.experiments.demo.sentences import study_sentences
    from medexam.experiments.demo.study_runs import DESCRIPTION, MODEL, make_runs
    from medexam.experiments.entry.report import Report
    from medexam.experiments.report.shown import print_blocks
    from medexam.experiments.report.tables import overview_tables
    from medexam.specs.catalogue import SAMPLE

    page = out / "page.html"
    with reads_kept():
        runs = make_runs(out)
        english = [run for run in runs if run.record.cell.dataset.language == "en"]
        sentences = study_sentences(runs)
        print_blocks(Terminal(), [*overview_tables(english), f"What helps {MODEL}?", *sentences, DESCRIPTION])
        Report(english).write_page(page)
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
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The spec to write.")] = Path("experiment.yaml"),
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="A server's base address, such as http://127.0.0.1:8000/v1.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Questions of your own: CSV, TSV, JSON, JSONL, Parquet, XLSX.")
    ] = None,
) -> None:
    """Write a commented spec to start from, by default with sample questions and the embedded model."""
    from medexam.specs import build_cells, parse_yaml
    from medexam.specs.starter import starter_spec

    dataset: tuple[str, list[str]] | None = None
    undecided: Mapping[str, str] = {}
    if data is not None:
        from medexam.datasets.own.proposals.proposing import dataset_lines, propose

        proposal = propose(data)
        dataset, undecided = (proposal.kind, dataset_lines(proposal, data.absolute())), proposal.open
    text = starter_spec(file, endpoint=endpoint, dataset=dataset)
    if not undecided:
        build_cells(parse_yaml(text, str(file)), {})
    try:
        write_new(file, text)
    except FileExistsError:
        raise SpecError(f"{file} exists: choose another name, medexam init FILE") from None
    except OSError as error:
        raise SpecError(
            f"cannot write {file}: {error.strerror or error}; choose another name, medexam init FILE"
        ) from None
    sys.stderr.write(f"wrote {file}; medexam plan {file} shows what it would ask\n")
    for name, decision in undecided.items():
        sys.stderr.write(f"medexam: before a run, set dataset.{name} in it: {decision}\n")
    if undecided:
        raise typer.Exit(INCOMPLETE)
