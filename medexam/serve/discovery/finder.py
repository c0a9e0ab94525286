"""Which servers a spec means: those that it names, or those of a registry.

This module knows addresses, keys and registries; what the servers honour is found out elsewhere.
"""

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from medexam.errors import EndpointUnreachableError, EngineError
from medexam.serve.discovery.registry import RegisteredServer, Registry, local_registry
from medexam.serve.network.endpoints import NO_KEY, Endpoint, normalise_address, read_api_key
from medexam.serve.network.keys import read_key_file
from medexam.serve.timing import TIMING
from medexam.specs.model import ModelSpec

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerFinder:
    """Finds the servers of one model in a registry."""

    registry: Registry
    spec: ModelSpec
    prefer_host: str | None = None
    """Only the servers on this machine are used, if it has some; None: those of all machines."""

    def find(self, model: str | None) -> tuple[Endpoint, ...]:
        """Find the servers of a model that are registered now; None: of the only model.

        Raises `EngineError` if the registry cannot be read, or holds several models and none is named, and `SpecError`
        if a key cannot be read.
        """
        entries = self.registry.read()
        models = list(dict.fromkeys(entry.model for entry in entries))
        if model is None and len(models) > 1:
            raise EngineError(
                f"{self.registry.path} holds servers of {len(models)} models ({', '.join(models)}); "
                "name one with model.name or model.profile"
            )
        candidates = [entry for entry in entries if model is None or entry.model == model]
        preferred = [entry for entry in candidates if entry.host == self.prefer_host]
        return tuple(_open(entry, self.spec) for entry in preferred or candidates)

    async def wait(self, wait_s: float) -> tuple[Endpoint, ...]:
        """Return the registered servers; wait up to `wait_s` seconds for the first, and longer while any of them loads.

        One that is registered and may have ended is waited for until it counts as ended. Raises as `find` does, and
        `EndpointUnreachableError` if none came.
        """
        deadline, notice = time.monotonic() + wait_s, ""
        while True:
            # Before the servers: one that answers from now on is found below, and must not be missed by both.
            coming = await asyncio.to_thread(self._describe_coming)
            endpoints = await asyncio.to_thread(self.find, self.spec.name)
            if endpoints and not coming:
                return endpoints
            left_s = deadline - time.monotonic()
            if not coming and left_s <= 0:
                raise EndpointUnreachableError(f"{self._none_registered()}; {self._remedy()}")
            status = coming or f"{self._none_registered()}; waiting {wait_s:.0f} s for one"
            if status != notice:
                _log.warning("medexam: warning: %s", status)
                notice = status
            await asyncio.sleep(TIMING.poll_s if coming else min(TIMING.poll_s, left_s))

    def _describe_coming(self) -> str | None:
        """Say why a server may come soon: one that this run could use loads, or may run on; None: neither."""
        if loading := self._usable(self.registry.read_loading()):
            return f"{loading[0].address} still loads; waiting for it"
        if unsure := self._usable(self.registry.read_unsure()):
            hosts = ", ".join(dict.fromkeys(entry.host for entry in unsure))
            return (
                f"by this machine's clock the last heartbeat of {hosts} is not within the last {TIMING.stale_s:.0f} s; "
                f"waiting {TIMING.stale_s:.0f} s for a new one"
            )
        return None

    def _usable(self, entries: Iterable[RegisteredServer]) -> list[RegisteredServer]:
        return [entry for entry in entries if self.spec.name in (None, entry.model)]

    def _none_registered(self) -> str:
        of_model = f" of {self.spec.name}" if self.spec.name else ""
        others = sorted({entry.model for entry in self.registry.read()} - {self.spec.name})
        but = f", only of {', '.join(others)}" if others else ""
        return f"no server{of_model} is registered in {self.registry.path}{but}"

    def _remedy(self) -> str:
        model = self.spec.profile or self.spec.name or "smollm2-cpu"
        registry = f" --registry {self.registry.path}" if self.spec.registry else ""
        return f"start one with `medexam serve {model}{registry}`, or name servers in model.endpoints"


async def find_endpoints(
    spec: ModelSpec, prefer_host: str | None = None
) -> tuple[tuple[Endpoint, ...], ServerFinder | None]:
    """Find the servers of a spec, and what finds them again; None if the spec names its servers.

    Waits as `ServerFinder.wait` does; raises as it does.
    """
    if spec.endpoints and spec.registry is None:
        return named_endpoints(spec), None
    registry = local_registry() if spec.registry is None else Registry(spec.registry)
    finder = ServerFinder(registry, spec, prefer_host)
    return await finder.wait(0.0 if spec.registry is None else spec.wait_s), finder


def named_endpoints(spec: ModelSpec) -> tuple[Endpoint, ...]:
    """List the endpoints that a spec names, each once; raises `SpecError`."""
    bases = dict.fromkeys(normalise_address(address) for address in spec.endpoints)
    key = _own_key(spec) or NO_KEY
    return tuple(Endpoint(base, key, spec.ca_bundle) for base in bases)


def _own_key(spec: ModelSpec) -> str | None:
    return read_api_key(spec.api_key_env, "VLLM_API_KEY", file=spec.api_key_file)


def _open(entry: RegisteredServer, spec: ModelSpec) -> Endpoint:
    spec_key = spec.api_key_env or spec.api_key_file
    key = read_key_file(entry.key_file) if entry.key_file is not None and not spec_key else _own_key(spec)
    return Endpoint(normalise_address(entry.address), key or NO_KEY, spec.ca_bundle)
