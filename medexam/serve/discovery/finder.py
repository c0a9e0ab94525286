"""Which servers a spec means: those that it names, or those of a registry; what they honour is found out elsewhere."""

import asyncio
import logging
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

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
        """Find the servers of a model that answer now; None: of the only model.

        A machine that lost its power leaves its servers in the file, so each is connected to. Raises `EngineError` if
        the registry cannot be read, or holds several models and none is named, and `SpecError` if a key cannot be read.
        """
        entries = self.registry.read()
        models = list(dict.fromkeys(entry.model for entry in entries))
        if model is None and len(models) > 1:
            raise EngineError(
                f"{self.registry.path} holds servers of {len(models)} models ({', '.join(models)}); "
                "name one with model.name or model.profile"
            )
        candidates = [entry for entry in entries if model is None or entry.model == model]
        if candidates:
            with ThreadPoolExecutor(len(candidates)) as pool:
                answers = list(pool.map(_is_there, candidates))
            candidates = [entry for entry, there in zip(candidates, answers, strict=True) if there]
        preferred = [entry for entry in candidates if entry.host == self.prefer_host]
        return tuple(_open(entry, self.spec) for entry in preferred or candidates)

    async def wait(self, wait_s: float) -> tuple[Endpoint, ...]:
        """Return the servers that answer; wait up to `wait_s` seconds for the first, and up to `model.wait_s` for those
        that load.

        Raises as `find` does, and `EndpointUnreachableError` if none came.
        """
        begin, notice = time.monotonic(), ""
        while True:
            # Before the servers: one that answers from now on is found below, and must not be missed by both.
            loading = [one for one in self.registry.read_loading() if self.spec.name in (None, one.model)]
            endpoints = await asyncio.to_thread(self.find, self.spec.name)
            end = begin + (self.spec.wait_s if loading else wait_s)
            if endpoints and (not loading or time.monotonic() > end):
                return endpoints
            none = self._none_answers()
            if time.monotonic() > end:
                raise EndpointUnreachableError(f"{none}; {self._remedy()}")
            status = f"{none}; waiting {wait_s:.0f} s for one"
            if loading:
                status = f"{loading[0].address} still loads; waiting for it"
            if status != notice:
                _log.warning("medexam: warning: %s", status)
                notice = status
            await asyncio.sleep(max(min(TIMING.poll_s, end - time.monotonic()), 0.01))

    def _none_answers(self) -> str:
        models, model = {entry.model for entry in self.registry.read()}, self.spec.name
        if model in models or (models and model is None):
            return f"no server that is registered in {self.registry.path} answers"
        but = f", only of {', '.join(sorted(models))}" if models else ""
        return f"no server{f' of {model}' if model else ''} is registered in {self.registry.path}{but}"

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


def _is_there(entry: RegisteredServer) -> bool:
    """Return whether its port can be connected to."""
    address = urlsplit(entry.address)
    try:
        socket.create_connection((address.hostname or "", address.port or 80), timeout=TIMING.poll_s).close()
    except OSError:
        return False
    return True
