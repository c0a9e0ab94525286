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
from medexam.serve.launch.command import ServerSettings, plan_server
from medexam.serve.launch.server import ClientAccess, VLLMServer
from medexam.serve.network.endpoints import read_api_key
from medexam.serve.network.keys import make_key, write_key
from medexam.specs import ModelSpec

_PYTHON = "MEDEXAM_VLLM_PYTHON"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OwnServer:
    """A server that one run started."""

    server: VLLMServer
    registry: Registry
    """Lists it while it answers; in a private folder, with its key beside it."""

    async def supervise(self) -> None:
        """Restart the server if it crashes, until this is cancelled; then stop it."""
        watching = asyncio.create_task(asyncio.to_thread(self.server.watch))
        try:
            # A cancelled `to_thread` would leave its thread running; shielded, it ends when `stop` ends the server.
            await asyncio.shield(watching)
        except EngineError as error:
            _log.warning("medexam: warning: %s", error)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop the server and remove the folder of its registry."""
        # Shielded: a second cancellation must not leave a server behind that holds a GPU's memory.
        await asyncio.shield(asyncio.to_thread(self.server.stop))
        shutil.rmtree(self.registry.path.parent, ignore_errors=True)


async def start_server(spec: ModelSpec) -> OwnServer:
    """Start the server of a spec's profile and wait until it answers; raises `EngineError` if it does not."""
    own = await asyncio.to_thread(_plan, spec)
    loading = asyncio.create_task(asyncio.to_thread(_load, own.server))
    try:
        await asyncio.shield(loading)
    except BaseException:
        await asyncio.shield(asyncio.to_thread(own.server.stop))
        # Until the loading thread notices, it may write the registry again.
        with contextlib.suppress(EngineError):
            await loading
        await own.stop()
        raise
    return own


def vllm_python() -> Path | None:
    """Return the Python that `$MEDEXAM_VLLM_PYTHON` names as the one with vLLM; None if it names none."""
    path = os.environ.get(_PYTHON)
    return Path(path).expanduser() if path else None


def _plan(spec: ModelSpec) -> OwnServer:
    assert spec.profile is not None  # noqa: S101 - the spec's own validator requires it
    launch = plan_server(spec.profile, ServerSettings(python=vllm_python()))
    folder = Path(tempfile.mkdtemp(prefix="medexam-servers-"))
    registry, key_file = Registry(folder / "servers.json"), folder / "key"
    key = read_api_key(spec.api_key_env, "VLLM_API_KEY", file=spec.api_key_file) or make_key()
    write_key(key_file, key)
    logs = cache_dir() / "logs"
    access = ClientAccess(key, key_file, registry)
    server = VLLMServer(launch, logs=logs, access=access, notify=partial(_log.warning, "medexam: %s"))
    return OwnServer(server, registry)


def _load(server: VLLMServer) -> None:
    server.__enter__()
    server.wait_healthy()
