"""The folder that says which servers run where, and which of them a spec means.

The process that starts a server writes one file there, with its key, for its owner alone, and takes it out. The folder
may lie on storage that several machines share.
"""

import asyncio
import contextlib
import logging
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from socket import gethostname
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from medexam.errors import EndpointUnreachableError, EngineError
from medexam.files import cache_dir, file_name, process_lives, write_whole
from medexam.serve.network.endpoints import NO_KEY, Endpoint, normalise_address, read_api_key
from medexam.serve.network.retry import TIMING
from medexam.specs.model import ModelSpec
from medexam.text import remember_secret

_log = logging.getLogger(__name__)


@dataclass(frozen=True, config={"extra": "forbid"})
class RegisteredServer:
    """One server that was started."""

    address: str
    """Base address of its OpenAI API, as other machines reach it."""
    model: str
    host: str
    pid: int
    key: str = field(default="", repr=False)
    ready: bool = True
    """Whether it answers; False while it loads."""
    job: str | None = None
    """Id and node of its Slurm job, so that a start replaces an earlier one; None if it was started by hand."""


_SERVER = TypeAdapter(RegisteredServer)


class Registry:
    """A registry folder; it is made at the first `add`, for its owner alone."""

    def __init__(self, path: Path) -> None:
        """Name the folder; nothing is read or written yet."""
        self.path = path.expanduser().absolute()

    def file(self, server: RegisteredServer) -> Path:
        """Return where a server stands."""
        return self.path / f"{file_name(server.job or server.address)}.json"

    def add(self, *servers: RegisteredServer) -> None:
        """Write servers; those of the same address or job are replaced. Raises `EngineError` if that cannot be."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            for server in servers:
                write_whole(self.file(server), _SERVER.dump_json(server), private=True)
        except OSError as error:
            raise EngineError(f"{self.path}: the registry cannot be written: {error}; name one by --registry") from None

    def remove(self, server: RegisteredServer) -> None:
        """Take a server out, if it is there."""
        with contextlib.suppress(OSError):
            self.file(server).unlink()

    def read(self, *, ready: bool = True) -> tuple[RegisteredServer, ...]:
        """Read the servers that answer, or those that load, without those of this machine whose process ended.

        Raises `EngineError` for a file that is damaged.
        """
        servers = []
        for path in sorted(self.path.glob("*.json")):
            try:
                servers.append(_SERVER.validate_json(path.read_bytes()))
            except FileNotFoundError:
                continue
            except (OSError, ValidationError):
                raise EngineError(f"{path}: damaged; remove it, or name another registry") from None
        for server in servers:
            remember_secret(server.key)
        alive = (one for one in servers if one.host != gethostname() or process_lives(one.pid))
        return tuple(one for one in alive if one.ready is ready)


def local_registry() -> Registry:
    """Return the registry of this machine, which `medexam serve` writes unless it is told another."""
    return Registry(cache_dir() / "servers")


def read_registry(spec: ModelSpec, *, ready: bool = True) -> list[RegisteredServer]:
    """Read the servers of a spec's model in its registry, by default this machine's, as `Registry.read` does."""
    registry = Registry(spec.registry) if spec.registry else local_registry()
    return [one for one in registry.read(ready=ready) if spec.name in (None, one.model)]


def endpoint_of(entry: RegisteredServer, spec: ModelSpec) -> Endpoint:
    """Return how a registered server is asked: with the spec's key, else its own."""
    own = None if spec.api_key_env else entry.key
    return Endpoint(normalise_address(entry.address), own or _spec_key(spec) or NO_KEY)


def find_endpoints(spec: ModelSpec) -> tuple[Endpoint, ...]:
    """List the endpoints that a spec names, each once, or those of its registry that answer now.

    A machine that lost its power leaves its servers in the registry, so each is connected to. Raises `SpecError` for an
    address or a key, and `EngineError` if the registry cannot be read, or holds several models and none is named.
    """
    if spec.endpoints and spec.registry is None:
        bases = dict.fromkeys(normalise_address(address) for address in spec.endpoints)
        return tuple(Endpoint(base, _spec_key(spec) or NO_KEY) for base in bases)
    candidates = read_registry(spec)
    if len(models := {entry.model for entry in candidates}) > 1:
        raise EngineError(
            f"the registry holds servers of {len(models)} models ({', '.join(sorted(models))}); name one with "
            "model.name or model.profile"
        )
    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(_is_there, candidates))
    return tuple(endpoint_of(entry, spec) for entry, answer in zip(candidates, answers, strict=True) if answer)


async def wait_for_endpoints(spec: ModelSpec) -> tuple[Endpoint, ...]:
    """Return the endpoints of a spec; wait up to `model.wait_s` for those of a registry that load, and for the first if
    the spec names the registry.

    Raises as `find_endpoints` does, and `EndpointUnreachableError` if none came.
    """
    if spec.endpoints and spec.registry is None:
        return find_endpoints(spec)
    begin, notice, path = time.monotonic(), "", spec.registry or local_registry().path
    while True:
        # Before the servers: one that answers from now on is found below, and must not be missed by both.
        loading = read_registry(spec, ready=False)
        endpoints = await asyncio.to_thread(find_endpoints, spec)
        end = begin + (spec.wait_s if loading or spec.registry is not None else 0.0)
        if endpoints and (not loading or time.monotonic() > end):
            return endpoints
        none = f"no server{f' of {spec.name}' if spec.name else ''} answers that is registered in {path}"
        if time.monotonic() > end:
            option = f" --registry {path}" if spec.registry else ""
            start = f"medexam serve {spec.profile or spec.name or 'smollm2-cpu'}{option}"
            raise EndpointUnreachableError(f"{none}; start one with `{start}`, or name servers in model.endpoints")
        status = f"{none}; waiting {spec.wait_s:.0f} s for one"
        status = f"{loading[0].address} still loads; waiting for it" if loading else status
        if status != notice:
            _log.warning("medexam: warning: %s", status)
            notice = status
        await asyncio.sleep(max(min(TIMING.poll_s, end - time.monotonic()), 0.01))


def _spec_key(spec: ModelSpec) -> str | None:
    return read_api_key(spec.api_key_env, "VLLM_API_KEY")


def _is_there(entry: RegisteredServer) -> bool:
    address = urlsplit(entry.address)
    with contextlib.suppress(OSError):
        socket.create_connection((address.hostname or "", address.port or 80), timeout=TIMING.poll_s).close()
        return True
    return False
