"""`medexam doctor`: what servers and models really take, whether they are alike, and what to change."""

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.cli.options import INCOMPLETE, JsonOption
from medexam.cli.output import print_json
from medexam.errors import EndpointSilentError, EngineError, SpecError

if TYPE_CHECKING:
    from medexam.serve.discovery.doctor import Diagnosis


def doctor(
    endpoints: Annotated[
        list[str] | None,
        typer.Argument(
            help=(
                "An address such as http://127.0.0.1:8000/v1, registry:FOLDER, or a hosted model such as "
                "openai/gpt-4o-mini. By default the servers registered on this machine; if none is registered, the "
                "machine itself."
            ),
            metavar="ENDPOINT|MODEL",
            show_default=False,
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask; the only one by default.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the key.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check servers, hosted models or this machine: what they support, and what to change.

    Without a server it says what this machine has: versions, GPU, keys, data sets and extras.

    Exit codes: 0 all can be used, 2 none can, 3 some cannot.

    For example:
        medexam doctor http://127.0.0.1:8000/v1
        medexam doctor openai/gpt-4o-mini
    """
    from medexam.experiments.run.scheduler import run_interruptibly
    from medexam.serve.discovery.doctor import diagnose, find_targets
    from medexam.serve.discovery.registry import local_registry

    places = endpoints or []
    if not places and not local_registry().read():
        if model or api_key_env:
            raise SpecError("--model, --api-key-env: no server is named or registered on this machine: name one")
        _examine_machine(as_json=as_json)
        return
    targets = find_targets(places, model=model, api_key_env=api_key_env)
    diagnoses = run_interruptibly(diagnose(targets))
    faults = [one for one in diagnoses if one.fault is not None]
    # Where several places were asked, the address opens a line that says none.
    pairs = [(one.place, line) for one in diagnoses for line in one.advice]
    lines = [f"{place}: {line}" if len(diagnoses) > 1 and place not in line else line for place, line in pairs]
    if as_json:
        servers = [one.flatten() for one in diagnoses if one.place.startswith("http")]
        models = [one.flatten() for one in diagnoses if not one.place.startswith("http")]
        print_json({"endpoints": servers, "models": models, "advice": lines})
    elif len(faults) < len(diagnoses) or any(one.record for one in diagnoses):
        _print(diagnoses, lines)
    if len(faults) == len(diagnoses):
        raise (EndpointSilentError if faults[0].silent else EngineError)(faults[0].fault or "")
    if faults:
        raise typer.Exit(INCOMPLETE)


def _examine_machine(*, as_json: bool) -> None:
    from medexam.cli.machine import machine_rows
    from medexam.experiments.report.shown import Terminal, Unbroken, print_blocks
    from medexam.tables import Table

    rows = list(machine_rows())
    if as_json:
        print_json({"machine": {name: {"here": here, "lets": lets} for name, here, lets in rows}})
        return
    table = Table("This machine", ("", "Here", "What it lets you do"), tuple(rows), text_columns=3)
    advice = "`medexam doctor http://HOST:PORT/v1` or `medexam doctor PROVIDER/MODEL` asks a server or a model."
    print_blocks(Terminal(), [table, Unbroken(advice)])


def _print(diagnoses: "Sequence[Diagnosis]", lines: Sequence[str]) -> None:
    """Print a column for each place, what to change, and the command that asks a few questions there."""
    from medexam.experiments.report.shown import Terminal, Unbroken, print_blocks
    from medexam.specs.catalogue import SAMPLE
    from medexam.tables import Table

    columns: list[dict[str, str]] = []
    for one in diagnoses:
        if one.record is None:
            columns.append({"server": "silent" if one.silent else "cannot be used"})
            continue
        by_tables = one.fault is not None or not one.record.probed
        source = {"known": "by litellm's tables alone" if by_tables else "as it answered"}
        columns.append(source | one.record.describe())
    names = dict.fromkeys(name for column in columns for name in column)
    rows = tuple((name, *(column.get(name, "") for column in columns)) for name in names)
    headers = ("", *(one.place for one in diagnoses))
    texts = ["What to change:" if lines else "Nothing to change.", *(f"- {line}" for line in lines)]
    print_blocks(Terminal(), [Table("", headers, rows, text_columns=len(headers)), *map(Unbroken, texts)])
    for place, record in [(one.place, one.record) for one in diagnoses if one.fault is None and one.record][:1]:
        settings = [] if record.chat else ["program.kind=likelihood", "program.chat_template=false"]
        settings += [f"model.temperature={record.fixed_temperature:g}"] if record.fixed_temperature else []
        words = ["medexam", "run", SAMPLE.name, "--limit", "5", "--model", place]
        sys.stdout.write(f"\n{shlex.join([*words, *(word for pair in settings for word in ('--set', pair))])}\n")
