"""What is to be known of servers and hosted models before a run is given to them.

The engine that a run would ask with finds it out, and its record is what `medexam doctor` prints. This module notes
faults, and says what to change.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from medexam.errors import EndpointSilentError, EngineError
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.probe import probe_endpoint
from medexam.serve.discovery.registry import endpoint_of, find_endpoints, local_registry, read_registry
from medexam.serve.discovery.requests import UNLIMITED
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.engines.provider import examine_provider
from medexam.serve.network.endpoints import Endpoint
from medexam.specs.base import validate
from medexam.specs.model import REGISTRY, ModelSpec

_PROVIDER = re.compile(r"([a-z][a-z0-9_]*)/.+")
Target = tuple[str, ModelSpec, Endpoint | None]
"""An address or a hosted model, the spec that asks it, and where; None for a hosted model."""


class Diagnosis(NamedTuple):
    """What was found out about one server or hosted model."""

    place: str
    record: Capabilities | None = None
    """What it takes, as far as it is known; None where nothing is."""
    fault: str | None = None
    """Why it cannot be asked; None if it can."""
    silent: bool = False
    """The fault is that nobody answers now."""

    @property
    def advice(self) -> list[str]:
        """What to change, a line each, or the fault alone."""
        return [self.fault] if self.fault is not None else list(_advise(self.record)) if self.record else []

    def flatten(self) -> dict[str, Any]:
        """Return it as JSON: its record's own fields, how a choice and log-probabilities are had, and the fault."""
        fields = {"place": self.place, "fault": self.fault, "silent": self.silent, "advice": self.advice}
        if (record := self.record) is None:
            return fields
        fields |= {"guided_by": record.guided_by, "reads": sorted(record.reads), "revision": record.identity.commit}
        return {**record.model_dump(mode="json"), **fields, "print": record.identity.print}


def find_targets(places: Sequence[str], *, model: str | None = None, **access: Any) -> list[Target]:
    """List what each place names; `registry:FOLDER` stands for its servers, and no place for this machine's registry.

    `access` are the keys of a spec that say how a server is reached. Raises `SpecError` for an address or key that is
    none, and `EngineError` if a registry cannot be read or lists no server.
    """
    targets: dict[str, Target] = {}
    for place in places or (f"{REGISTRY}{local_registry().path}",):
        match = _PROVIDER.fullmatch(place)
        # litellm, which knows the providers, takes seconds to load: what opens as an address does is none.
        if match and match[1] in {str(getattr(one, "value", one)) for one in get_litellm().provider_list}:
            targets[place] = place, validate(ModelSpec, {"engine": "litellm", "name": place, **access}), None
            continue
        spec = validate(ModelSpec, {"engine": "vllm", "name": model, "endpoints": (place,), **access})
        endpoints: Sequence[Endpoint] = ()
        if spec.registry is None:
            endpoints = find_endpoints(spec)
        elif not (endpoints := [endpoint_of(one, spec) for one in read_registry(spec)]):
            raise EngineError(
                f"no server is registered in {spec.registry}; start one with `medexam serve MODEL`, or name an "
                "endpoint such as http://127.0.0.1:8000/v1"
            )
        for endpoint in endpoints:
            targets.setdefault(endpoint.base, (endpoint.base, spec, endpoint))
    return list(targets.values())


async def diagnose(targets: Sequence[Target]) -> list[Diagnosis]:
    """Find out everything about each target, on the background loop."""
    return list(await asyncio.gather(*(_examine(*target) for target in targets)))


async def _examine(place: str, spec: ModelSpec, endpoint: Endpoint | None) -> Diagnosis:
    try:
        if endpoint is not None:
            return Diagnosis(place, await probe_endpoint(endpoint, spec.name, pictures=True, wait_s=spec.wait_s))
        record, fault = await examine_provider(spec)
        if record.fixed_temperature is not None:
            record, fault = await examine_provider(spec.model_copy(update={"temperature": record.fixed_temperature}))
        return Diagnosis(place, record, fault)
    except EngineError as error:
        return Diagnosis(place, None, str(error), isinstance(error, EndpointSilentError))


def _advise(record: Capabilities) -> Iterator[str]:
    if record.chat and not record.guided_by:
        yield "no choice can be enforced: set program.answer_format to free"
    if record.chat and record.limit is None:
        yield UNLIMITED.format("it")
    if record.provider is not None or (record.choice_form and not record.is_vllm):
        return
    asked = {
        "allowed_token_ids": record.allowed_token_ids,
        "response_format": bool(record.choice_form) or not record.chat,
        "echo": record.echo_logprobs is not None,
        "logprob_token_ids": record.names_tokens,
    }
    if not record.tokenizes:
        yield (
            "/tokenize is not served as vLLM does, so neither guided answers by prefill nor log-probabilities of given "
            "texts are possible: ask the vLLM server itself, or let the gateway pass /tokenize and /detokenize on"
        )
    elif lacking := [name for name, honoured in asked.items() if not honoured]:
        yield f"{', '.join(lacking)}: not honoured, so guided answers or log-probabilities lack; upgrade to vLLM 0.29"
