"""`medexam demo`, `init` and `schema`: a first look, a first spec, and what may stand in one."""

import os
import sys
import webbrowser
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medexam.cli.options import INCOMPLETE
from medexam.errors import SpecError
from medexam.kept import reads_kept

if TYPE_CHECKING:
    from medexam.specs.dataset import OwnKind


def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="A kind of program, such as retrieve_verify.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the kind, such as k=7.")
    ] = None,
) -> None:
    """Print the JSON Schema of a spec, for editors, or a program that ships as the YAML of its steps.

    Below `program:` in a spec the steps ask and answer as the kind does, and continue its runs.

    For example:
        medexam schema > spec.schema.json
        medexam schema retrieve_verify --set k=7 > mine.yaml
    """
    if kind is None:
        from medexam.specs.loading import SCHEMA

        typer.echo(SCHEMA.read_text(encoding="utf-8"), nl=False)
        return
    from medexam.cli.programs import render_program
    from medexam.specs import parse_overrides

    program_settings = [f"program.{setting.removeprefix('program.')}" for setting in settings or ()]
    sys.stdout.write(render_program(kind, parse_overrides(program_settings)))


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the runs and the page go.")] = Path("demo"),
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
) -> None:
    """Show what a study of fifteen ways of asking found, in seconds and without a model.

    The answers of 1,020 questions ship with the package. They are scored and compared as any runs are.

    For example:
        medexam demo
        medexam demo --no-open
    """
    from medexam.experiments.demo import DESCRIPTION, MODEL, make_runs, study_sentences
    from medexam.experiments.report.page.document import write_page
    from medexam.experiments.report.run_tables import overview_tables
    from medexam.experiments.report.shown import Terminal, print_blocks
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
    windows = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not no_open and windows and sys.stdout.isatty():
        webbrowser.open(page.absolute().as_uri())


def init(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Your own questions as JSONL, JSON, CSV, TSV, Parquet or XLSX; or the spec to write, NAME.yaml.",
        ),
    ] = Path("experiment.yaml"),
    out: Annotated[Path | None, typer.Option(help="The spec to write; FILE's name with .yaml by default.")] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="A server's base address, such as http://127.0.0.1:8000/v1.")
    ] = None,
    kind: Annotated[
        Literal["choice", "short_answer", "spans"] | None, typer.Option(help="What is asked; choice by default.")
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

    For example:
        medexam init
        medexam init my.csv
        medexam init mine.yaml --endpoint http://127.0.0.1:8000/v1
    """
    if file.suffix not in (".yaml", ".yml"):
        _write_own(file, out, kind, answers, on, endpoint)
        return
    if flags := [name for name, value in (("out", out), ("kind", kind), ("answers", answers), ("on", on)) if value]:
        raise SpecError(f"{', '.join(f'--{name}' for name in flags)}: {file} is a spec to write; give your questions")
    from medexam.cli.meaning import write_spec
    from medexam.specs.loading import SCHEMA

    text = Template(SCHEMA.with_name("starter.txt").read_text(encoding="utf-8")).substitute(
        schema=SCHEMA.as_posix(),
        file=file.name,
        name=file.stem.replace(" ", "_"),
        model="engine: embedded" if endpoint is None else f"engine: vllm\n  endpoints: {endpoint}",
    )
    write_spec(file, text, "choose another name, medexam init FILE.yaml")
    sys.stderr.write(f"wrote {file}; medexam plan {file} shows what it would ask\n")


def _write_own(
    file: Path, out: Path | None, kind: "OwnKind | None", answers: Path | None, on: str | None, endpoint: str | None
) -> None:
    """Look at a file of your own questions and write a spec that asks them; exit code 3 if something is to decide."""
    from medexam.cli.items import plain_terminal, print_item
    from medexam.cli.meaning import write_spec
    from medexam.datasets.own.proposing import propose
    from medexam.datasets.rows import Row
    from medexam.experiments.entry.carry_out import render_own_spec
    from medexam.questions import Gold
    from medexam.specs.dataset import KeySpec

    out = out or file.with_name(f"{file.name.split('.')[0]}.yaml")
    key = None if answers is None else KeySpec(path=answers.absolute(), on=on)
    proposal = propose(file, kind, key)
    inside = out.absolute().parent == file.absolute().parent
    text = render_own_spec(file, proposal, Path(file.name) if inside else file.absolute(), endpoint)
    write_spec(out, f"# Written by `medexam init {file.name}`.\n{text}", "name another with --out")
    console = plain_terminal()
    console.print(f"{file}: kind {proposal.kind}", style="bold")
    for line in proposal.notes:
        console.print(f"  {line}")
    console.print()
    for row in proposal.rows[:3]:
        if isinstance(row, Row):
            print_item(console, row.question, Gold(number=-1 if row.gold is None else row.gold, others=row.others))
        else:
            print_item(console, row.task, row.gold)
    if proposal.open:
        for name, decision in proposal.open.items():
            console.print(f"to decide, dataset.{name}: {decision}", style="yellow")
        console.print(f"{out} is written; fill in what ends in `# decide:`", style="yellow")
        raise typer.Exit(INCOMPLETE)
    console.print(f"{out} is written; ask the questions with: medexam run {out}", style="green")
