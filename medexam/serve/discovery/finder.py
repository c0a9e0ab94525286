"""Which servers a spec means: those that it names, or those that a registry tells, now and while a run goes on.

This module knows addresses, keys and registries; what the servers honour is found out elsewhere.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from medexam.errors import EndpointSilentError, EndpointUnreachableError, EngineError, MedExamError
from medexam.serve.discovery.registry import RegisteredServer, Registry, local_registry
from medexam.serve.network.endpoints import NO_KEY, Endpoint, normalise_address, open_endpoints, read_key
from medexam.serve.network.keys import read_key_file
from medexam.serve.pool.server_pool import ServerPool
from medexam.specs.model import ModelSpec

POLL_S = 2.0
"""Seconds between two looks into a registry."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerFinder:
    """Finds the servers of one model in a registry."""

    registry: Registry
    spec: ModelSpec
    host: str | None = None
    """A machine whose servers are taken alone, where it has some; None takes those of all."""

    def find(self, model: str | None) -> tuple[Endpoint, ...]:
        """The servers of a model that are there now; of the only model where it is None.

        Raises `EngineError` where the registry cannot be read, or holds several models and none is named, and
        `SpecError` where a key cannot be read.
        """
        entries = self.registry.read()
        models = list(dict.fromkeys(entry.model for entry in entries))
        if model is None and len(models) > 1:
            raise EngineError(
                f"{self.registry.path} holds servers of {len(models)} models ({', '.join(models)}); "
                "name one with model.name or model.profile"
            )
        fitting = [entry for entry in entries if model is None or entry.model == model]
        near = [entry for entry in fitting if entry.host == self.host]
        return tuple(_open(entry, self.spec) for entry in near or fitting)

    async def find_first(self, wait_s: float) -> tuple[Endpoint, ...]:
        """The servers that are there, waiting so many seconds for the first, and for as long as one loads.

        Raises as `find` does, and `EndpointUnreachableError` where none came.
        """
        deadline, told = time.monotonic() + wait_s, ""
        while not (found := await asyncio.to_thread(self.find, self.spec.name)):
            loading = await asyncio.to_thread(self._find_loading)
            left_s = deadline - time.monotonic()
            if not loading and left_s <= 0:
                raise EndpointUnreachableError(f"{self._nobody()}; {self._way_out()}")
            why = (
                f"{loading} still loads; waiting for it"
                if loading
                else f"{self._nobody()}; waiting {wait_s:.0f} s for one"
            )
            if why != told:
                _log.warning("medexam: warning: %s", why)
                told = why
            await asyncio.sleep(POLL_S if loading else min(POLL_S, left_s))
        return found

    def _find_loading(self) -> str | None:
        """The address of a server that this run could use once it has loaded."""
        entries = self.registry.read_loading()
        return next((entry.address for entry in entries if self.spec.name in (None, entry.model)), None)

    async def follow(self, servers: ServerPool, model: str, probe: Callable[[Endpoint], Awaitable[None]]) -> None:
        """Let servers that appear take part and ask those that vanish nothing more, for ever.

        `probe` raises `EngineError` for one that must stay out, `EndpointSilentError` for one to be looked at again.
        """
        refused: set[str] = set()
        fault = ""
        while True:
            await asyncio.sleep(POLL_S)
            try:
                listed = {endpoint.base: endpoint for endpoint in await asyncio.to_thread(self.find, model)}
            except MedExamError as error:
                if str(error) != fault:
                    fault = str(error)
                    _log.warning("medexam: warning: %s; the servers stay those that were known", fault)
                continue
            fault = ""
            live = {server.endpoint.base for server in servers.live}
            for base in live - listed.keys():
                await servers.remove(base)
            refused &= listed.keys()
            for base in listed.keys() - live - refused:
                try:
                    await probe(listed[base])
                except EndpointSilentError:
                    continue
                except EngineError as error:
                    refused.add(base)
                    _log.warning("medexam: warning: %s stays out of this run: %s", base, error)
                    continue
                servers.add(listed[base])

    def _nobody(self) -> str:
        which = f" of {self.spec.name}" if self.spec.name else ""
        others = sorted({entry.model for entry in self.registry.read()} - {self.spec.name})
        but = f", only of {', '.join(others)}" if others else ""
        return f"no server{which} is registered in {self.registry.path}{but}"

    def _way_out(self) -> str:
        what = self.spec.profile or self.spec.name or "smollm2-cpu"
        there = f" --registry {self.registry.path}" if self.spec.registry else ""
        return f"start one with `medexam serve {what}{there}`, or name servers in model.endpoints"


def named_endpoints(spec: ModelSpec) -> tuple[Endpoint, ...]:
    """The endpoints that a spec names; raises `SpecError`."""
    return open_endpoints(spec.endpoints, _own_key(spec) or NO_KEY, spec.ca_bundle)


def registry_of(spec: ModelSpec) -> Registry | None:
    """The registry that tells the servers of a spec; None where it names them itself."""
    if spec.registry is not None:
        return Registry(spec.registry)
    return None if spec.endpoints else local_registry()


def _own_key(spec: ModelSpec) -> str | None:
    return read_key(spec.api_key_env, "VLLM_API_KEY", file=spec.api_key_file)


def _open(entry: RegisteredServer, spec: ModelSpec) -> Endpoint:
    named = spec.api_key_env or spec.api_key_file
    key = read_key_file(entry.key_file) if entry.key_file is not None and not named else _own_key(spec)
    return Endpoint(normalise_address(entry.address), key or NO_KEY, spec.ca_bundle)
