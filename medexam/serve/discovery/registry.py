"""The file that says which servers run where, and which of them a spec means.

The process that starts a server writes it there and takes it out. The file may lie on storage that several machines
share. It names the files of keys and holds no key.
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from medexam.errors import EndpointUnreachableError, EngineError
from medexam.files import cache_dir, host_name, process_lives, write_whole
from medexam.serve.network.endpoints import NO_KEY, Endpoint, normalise_address, read_api_key
from medexam.serve.network.keys import read_key_file
from medexam.serve.timing import TIMING
from medexam.specs.model import ModelSpec

_log = logging.getLogger(__name__)


@dataclass(frozen=True, config={"extra": "forbid"})
class RegisteredServer:
    """One server that was started."""

    address: str
    """Base address of its OpenAI API, as other machines reach it."""
    model: str
    host: str
    pid: int
    job: str | None = None
    """Id of its Slurm job; None if it was started by hand."""
    key_file: Path | None = None
    """Where its API key lies, a file of its starter's own; None if it asks for none."""
    ready: bool = True
    """Whether it answers; False while it loads."""


_SERVERS = TypeAdapter(tuple[RegisteredServer, ...])


class Registry:
    """A registry file; it is made at the first `add`, for its owner alone."""

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is read or written yet."""
        self.path = path.expanduser().absolute()

    def add(self, *servers: RegisteredServer) -> None:
        """Write servers; those of the same address or key file are replaced, which an earlier start of a job left.

        Raises `EngineError` if the file cannot be written.
        """
        with self._rewriting() as entries:
            addresses = {server.address for server in servers}
            keys = {server.key_file for server in servers} - {None}
            entries[:] = [one for one in entries if one.address not in addresses and one.key_file not in keys]
            entries += servers

    def remove(self, *addresses: str) -> None:
        """Take servers out, if they are there. Raises `EngineError` if the file cannot be written."""
        if self.path.exists():
            with self._rewriting() as entries:
                entries[:] = [entry for entry in entries if entry.address not in addresses]

    def read(self, *, ready: bool = True) -> tuple[RegisteredServer, ...]:
        """Read the servers that answer, or those that load, without those of this machine whose process ended.

        () without a file. Raises `EngineError` for a file that is damaged or is no registry.
        """
        return tuple(entry for entry in self._entries() if entry.ready is ready)

    def _entries(self) -> tuple[RegisteredServer, ...]:
        try:
            servers = _SERVERS.validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise EngineError(f"{self.path}: the registry cannot be read: {error}; name another") from None
        except ValidationError as error:
            raise EngineError(
                f"{self.path}: damaged, or no registry of servers ({error.errors()[0]['msg']}); name another file, "
                "or remove it and start the servers again"
            ) from None
        return tuple(one for one in servers if one.host != host_name() or process_lives(one.pid))

    @contextlib.contextmanager
    def _rewriting(self) -> Iterator[list[RegisteredServer]]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Read, changed and written under one lock: of two writers at once, one would undo the other's change.
            with FileLock(f"{self.path}.lock", timeout=TIMING.registry_lock_s, mode=0o600):
                entries = list(self._entries())
                yield entries
                # The whole file at once: readers take no lock, and see the file of before or this one.
                write_whole(self.path, _SERVERS.dump_json(tuple(entries), indent=1), private=True)
        except (OSError, NotImplementedError) as error:
            raise EngineError(
                f"{self.path}: the registry cannot be written: {error}; name one in another folder with --registry"
            ) from None


def local_registry() -> Registry:
    """Return the registry of this machine, which `medexam serve` writes unless it is told another."""
    return Registry(cache_dir() / "server_list.json")


class ServerFinder:
    """Finds the servers of a spec in a registry: of `prefer_host` alone if it has some; None: of all machines."""

    def __init__(self, registry: Registry, spec: ModelSpec, prefer_host: str | None = None) -> None:
        self._registry, self._spec, self._prefer_host = registry, spec, prefer_host

    def find(self, model: str | None) -> tuple[Endpoint, ...]:
        """Find the servers of a model that answer now; None: of the only model.

        A machine that lost its power leaves its servers in the file, so each is connected to. Raises `EngineError` if
        the registry cannot be read, or holds several models and none is named, and `SpecError` if a key cannot be read.
        """
        entries = self._registry.read()
        models = list(dict.fromkeys(entry.model for entry in entries))
        if model is None and len(models) > 1:
            raise EngineError(
                f"{self._registry.path} holds servers of {len(models)} models ({', '.join(models)}); "
                "name one with model.name or model.profile"
            )
        candidates = [entry for entry in entries if model in (None, entry.model)]
        with ThreadPoolExecutor() as threads:
            answers = list(threads.map(_is_there, candidates))
        candidates = [entry for entry, answer in zip(candidates, answers, strict=True) if answer]
        preferred = [entry for entry in candidates if entry.host == self._prefer_host]
        return tuple(self._endpoint(entry) for entry in preferred or candidates)

    async def wait(self) -> tuple[Endpoint, ...]:
        """Return the servers that answer; wait up to `model.wait_s` for those that load, and for the first if the spec
        names the registry.

        Raises as `find` does, and `EndpointUnreachableError` if none came.
        """
        spec, begin, notice = self._spec, time.monotonic(), ""
        while True:
            # Before the servers: one that answers from now on is found below, and must not be missed by both.
            loading = [one for one in self._registry.read(ready=False) if spec.name in (None, one.model)]
            endpoints = await asyncio.to_thread(self.find, spec.name)
            end = begin + (spec.wait_s if loading or spec.registry is not None else 0.0)
            if endpoints and (not loading or time.monotonic() > end):
                return endpoints
            models = {entry.model for entry in self._registry.read()}
            but = f", only of {', '.join(sorted(models))}" if models else ""
            none = f"no server{f' of {spec.name}' if spec.name else ''} is registered in {self._registry.path}{but}"
            if spec.name in models or (models and spec.name is None):
                none = f"no server that is registered in {self._registry.path} answers"
            if time.monotonic() > end:
                option = f" --registry {self._registry.path}" if spec.registry else ""
                start = f"medexam serve {spec.profile or spec.name or 'smollm2-cpu'}{option}"
                raise EndpointUnreachableError(f"{none}; start one with `{start}`, or name servers in model.endpoints")
            status = f"{none}; waiting {spec.wait_s:.0f} s for one"
            if loading:
                status = f"{loading[0].address} still loads; waiting for it"
            if status != notice:
                _log.warning("medexam: warning: %s", status)
                notice = status
            await asyncio.sleep(max(min(TIMING.poll_s, end - time.monotonic()), 0.01))

    def _endpoint(self, entry: RegisteredServer) -> Endpoint:
        spec = self._spec
        own = entry.key_file is None or spec.api_key_env or spec.api_key_file
        key = _spec_key(spec) if own or entry.key_file is None else read_key_file(entry.key_file)
        return Endpoint(normalise_address(entry.address), key or NO_KEY, spec.ca_bundle)


async def find_endpoints(
    spec: ModelSpec, prefer_host: str | None = None
) -> tuple[tuple[Endpoint, ...], ServerFinder | None]:
    """Find the servers of a spec, and what finds them again; None if the spec names its servers.

    Waits as `ServerFinder.wait` does; raises as it does.
    """
    if spec.endpoints and spec.registry is None:
        return named_endpoints(spec), None
    finder = ServerFinder(Registry(spec.registry) if spec.registry else local_registry(), spec, prefer_host)
    return await finder.wait(), finder


def named_endpoints(spec: ModelSpec) -> tuple[Endpoint, ...]:
    """List the endpoints that a spec names, each once; raises `SpecError`."""
    bases = dict.fromkeys(normalise_address(address) for address in spec.endpoints)
    return tuple(Endpoint(base, _spec_key(spec) or NO_KEY, spec.ca_bundle) for base in bases)


def _spec_key(spec: ModelSpec) -> str | None:
    return read_api_key(spec.api_key_env, "VLLM_API_KEY", file=spec.api_key_file)


def _is_there(entry: RegisteredServer) -> bool:
    address = urlsplit(entry.address)
    with contextlib.suppress(OSError):
        socket.create_connection((address.hostname or "", address.port or 80), timeout=TIMING.poll_s).close()
        return True
    return False
