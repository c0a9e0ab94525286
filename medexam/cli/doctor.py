"""`medexam doctor`: what servers and models really take, whether they are alike, and what to change."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.cli.options import INCOMPLETE, JsonOption, refuse, refuse_others
from medexam.cli.output import print_json
from medexam.errors import EndpointSilentError, EngineError, SpecError

if TYPE_CHECKING:
    from medexam.serve.discovery.doctor import Diagnosis


def doctor(
    context: typer.Context,
    endpoints: Annotated[
        list[str] | None,
        typer.Argument(
            help=(
                "An address such as http://127.0.0.1:8000/v1, registry:FILE, or a hosted model such as "
                "openai/gpt-4o-mini. By default the servers registered on this machine; if none is registered, the "
                "machine itself."
            ),
            metavar="ENDPOINT|MODEL",
            show_default=False,
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask; the only one by default.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the key.")] = None,
    api_key_file: Annotated[Path | None, typer.Option(help="File that holds the key, of mode 600.")] = None,
    ca_bundle: Annotated[Path | None, typer.Option(help="Certificates (PEM) for https endpoints.")] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="In a Slurm job, by srun: say what would fail on its nodes.")
    ] = False,
    container: Annotated[
        str | None, typer.Option(help="With --cluster: the image that vLLM runs from.", metavar="IMAGE")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check servers, hosted models or this machine: what they support, and what to change.

    Without a server it says what this machine has: GPU, memory, disk, keys, data, extras, versions, network.

    Exit codes: 0 all can be used, 2 none can, 3 some cannot.

    For example:
        medexam doctor http://127.0.0.1:8000/v1
        medexam doctor --cluster --model llama-3.1-70b
    """
    from medexam.experiments.run.signals import run_interruptibly
    from medexam.serve.discovery.doctor import compare_servers, diagnose, find_targets, write_command
    from medexam.serve.discovery.registry import local_registry

    places = endpoints or []
    if cluster:
        refuse_others(context, {"cluster", "container", "endpoints", "model"}, "--cluster asks no server: leave it out")
        _examine_nodes(places, model, container)
        return
    refuse(context, {"container"}, "it belongs to the nodes of a job: add --cluster")
    if api_key_env is not None and api_key_file is not None:
        raise SpecError("--api-key-env and --api-key-file both name the key: give one of them")
    if not places and not local_registry().read():
        refuse_others(context, {"as_json"}, "no server is named or registered on this machine: name one")
        _examine_machine(as_json=as_json)
        return
    targets = find_targets(places, model=model, api_key_env=api_key_env, api_key_file=api_key_file, ca_bundle=ca_bundle)
    diagnoses = run_interruptibly(diagnose(targets))
    faults = [one for one in diagnoses if one.fault is not None]
    # Where several places were asked, the address opens a line that says none.
    lines = [
        f"{one.place}: {line}" if len(diagnoses) > 1 and one.place not in line else line
        for one in diagnoses
        for line in ([one.fault] if one.fault is not None else one.advice)
    ]
    lines += compare_servers(diagnoses)
    if as_json:
        servers = [one.flatten() for one in diagnoses if one.place.startswith("http")]
        models = [one.flatten() for one in diagnoses if not one.place.startswith("http")]
        print_json({"endpoints": servers, "models": models, "advice": lines, "command": write_command(diagnoses)})
    elif len(faults) < len(diagnoses) or any(one.record is not None for one in diagnoses):
        _print(diagnoses, lines)
    if len(faults) == len(diagnoses):
        raise (EndpointSilentError if faults[0].silent else EngineError)(faults[0].fault or "")
    if faults:
        raise typer.Exit(INCOMPLETE)


def _examine_nodes(endpoints: Sequence[str], model: str | None, container: str | None) -> None:
    """Print what would fail on each node of a job, a line for each check; exit code 3 if one would fail."""
    from medexam.serve.cluster.checks import check_node
    from medexam.serve.cluster.node import JobNode
    from medexam.serve.discovery.registry import local_registry
    from medexam.serve.launch.command import ServerSettings
    from medexam.serve.launch.own_server import vllm_python
    from medexam.specs.model import REGISTRY

    registries = [endpoint.removeprefix(REGISTRY) for endpoint in endpoints if endpoint.startswith(REGISTRY)]
    if len(registries) != len(endpoints) or len(registries) > 1:
        raise SpecError("--cluster looks at nodes and not at servers: name at most registry:FILE")
    node = JobNode.find()
    folder = (Path(registries[0]).expanduser().absolute() if registries else local_registry().path).parent
    servers = ServerSettings(python=None if container else vllm_python(), container=container)
    faults = 0
    for finding in check_node(node, model, folder, servers):
        faults += finding.fault is not None
        word, text = ("ok   ", finding.observation) if finding.fault is None else ("FAILS", finding.fault)
        sys.stdout.write(f"{node.name}  {word}  {finding.subject}: {text}\n")
        sys.stdout.flush()
    if faults:
        raise typer.Exit(INCOMPLETE)


def _examine_machine(*, as_json: bool) -> None:
    """Print what is here and what that lets its user do."""
    from medexam.cli.machine import machine_rows
    from medexam.experiments.entry.terminal import Terminal
    from medexam.experiments.report.shown import Unbroken, print_blocks
    from medexam.tables import Table

    rows = list(machine_rows())
    if as_json:
        print_json({"machine": {name: {"here": here, "lets": lets} for name, here, lets in rows}})
        return
    table = Table("This machine", ("", "Here", "What it lets you do"), tuple(rows), text_columns=3)
    advice = "`medexam doctor http://HOST:PORT/v1` or `medexam doctor PROVIDER/MODEL` asks a server or a model."
    print_blocks(Terminal(), [table, Unbroken(advice)])


def _print(diagnoses: "Sequence[Diagnosis]", lines: Sequence[str]) -> None:
    """Print a column for each place, what to change, and the command that asks there."""
    from medexam.experiments.entry.terminal import Terminal
    from medexam.experiments.report.shown import Unbroken, print_blocks
    from medexam.serve.discovery.doctor import write_command
    from medexam.tables import Table

    columns: list[dict[str, str]] = []
    for one in diagnoses:
        if one.record is None:
            columns.append({"server": "silent" if one.silent else "cannot be used"})
            continue
        by_tables = one.fault is not None or not getattr(one.record, "probed", True)
        source = {"known": "by litellm's tables alone" if by_tables else "as it answered"}
        refusals = {f"refuses {name}": words for name, words in one.record.refusals.items()}
        columns.append(source | one.record.describe() | refusals)
    names = dict.fromkeys(name for column in columns for name in column)
    rows = tuple((name, *(column.get(name, "") for column in columns)) for name in names)
    headers = ("", *(one.place for one in diagnoses))
    texts = ["What to change:" if lines else "Nothing to change.", *(f"- {line}" for line in lines)]
    print_blocks(Terminal(), [Table("", headers, rows, text_columns=len(headers)), *map(Unbroken, texts)])
    if (command := write_command(diagnoses)) is not None:
        sys.stdout.write(f"\nTo ask a few questions there:\n{command}\n")
