"""What `medexam doctor` does: examine servers or hosted models, and print what was found."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from medexam.cli.options import INCOMPLETE, refuse, refuse_others
from medexam.cli.views.hosted import print_hosted
from medexam.cli.views.machine import machine_rows
from medexam.cli.views.output import print_json
from medexam.errors import EngineError, SpecError
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.shown import Unbroken, print_blocks
from medexam.experiments.run.signals import run_interruptibly
from medexam.serve.cluster.checks import check_node
from medexam.serve.cluster.node import JobNode
from medexam.serve.diagnostics.advice import advise
from medexam.serve.diagnostics.api_check import honours_schema
from medexam.serve.diagnostics.diagnosis import Diagnosis, DiagnosisReport, diagnose, find_targets, identify
from medexam.serve.diagnostics.hosted import examine, is_hosted
from medexam.serve.diagnostics.next_command import next_command
from medexam.serve.diagnostics.read_check import ReadCheck
from medexam.serve.diagnostics.replicas import ReplicaComparison
from medexam.serve.discovery.registry import local_registry
from medexam.serve.discovery.sampling import SamplingRecord
from medexam.serve.launch.command import ServerSettings
from medexam.serve.launch.own_servers import vllm_python
from medexam.specs import ModelSpec
from medexam.specs.model import REGISTRY
from medexam.tables import Table


def examine_servers(
    context: typer.Context,
    endpoints: list[str] | None,
    model: str | None,
    burst: float,
    api_key_env: str | None,
    api_key_file: Path | None,
    ca_bundle: Path | None,
    *,
    identify: bool,
    as_json: bool,
) -> None:
    """Check servers, hosted models or this machine: what they support, and what to change."""
    if hosted := _find_hosted(endpoints or ()):
        options = {"endpoints", "api_key_env", "api_key_file", "as_json"}
        refuse_others(context, options, "a hosted model is asked by its name alone: leave it out")
        _examine_hosted(hosted, api_key_env, api_key_file, as_json=as_json)
        return
    if not endpoints and not local_registry().read():
        refuse_others(context, {"as_json"}, "no server is named or registered on this machine: name one")
        _examine_machine(as_json=as_json)
        return
    targets = find_targets(
        endpoints or (), model=model, api_key_env=api_key_env, api_key_file=api_key_file, ca_bundle=ca_bundle
    )
    if identify:
        refuse(context, {"burst"}, "--identify measures nothing: leave it out")
        _print_identities(targets, as_json=as_json)
        return
    keys = {"api_key_env": api_key_env, "api_key_file": api_key_file, "ca_bundle": ca_bundle}
    _diagnose(targets, burst, keys, as_json=as_json)


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


def _diagnose(
    targets: Sequence[ModelSpec], burst_s: float, keys: Mapping[str, str | Path | None], *, as_json: bool
) -> None:
    """Print all that is found out about servers; the exit code says whether all can be used."""
    report = run_interruptibly(diagnose(targets, burst_s=burst_s))
    command = next_command(report, {name: str(value) for name, value in keys.items() if value is not None})
    _print_report(report, advise(report), command, as_json=as_json)
    if any(diagnosis.seen is None for diagnosis in report.diagnoses):
        raise typer.Exit(INCOMPLETE)


def _find_hosted(names: "Sequence[str]") -> list[str]:
    """Find the names of hosted models; raises `SpecError` where servers stand among them."""
    # litellm, which knows the providers, takes seconds to load.
    possible = [name for name in names if "/" in name and not {".", ":"} & {*name.partition("/")[0]}]
    if not possible:
        return []
    hosted = [name for name in possible if is_hosted(name)]
    if hosted and len(hosted) < len(names):
        raise SpecError("doctor examines either servers or hosted models: give it one kind at a time")
    return hosted


def _examine_hosted(
    names: "Sequence[str]", api_key_env: str | None, api_key_file: Path | None, *, as_json: bool
) -> None:
    """Print what hosted models take; raises `EngineError` if none can be asked."""
    looks = (examine(name, api_key_env=api_key_env, api_key_file=api_key_file) for name in names)
    diagnoses = [run_interruptibly(look) for look in looks]
    print_hosted(diagnoses, as_json=as_json)
    faults = [diagnosis.fault for diagnosis in diagnoses if diagnosis.fault is not None]
    if len(faults) == len(diagnoses):
        raise EngineError(faults[0])
    if faults:
        raise typer.Exit(INCOMPLETE)


def _print_report(report: DiagnosisReport, advice: tuple[str, ...], command: str | None, *, as_json: bool) -> None:
    if as_json:
        replicas = report.replicas.model_dump(mode="json") if report.replicas else None
        servers = [_as_json(diagnosis) for diagnosis in report.diagnoses]
        print_json({"endpoints": servers, "replicas": replicas, "advice": list(advice), "command": command})
    else:
        _print(report, advice)
        if command is not None:
            sys.stdout.write(f"\nTo ask a few questions there:\n{command}\n")


def _print_identities(targets: Sequence[ModelSpec], *, as_json: bool) -> None:
    """Print which model answers at each server; the exit code says whether all could be asked."""
    identities = asyncio.run(identify(targets))
    faults = [identity for identity in identities.values() if isinstance(identity, EngineError)]
    if len(faults) == len(identities):
        raise faults[0]
    if as_json:
        documents = {
            base: {"fault": str(identity)}
            if isinstance(identity, EngineError)
            else {"print": identity.print, **identity.model_dump()}
            for base, identity in identities.items()
        }
        print_json(documents)
    else:
        for base, identity in identities.items():
            text = str(identity) if isinstance(identity, EngineError) else identity.describe()
            sys.stdout.write(f"{base}: {text}\n")
    if faults:
        raise typer.Exit(INCOMPLETE)


def _as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    document = diagnosis.model_dump(mode="json", exclude={"seen"})
    if diagnosis.seen is None:
        return document
    return {
        **diagnosis.seen.model_dump(mode="json"),
        "revision": diagnosis.revision,
        "guided_by": diagnosis.seen.guided_by,
        **document,
    }


def _print(report: DiagnosisReport, advice: tuple[str, ...]) -> None:
    columns = [_column(diagnosis) for diagnosis in report.diagnoses]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = tuple((name, *(column.get(name, "") for column in columns)) for name in names)
    headers = ("", *(diagnosis.endpoint for diagnosis in report.diagnoses))
    lines = ["What to change:" if advice else "Nothing to change.", *(f"- {line}" for line in advice)]
    if report.replicas is not None:
        lines.insert(0, _agreement(report.replicas))
    print_blocks(Terminal(), [Table("", headers, rows, text_columns=len(headers)), *map(Unbroken, lines)])


def _column(diagnosis: Diagnosis) -> dict[str, str]:
    """Build what a table says of a server, by the name of the row."""
    record, burst = diagnosis.seen, diagnosis.burst
    if record is None:
        return {"server": "silent" if diagnosis.silent else "cannot be used"}
    refusals = {feature: f"refused ({reply})" for feature, reply in record.refusals.items()}
    return {
        "server": record.server_version or "unknown",
        "models": ", ".join(record.models) or "none listed",
        "asked": record.model,
        "loaded from": record.source or "not told",
        "revision": diagnosis.revision or "not told",
        "print": record.identity.print,
        "context": f"{record.max_context} tokens" if record.max_context else "not told",
        "dialogues": _yes(record.chat),
        "system turn": "kept" if record.system_turn else "refused: instructions open the first user turn",
        "repeated turns": "kept" if record.repeated_turns else "refused: joined into one",
        "empty system turn": "kept" if record.system_turn and record.empty_system_turn else "refused: left out",
        "renders its chat template": _yes(record.renders),
        "many prompts a request": _yes(record.list_prompts),
        "several replies a prompt": _yes(record.several_replies),
        "allowed_token_ids": refusals.get("allowed_token_ids", _yes(record.allowed_token_ids)),
        "structured_outputs": refusals.get("structured_outputs", _yes(record.structured_outputs)),
        "sampling left out": _sampling(record.sampling),
        "pictures": refusals.get("pictures", _yes(bool(record.sees))),
        "echo": refusals.get("echo", _yes(record.echo_logprobs is not None)),
        "logprob_token_ids": f"honoured, {record.named_logprobs} a request"
        if record.named_logprobs
        else refusals.get("logprob_token_ids", _yes(False)),
        "probabilities under a constraint": "those of all tokens" if record.masked_logprobs else "not told",
        "guided answers": _guided(diagnosis, record.guided_by),
        **{f"OpenAI's {check.what}": check.describe() for check in diagnosis.api},
        **{f"log-probabilities by {verdict.way}": _verdict(verdict) for verdict in diagnosis.reads},
        "one call, one token": f"{record.call_s * 1000:.0f} ms",
        "prompts a second": f"{burst.prompts_per_s:.1f}, {burst.in_flight} in flight" if burst else "not measured",
        "tokens a second": f"{burst.tokens_per_s:.0f} written" if burst else "not measured",
    }


def _guided(diagnosis: Diagnosis, guided_by: str | None) -> str:
    if guided_by:
        return f"by {guided_by}"
    schema = honours_schema(diagnosis.api)
    return f"by engine litellm, with {schema}" if schema else "impossible: use answer_format free"


def _sampling(sampling: SamplingRecord) -> str:
    fills = "not told" if sampling.filled is None else ", ".join(sampling.filled) or "nothing"
    return f"{sampling.stated}; filled by the server: {fills}"


def _agreement(replicas: ReplicaComparison) -> str:
    if replicas.same_tokens is None:
        return "It is unknown whether the servers agree: fewer than two report log-probabilities."
    if not replicas.same_tokens:
        return "The servers cut the same text into different tokens."
    if replicas.difference is None:
        return "The servers use the same tokens; their log-probabilities are read in different ways."
    return (
        f"The servers agree to {replicas.difference:.1e} nats on the log-probabilities of {replicas.tokens} tokens, "
        "and use the same tokens."
    )


def _verdict(verdict: ReadCheck) -> str:
    if verdict.refusal is not None:
        return f"no: {verdict.refusal}"
    if verdict.difference is None:
        return f"yes, the reference of the others, {verdict.seconds:.2f} s"
    return f"yes, {verdict.difference:.1e} nats a token from the reference, {verdict.seconds:.2f} s"


def _yes(honoured: bool) -> str:
    return "honoured" if honoured else "not honoured"
