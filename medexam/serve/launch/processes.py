"""Starting one vLLM server on this machine, watching it load, and stopping all of it.

The server runs from a Python of its own choice, because vLLM rarely shares an environment with anything, and in a
process group of its own, because it starts workers that must not outlive it. This module knows processes and ports;
`vllm_command.py` knows vLLM's command line.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx

from medexam.errors import EndpointUnreachableError, EngineError
from medexam.serve.launch.ports import check_free

GRACE_S = 20.0
"""Seconds that the server gets to stop by itself before it is killed."""
_POLL_S = 0.25
_TAIL_LINES = 12


@dataclass(frozen=True)
class Launch:
    """What to start and where it will answer."""

    command: tuple[str, ...]
    address: str
    """Base address of its OpenAI API; empty for a node that only computes for another."""
    health: str
    """Where it says that it is ready; empty likewise."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it needs beyond this process's; never a key."""
    model: str = ""
    """The name that it serves the model by."""
    gpus: tuple[int, ...] = ()
    """Indices of the GPUs that it uses; () on the CPU, or where they are not known yet."""
    notes: tuple[str, ...] = ()
    """What a reader of the command should know, such as the sum of the memory."""

    def __str__(self) -> str:
        """The shell line that starts the same server."""
        return " ".join([*(f"{k}={shlex.quote(v)}" for k, v in self.environment.items()), shlex.join(self.command)])


class ServerProcess:
    """A running server: `with ServerProcess(launch, log) as server: server.wait_healthy(600)`."""

    def __init__(self, launch: Launch, log: Path, key: str | None = None) -> None:
        """Nothing starts before the `with` block; the server's output is written to `log`, which only its owner reads.

        `key` is what clients must show, handed over in the server's environment alone; None: it asks for none.
        """
        self.launch = launch
        self.log = log
        self._key = key
        self._process: subprocess.Popen[bytes] | None = None
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Self:
        if self.launch.address:
            check_port_free(self.launch.address)
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self._stream = _open_private(self.log)
        except OSError as error:
            raise EngineError(
                f"{self.log}: the log cannot be written: {error.strerror}; name another with --log"
            ) from None
        self._process = subprocess.Popen(  # noqa: S603 - the command is the user's own
            self.launch.command,
            stdin=subprocess.DEVNULL,
            stdout=self._stream,
            stderr=subprocess.STDOUT,
            env=self._environment(),
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def wait_healthy(self, timeout_s: float, progress: Callable[[float, str], None] | None = None) -> None:
        """Return once `/health` answers; raises `EngineError` with the log's last lines if it dies or takes too long.

        A node that answers nowhere is not waited for.
        `progress` is told the seconds that went by and the last line of the log.
        """
        if not self.launch.health:
            return
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

    def _environment(self) -> dict[str, str]:
        key = {} if self._key is None else {"VLLM_API_KEY": self._key}
        return {**os.environ, **self.launch.environment, **key}

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
    check_free(parts.host, parts.port or 80)


def group_lives(group: int) -> bool:
    """Whether a process of the group still runs; a dead one that nobody reaped does not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, member_of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state not in "ZX":
                return True
    return False


def _open_private(path: Path) -> IO[bytes]:
    """A file emptied for writing, with mode 600 even where it existed before."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.fchmod(number, 0o600)
    return os.fdopen(number, "wb")
