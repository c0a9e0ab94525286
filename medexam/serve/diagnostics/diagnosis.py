"""What is to be known of servers before a run is given to them: everything that `medexam doctor` finds out.

Each server is asked by the probe, read by each way, timed, and compared with the others.
This module asks and notes; what to do about it is `advice`'s to say.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from medexam.errors import CallError, EndpointSilentError, EngineError
from medexam.frozen_model import FrozenModel
from medexam.model_calls import ContinuationLogprobs
from medexam.model_identity import ModelIdentity
from medexam.serve.build import build_engine
from medexam.serve.diagnostics.api_check import ApiCheck, check_api
from medexam.serve.diagnostics.load_test import LoadResult, LoadTest, run_load_tests
from medexam.serve.diagnostics.read_check import ReadCheck, check_reads
from medexam.serve.diagnostics.replicas import ReplicaComparison, compare_replicas, take_sample
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.finder import named_endpoints
from medexam.serve.discovery.probe import probe_endpoint
from medexam.serve.discovery.registry import RegisteredServer, Registry, local_registry
from medexam.serve.discovery.server_calls import ServerCalls
from medexam.serve.network.connections import open_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.timing import TIMING
from medexam.specs.model import REGISTRY, ModelSpec
from medexam.specs.validation import validate


class Diagnosis(FrozenModel):
    """What was found out about one server."""

    endpoint: str
    fault: str | None = None
    """Why it cannot be used; None if it can."""
    silent: bool = False
    """The fault is that nobody answers now."""
    seen: Capabilities | None = None
    """None if it cannot be used."""
    reads: tuple[ReadCheck, ...] = ()
    """What came of each way of reading log-probabilities."""
    api: tuple[ApiCheck, ...] = ()
    """Which schemas of OpenAI's API it honours; empty if it takes no dialogues."""
    burst: LoadResult | None = None
    """None if none was asked for, or nothing was answered."""

    @property
    def revision(self) -> str | None:
        """The commit of the weights, if the server loaded them from a hub's cache by path; None: not reported."""
        return self.seen.identity.commit if self.seen else None


@dataclass(frozen=True)
class DiagnosisReport:
    """What was found out about all servers."""

    diagnoses: tuple[Diagnosis, ...]
    replicas: ReplicaComparison | None
    """None if fewer than two can be used."""


def find_targets(
    addresses: Sequence[str],
    *,
    model: str | None = None,
    api_key_env: str | None = None,
    api_key_file: Path | None = None,
    ca_bundle: Path | None = None,
) -> tuple[ModelSpec, ...]:
    """Build a spec for each server at `addresses`, where `registry:FILE` stands for those that the file lists.

    No address stands for this machine's registry. Raises `SpecError` for an address or key that is none, and
    `EngineError` if a registry cannot be read or lists no server.
    """
    specs: dict[str, ModelSpec] = {}

    def add(address: str, name: str | None, key_file: Path | None) -> None:
        key = {"api_key_env": api_key_env, "api_key_file": api_key_file or (None if api_key_env else key_file)}
        connection = {"endpoints": (address,), "ca_bundle": ca_bundle}
        spec = validate(ModelSpec, {"engine": "vllm", "name": name, **connection, **key})
        specs.setdefault(_endpoint(spec).base, spec)

    for address in addresses or (f"{REGISTRY}{local_registry().path}",):
        if address.startswith(REGISTRY):
            for entry in _registered(Registry(Path(address.removeprefix(REGISTRY))), model):
                add(entry.address, entry.model, entry.key_file)
        else:
            add(address, model, None)
    return tuple(specs.values())


def _registered(registry: Registry, model: str | None) -> list[RegisteredServer]:
    # One that may have ended is asked too: its answer, or its silence, decides.
    servers = registry.read() or registry.read_unsure()
    entries = [entry for entry in servers if model in (None, entry.model)]
    if not entries:
        of_model = f" of {model}" if model else ""
        raise EngineError(
            f"no server{of_model} is registered in {registry.path}; start one with `medexam serve MODEL`, or name an "
            "endpoint such as http://127.0.0.1:8000/v1"
        )
    return entries


