"""What `medexam doctor` does: examine servers, hosted models, nodes of a job or this machine, and print the records."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from medexam.cli.options import INCOMPLETE, refuse_others
from medexam.cli.views.machine import machine_rows
from medexam.cli.views.output import print_json
from medexam.errors import EndpointSilentError, EngineError, SpecError
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.shown import Unbroken, print_blocks
from medexam.experiments.run.signals import run_interruptibly
from medexam.serve.cluster.checks import check_node
from medexam.serve.cluster.node import JobNode
from medexam.serve.diagnostics.doctor import Diagnosis, compare_servers, diagnose, find_targets, flatten, write_command
from medexam.serve.discovery.registry import local_registry
from medexam.serve.launch.command import ServerSettings
from medexam.serve.launch.own_servers import vllm_python
from medexam.specs.model import REGISTRY
from medexam.tables import Table


def examine(
    context: typer.Context,
    places: Sequence[str],
    model: str | None,
    api_key_env: str | None,
    api_key_file: Path | None,
    ca_bundle: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print what servers and hosted models take, or what this machine has; the exit code says whether all can be
    asked.
    """
    if not places and not local_registry().read():
        refuse_others(context, {"as_json"}, "no server is named or registered on this machine: name one")
        _examine_machine(as_json=as_json)
        return
    targets = find_targets(places, model=model, api_key_env=api_key_env, api_key_file=api_key_file, ca_bundle=ca_bundle)
    diagnoses = run_interruptibly(diagnose(targets))
    faults = [one for one in diagnoses if one.fault is not None]
    lines = [*(line for one in diagnoses for line in _lines(one, several=len(diagnoses) > 1))]
    lines += compare_servers(diagnoses)
    if as_json:
        documents: dict[str, list[Mapping[str, Any]]] = {"endpoints": [], "models": []}
        for one in diagnoses:
            documents["endpoints" if one.place.startswith("http") else "models"].append(flatten(one))
        print_json({**documents, "advice": lines, "command": write_command(diagnoses)})
    elif len(faults) < len(diagnoses) or any(one.record is not None for one in diagnoses):
        _print(diagnoses, lines)
    if len(faults) == len(diagnoses):
        raise (EndpointSilentError if faults[0].silent else EngineError)(faults[0].fault or "")
    if faults:
        raise typer.Exit(INCOMPLETE)


def examine_nodes(endpoints: Sequence[str], model: str | None, container: str | None) -> None:
    """Print what would fail on each node of a job, a line for each check; exit code 3 if one would fail."""
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
    rows = list(machine_rows())
    if as_json:
        print_json({"machine": {name: {"here": here, "lets": lets} for name, here, lets in rows}})
        return
    table = Table("This machine", ("", "Here", "What it lets you do"), tuple(rows), text_columns=3)
    advice = "`medexam doctor http://HOST:PORT/v1` or `medexam doctor PROVIDER/MODEL` asks a server or a model."
    print_blocks(Terminal(), [table, Unbroken(advice)])


def _lines(diagnosis: Diagnosis, *, several: bool) -> list[str]:
    """List what to change there; its address opens a line where several places were asked and it says none."""
    lines = [diagnosis.fault] if diagnosis.fault is not None else diagnosis.advice
    return [f"{diagnosis.place}: {line}" if several and diagnosis.place not in line else line for line in lines]


def _print(diagnoses: Sequence[Diagnosis], lines: Sequence[str]) -> None:
    columns = [_column(diagnosis) for diagnosis in diagnoses]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = tuple((name, *(column.get(name, "") for column in columns)) for name in names)
    headers = ("", *(diagnosis.place for diagnosis in diagnoses))
    texts = ["What to change:" if lines else "Nothing to change.", *(f"- {line}" for line in lines)]
    print_blocks(Terminal(), [Table("", headers, rows, text_columns=len(headers)), *map(Unbroken, texts)])
    if (command := write_command(diagnoses)) is not None:
        sys.stdout.write(f"\nTo ask a few questions there:\n{command}\n")


def _column(diagnosis: Diagnosis) -> dict[str, str]:
    """Build what a table says of one place, by the name of the row."""
    record = diagnosis.record
    if record is None:
        return {"server": "silent" if diagnosis.silent else "cannot be used"}
    tables = diagnosis.fault is not None or not getattr(record, "probed", True)
    source = {"known": "by litellm's tables alone" if tables else "as it answered"}
    return source | record.describe() | {f"refuses {name}": words for name, words in record.refusals.items()}
