"""A run's own server: started on this machine when the run begins, and stopped when it ends."""

import asyncio
import contextlib
import logging
import os
from functools import partial
from pathlib import Path

from medexam.errors import EngineError
from medexam.files import cache_dir
from medexam.serve.launch.command import ServerSettings, plan_server
from medexam.serve.launch.server import VLLMServer
from medexam.serve.network.endpoints import Endpoint, read_api_key
from medexam.serve.network.keys import make_key
from medexam.specs import ModelSpec

_log = logging.getLogger(__name__)


class OwnServer:
    """A server that one run started, found by that run alone."""

    def __init__(self, spec: ModelSpec) -> None:
        """Plan the server of a spec's profile."""
        assert spec.profile is not None  # noqa: S101 - the spec's own validator requires it
        launch = plan_server(spec.profile, ServerSettings(python=vllm_python()))
        key = read_api_key(spec.api_key_env, "VLLM_API_KEY", file=spec.api_key_file) or make_key()
        self.endpoint = Endpoint(launch.address, key)
        notify = partial(_log.warning, "medexam: %s")
        self._server = VLLMServer(launch, logs=cache_dir() / "logs", key=key, notify=notify)

    def find(self, _model: str | None) -> tuple[Endpoint, ...]:
        """Return its endpoint while it answers."""
        return (self.endpoint,) if self._server.healthy else ()

    async def start(self) -> None:
        """Start it and wait until it answers; raises `EngineError` if it does not."""
        loading = asyncio.create_task(asyncio.to_thread(self._load))
        try:
            await asyncio.shield(loading)
        except BaseException:
            await self.stop()
            with contextlib.suppress(EngineError):
                await loading
            raise

    async def supervise(self) -> None:
        """Restart the server if it crashes, until this is cancelled; then stop it."""
        watching = asyncio.create_task(asyncio.to_thread(self._server.watch))
        try:
            # A cancelled `to_thread` would leave its thread running; shielded, it ends when `stop` ends the server.
            await asyncio.shield(watching)
        except EngineError as error:
            _log.warning("medexam: warning: %s", error)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop the server."""
        # Shielded: a second cancellation must not leave a server behind that holds a GPU's memory.
        await asyncio.shield(asyncio.to_thread(self._server.stop))

    def _load(self) -> None:
        self._server.__enter__()
        self._server.wait_healthy()


def vllm_python() -> Path | None:
    """Return the Python that `$MEDEXAM_VLLM_PYTHON` names as the one with vLLM; None if it names none."""
    path = os.environ.get("MEDEXAM_VLLM_PYTHON")
    return Path(path).expanduser() if path else None