def _endpoint(target: ModelSpec) -> Endpoint:
    return named_endpoints(target)[0]


async def identify(targets: Sequence[ModelSpec]) -> dict[str, ModelIdentity | EngineError]:
    """Map each address to the model that answers there, or why that cannot be found out; nothing else is asked."""

    async def look(target: ModelSpec) -> ModelIdentity | EngineError:
        try:
            capabilities = await probe_endpoint(_endpoint(target), target.name)
        except EngineError as error:
            return error
        return capabilities.identity

    identities = await asyncio.gather(*(look(target) for target in targets))
    return {_endpoint(target).base: identity for target, identity in zip(targets, identities, strict=True)}


async def diagnose(targets: Sequence[ModelSpec], *, burst_s: float) -> DiagnosisReport:
    """Find out everything about each server; a burst of `burst_s` seconds goes to all of them at once, 0: none.

    Raises the first server's fault if none can be used, and `SpecError` for a CA bundle that cannot be read.
    Cancelling the calling task during the burst ends the burst alone.
    """
    looks = await asyncio.gather(*(_look(target) for target in targets))
    usable = [diagnosis.seen for diagnosis, _ in looks if diagnosis.seen is not None]
    if not usable:
        fault = looks[0][0]
        raise (EndpointSilentError if fault.silent else EngineError)(fault.fault or "")
    samples = {diagnosis.endpoint: sample for diagnosis, sample in looks}
    replicas = compare_replicas(usable, samples)
    bursts = {
        diagnosis.endpoint: LoadTest(_endpoint(target), diagnosis.seen.model, diagnosis.seen.list_prompts)
        for target, (diagnosis, _) in zip(targets, looks, strict=True)
        if diagnosis.seen is not None
    }
    if burst_s > 0:
        await run_load_tests(list(bursts.values()), burst_s)
    diagnoses = (
        diagnosis.model_copy(update={"burst": bursts[diagnosis.endpoint].result}) if diagnosis.seen else diagnosis
        for diagnosis, _ in looks
    )
    return DiagnosisReport(tuple(diagnoses), replicas)


async def _look(target: ModelSpec) -> tuple[Diagnosis, ContinuationLogprobs | None]:
    endpoint = _endpoint(target)
    try:
        async with asyncio.timeout(TIMING.probe_deadline_s):
            return await _ask(target, endpoint)
    except TimeoutError:
        message = (
            f"{endpoint.base} did not answer all requests within {TIMING.probe_deadline_s:.0f} s; look into its log"
        )
        return Diagnosis(endpoint=endpoint.base, fault=message, silent=True), None
    except EngineError as fault:
        silent = isinstance(fault, EndpointSilentError)
        return Diagnosis(endpoint=endpoint.base, fault=str(fault), silent=silent), None
    except (httpx.TransportError, CallError) as fault:
        message = (
            f"{endpoint.base} stopped answering while it was asked ({str(fault) or type(fault).__name__}); ask again"
        )
        return Diagnosis(endpoint=endpoint.base, fault=message, silent=True), None


async def _ask(target: ModelSpec, endpoint: Endpoint) -> tuple[Diagnosis, ContinuationLogprobs | None]:
    """Ask a server everything; raises what its faults raise."""
    capabilities = await probe_endpoint(endpoint, target.name, pictures=True)
    engine = await build_engine(target.model_copy(update={"name": capabilities.model}))
    try:
        reads = await check_reads(engine)
        sample = await take_sample(engine)
    finally:
        await engine.aclose()
    async with open_client(endpoint, TIMING.probe_silence_s) as client:
        api = (
            await check_api(ServerCalls(client, endpoint, TIMING.probe_silence_s, capabilities.model))
            if capabilities.chat
            else ()
        )
    diagnosis = Diagnosis(endpoint=endpoint.base, seen=capabilities, reads=tuple(reads), api=api)
    return diagnosis, sample
