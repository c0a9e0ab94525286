"""What is to be known of servers and hosted models before a run is given to them.

The engine that a run would ask with finds it out, and its record is what `medexam doctor` prints. This module chooses
the engine as a run does, notes faults, and says what to change.
"""

import asyncio
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medexam.errors import EndpointSilentError, EngineError
from medexam.event_loop import background_loop
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.probe import probe_endpoint
from medexam.serve.discovery.registry import Registry, local_registry, named_endpoints
from medexam.serve.discovery.requests import UNLIMITED
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.engines.provider import examine_provider
from medexam.specs.catalogue import SAMPLE
from medexam.specs.model import REGISTRY, ModelSpec
from medexam.specs.validation import validate

_PROVIDER = re.compile(r"([a-z][a-z0-9_]*)/.+")


@dataclass
class Diagnosis:
    """What was found out about one server or hosted model."""

    place: str
    fault: str | None = None
    """Why it cannot be asked; None if it can."""
    silent: bool = False
    """The fault is that nobody answers now."""
    record: Capabilities | None = None
    """What it takes, as far as it is known; None where nothing is."""
    spec: dict[str, Any] = field(default_factory=dict)
    """The `model` part of a spec that asks it."""

    @property
    def advice(self) -> tuple[str, ...]:
        """What to change, or to know, a line each."""
        if self.record is None or self.fault is not None:
            return ()
        return tuple(_advise(self.record))

    def flatten(self) -> dict[str, Any]:
        """Return it as JSON: its record's own fields, what they mean in words, the fault and the advice."""
        fields: dict[str, Any] = {"place": self.place, "fault": self.fault, "silent": self.silent, "spec": self.spec}
        fields["advice"] = list(self.advice)
        if (record := self.record) is None:
            return fields
        words: dict[str, Any] = {"guided_by": record.guided_by, "ways": record.describe()}
        words |= {"print": record.identity.print, "revision": record.identity.commit, "reads": sorted(record.reads)}
        return {**record.model_dump(mode="json"), **words, **fields}


def find_targets(
    places: Sequence[str],
    *,
    model: str | None = None,
    api_key_env: str | None = None,
    api_key_file: Path | None = None,
    ca_bundle: Path | None = None,
) -> tuple[ModelSpec, ...]:
    """Build a spec for each hosted model and each server, where `registry:FILE` stands for those that the file lists.

    No place stands for this machine's registry. Raises `SpecError` for an address or key that is none, and
    `EngineError` if a registry cannot be read or lists no server.
    """
    specs: dict[str, ModelSpec] = {}
    for place in places or (f"{REGISTRY}{local_registry().path}",):
        servers: list[tuple[str, str | None, Path | None]] = [(place, model, None)]
        if place.startswith(REGISTRY):
            registry = Registry(Path(place.removeprefix(REGISTRY)))
            listed = [one for one in registry.read() if model in (None, one.model)]
            servers = [(one.address, one.model, one.key_file) for one in listed]
            if not servers:
                raise EngineError(
                    f"no server{f' of {model}' if model else ''} is registered in {registry.path}; start one with "
                    "`medexam serve MODEL`, or name an endpoint such as http://127.0.0.1:8000/v1"
                )
        for address, name, key_file in servers:
            key = {"api_key_env": api_key_env, "api_key_file": api_key_file or (None if api_key_env else key_file)}
            match = _PROVIDER.fullmatch(address)
            # litellm, which knows the providers, takes seconds to load: what opens as an address does is none.
            if match and match[1] in {str(getattr(one, "value", one)) for one in get_litellm().provider_list}:
                specs[address] = validate(ModelSpec, {"engine": "litellm", "name": address, **key})
                continue
            fields = {"engine": "vllm", "name": name, "endpoints": (address,), "ca_bundle": ca_bundle, **key}
            spec = validate(ModelSpec, fields)
            specs.setdefault(named_endpoints(spec)[0].base, spec)
    return tuple(specs.values())


