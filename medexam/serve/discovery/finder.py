"""Which servers a spec means: those that it names, or those of a registry, at the start and during a run.

This module knows addresses, keys and registries; what the servers honour is found out elsewhere.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from medexam.errors import EndpointSilentError, EndpointUnreachableError, EngineError, MedExamError
from medexam.serve.discovery.registry import RegisteredServer, Registry, local_registry
from medexam.serve.network.endpoints import NO_KEY, Endpoint, normalise_address, read_api_key
from medexam.serve.network.keys import read_key_file
from medexam.serve.pool.server_pool import ServerPool
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

    async def wait_for_first(self, wait_s: float) -> tuple[Endpoint, ...]:
        """Return the registered servers; wait up to `wait_s` seconds for the first, and longer while one loads.

        One that is registered and may have ended is waited for until it counts as ended. Raises as `find` does, and
        `EndpointUnreachableError` if none came.
        """
        deadline, notice = time.monotonic() + wait_s, ""
        while True:
            # Before the servers: one that answers from now on is found below, and must not be missed by both.
            coming = await asyncio.to_thread(self._describe_coming)
            if endpoints := await asyncio.to_thread(self.find, self.spec.name):
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
        """Say why the first server may come soon: one that this run could use loads, or may run on; None: neither."""
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


async def follow(
    find: Callable[[], Iterable[Endpoint]], pool: ServerPool, probe: Callable[[Endpoint], Awaitable[None]]
) -> None:
    """Add servers that `find` lists to the pool and remove those that vanish, until it is cancelled.

    `probe` raises `EngineError` for one that must stay out, `EndpointSilentError` for one to be looked at again.
    """
    rejected: set[str] = set()
    probing: set[str] = set()

    async def admit(endpoint: Endpoint) -> None:
        try:
            await probe(endpoint)
        except EndpointSilentError:
            pass
        except EngineError as error:
            rejected.add(endpoint.base)
            _log.warning("medexam: warning: %s stays out of this run: %s", endpoint.base, error)
        else:
            pool.add(endpoint)
        finally:
            probing.discard(endpoint.base)

    fault = ""
    # Probes run beside each other and beside the next looks: one slow server must not keep the others waiting.
    async with asyncio.TaskGroup() as group:
        while True:
            await asyncio.sleep(TIMING.poll_s)
            try:
                listed = {endpoint.base: endpoint for endpoint in await asyncio.to_thread(find)}
            except MedExamError as error:
                # A file that cannot be read now says nothing of the servers, which may well run on.
                if str(error) != fault:
                    fault = str(error)
                    _log.warning("medexam: warning: %s; the known servers are kept", fault)
                continue
            fault = ""
            active = {server.endpoint.base for server in pool.active}
            for address in active - listed.keys():
                await pool.remove(address)
            if active and not pool.active and pool.wait_s:
                _log.warning(
                    "medexam: warning: the last server has left the registry; waiting %.0f s for another", pool.wait_s
                )
            # One that left the registry may come back as another, so it is probed again then.
            rejected &= listed.keys()
            for address in listed.keys() - active - rejected - probing:
                probing.add(address)
                group.create_task(admit(listed[address]))


async def find_endpoints(
    spec: ModelSpec, prefer_host: str | None = None
) -> tuple[tuple[Endpoint, ...], ServerFinder | None]:
    """Find the servers of a spec now, and what finds those that come later; None if the spec names its servers.

    Waits as `ServerFinder.wait_for_first` does; raises as it does.
    """
    if spec.endpoints and spec.registry is None:
        return named_endpoints(spec), None
    registry = local_registry() if spec.registry is None else Registry(spec.registry)
    finder = ServerFinder(registry, spec, prefer_host)
    return await finder.wait_for_first(0.0 if spec.registry is None else spec.wait_s), finder


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
