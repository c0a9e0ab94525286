"""A run's own server: started on this machine when the run begins, and stopped when it ends."""

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from medexam.errors import EngineError
from medexam.files import cache_dir
from medexam.serve.discovery.registry import Registry
from medexam.serve.launch.command import ServerSettings, plan_servers
from medexam.serve.launch.fleet import ClientAccess, Fleet
from medexam.serve.network.endpoints import read_api_key
from medexam.serve.network.keys import make_key, write_key
from medexam.specs import ModelSpec

_PYTHON = "MEDEXAM_VLLM_PYTHON"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OwnServers:
    """Servers that one run started."""

    fleet: Fleet
    registry: Registry
    """Lists the servers that answer; in a private folder, with their key beside it."""

    async def supervise(self) -> None:
        """Restart servers that crash, until this is cancelled; then stop all of them."""
        watching = asyncio.create_task(asyncio.to_thread(self.fleet.watch))
        try:
            # A cancelled `to_thread` would leave its thread running; shielded, it ends when `stop` ends the fleet.
            await asyncio.shield(watching)
        except EngineError as error:
            _log.warning("medexam: warning: %s", error)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop the servers and remove the folder of their registry."""
        # Shielded: a second cancellation must not leave servers behind that hold a GPU's memory.
        await asyncio.shield(asyncio.to_thread(self.fleet.stop))
        shutil.rmtree(self.registry.path.parent, ignore_errors=True)


async def start_servers(spec: ModelSpec) -> OwnServers:
    """Start the server of a spec's profile and wait until it answers; raises `EngineError` if it does not."""
    servers = await asyncio.to_thread(_plan, spec)
    loading = asyncio.create_task(asyncio.to_thread(_load, servers.fleet))
    try:
        await asyncio.shield(loading)
    except BaseException:
        await asyncio.shield(asyncio.to_thread(servers.fleet.stop))
        # Until the loading thread notices, it may write the registry again.
        with contextlib.suppress(EngineError):
            await loading
        await servers.stop()
        raise
    return servers


def vllm_python() -> Path | None:
    """Return the Python that `$MEDEXAM_VLLM_PYTHON` names as the one with vLLM; None if it names none."""
    path = os.environ.get(_PYTHON)
    return Path(path).expanduser() if path else None


def _plan(spec: ModelSpec) -> OwnServers:
    assert spec.profile is not None  # noqa: S101 - the spec's own validator requires it
    launches = plan_servers(spec.profile, ServerSettings(python=vllm_python()))
    folder = Path(tempfile.mkdtemp(prefix="medexam-servers-"))
    registry, key_file = Registry(folder / "servers.json"), folder / "key"
    key = read_api_key(spec.api_key_env, "VLLM_API_KEY", file=spec.api_key_file) or make_key()
    write_key(key_file, key)
    logs = cache_dir() / "logs"
    access = ClientAccess(key, key_file, registry)
    return OwnServers(Fleet(launches, logs=logs, access=access, notify=partial(_log.warning, "medexam: %s")), registry)


def _load(fleet: Fleet) -> None:
    fleet.__enter__()
    fleet.wait_healthy()