async def diagnose(targets: Sequence[ModelSpec]) -> list[Diagnosis]:
    """Find out everything about each target."""
    return list(await asyncio.gather(*(background_loop().run_async(_examine(target)) for target in targets)))


def compare_servers(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """Say what tells servers from the first one that can be asked, as a run would refuse them; empty where nothing."""
    records = [
        one.record for one in diagnoses if one.fault is None and one.record is not None and one.record.provider is None
    ]
    return [
        f"{other.endpoint} is another model than {records[0].endpoint}: {difference}; give a run those that are alike"
        for other in records[1:]
        for difference in records[0].identity.differences(other.identity)
    ]


def write_command(diagnoses: Sequence[Diagnosis]) -> str | None:
    """Write the shell line that asks a few questions of the first that can be asked; None if none can be."""
    usable = [one for one in diagnoses if one.fault is None and one.record is not None]
    if not usable or (record := usable[0].record) is None:
        return None
    model, settings = dict(usable[0].spec), [f"program.answer_format={'guided' if record.guided_by else 'free'}"]
    if record.provider is None:
        model["endpoints"] = [one.place for one in usable if one.record and one.record.provider is None]
        if not record.chat:
            settings = ["program.kind=likelihood", "program.chat_template=false"]
    elif record.fixed_temperature is not None:
        model["temperature"] = record.fixed_temperature
    words = [f"model={json.dumps(model)}", *settings]
    return " ".join(["medexam run", SAMPLE.name, "--limit 5", *(f"--set {shlex.quote(word)}" for word in words)])


async def _examine(target: ModelSpec) -> Diagnosis:
    place = named_endpoints(target)[0].base if target.endpoints else target.name or ""
    model = target.model_dump(mode="json", exclude_defaults=True)
    try:
        if target.endpoints:
            endpoint = named_endpoints(target)[0]
            record = await probe_endpoint(endpoint, target.name, pictures=True, wait_s=target.wait_s)
            return Diagnosis(place, record=record, spec=model)
        record, fault = await examine_provider(target)
        if record.fixed_temperature is not None:
            record, fault = await examine_provider(target.model_copy(update={"temperature": record.fixed_temperature}))
        return Diagnosis(place, record=record, fault=fault, spec=model)
    except EngineError as error:
        return Diagnosis(place, str(error), isinstance(error, EndpointSilentError))


def _advise(record: Capabilities) -> Iterator[str]:
    if not record.chat:
        yield "for information: it has no chat template, so it reads and continues plain text alone"
    elif not record.guided_by:
        yield "no choice can be enforced: set program.answer_format to free"
    if record.chat and record.limit is None:
        yield UNLIMITED.format("it")
    if record.provider is not None or (record.choice_form and not record.is_vllm):
        if record.thinks and record.provider is None:
            yield "it thinks unasked, so replies take long: model.thinking: off asks it not to"
        return
    if not record.tokenizes:
        yield (
            "/tokenize is not served as vLLM does, so neither guided answers by prefill nor log-probabilities of given "
            "texts are possible: ask the vLLM server itself, or let the gateway pass /tokenize and /detokenize on"
        )
        return
    costs = {
        "allowed_token_ids": (record.allowed_token_ids, "guided answers need a slower grammar"),
        "echo": (record.echo_logprobs is not None, "no log-probabilities of texts can be read"),
        "logprob_token_ids": (record.names_tokens, "option numbers are not read at one place"),
    }
    for field_name, (honoured, cost) in costs.items():
        if not honoured:
            refusal = record.refusals.get(field_name)
            manner = f"refused ({refusal})" if refusal else "ignored"
            yield f"{field_name} is {manner}, so {cost}: upgrade to vLLM 0.29 or later"
    if record.guided_by == "prefill" and not record.choice_form:
        yield "only choices that are single tokens can be enforced: upgrade to vLLM 0.12 or later"
