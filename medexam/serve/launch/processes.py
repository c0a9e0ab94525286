"""The process of one vLLM server: started behind a guard, checked, restarted, and stopped with all that it started.

The server has a Python of its own, because vLLM rarely shares an environment with other packages, and a process group
of its own, because it starts workers that must not outlive it. The fleet decides when it is started, restarted and
stopped; this module knows its process, its port and its states.
"""

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

import httpx

from medexam.errors import EndpointUnreachableError, EngineError
from medexam.serve.launch.ports import check_free, claim_port
from medexam.serve.timing import TIMING

_GUARD = str(Path(__file__).with_name("guard.py"))
_POLL_S = 0.05
_TAIL_LINES = 12


@dataclass(frozen=True)
class Launch:
    """What to start and where it will answer."""

    command: tuple[str, ...]
    address: str
    """Base address of its OpenAI API; empty for a node that only computes for another."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it needs in addition to this process's; never a key."""
    model: str = ""
    """The name that it serves the model by."""
    gpus: tuple[int, ...] = ()
    """Indices of the GPUs that it uses; () on the CPU, or if they are not known yet."""
    notes: tuple[str, ...] = ()
    """What a reader of the command should know, such as the sum of the memory."""

    def __str__(self) -> str:
        """Write the shell line that starts the same server."""
        return " ".join([*(f"{k}={shlex.quote(v)}" for k, v in self.environment.items()), shlex.join(self.command)])

    @property
    def health(self) -> str:
        """Address that answers once it is ready."""
        return f"{self.address.removesuffix('/v1')}/health"

    @property
    def port(self) -> int | None:
        """The port that it answers on; None for a node that only computes."""
        return httpx.URL(self.address).port if self.address else None


class ServerProcess:
    """A server and its guard on this machine, over its restarts."""

    def __init__(self, launch: Launch, log: Path, key: str | None, address: str) -> None:
        """Set up the server; nothing starts yet. Its output is written to `log`, which only its owner can read.

        `key` is what clients must send, passed in the server's environment alone; None: it asks for none. `address` is
        the one that clients use.
        """
        self.launch = launch
        self.log = log
        self.address = address
        self.state: Literal["loading", "healthy", "crashed"] = "loading"
        self.restart_at = 0.0
        """When a crashed one is started again, on the monotonic clock."""
        self.restarts = 0
        self._key = key
        self._claim: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the guard, which is also the group's of guard and server."""
        return self._running.pid

    def claim(self) -> None:
        """Keep other servers off its port; raises `EngineError` if another process has it."""
        self._claim = None if self.launch.port is None else claim_port(self.launch.port)

    def release(self) -> None:
        """Let other servers have its port."""
        if self._claim is not None:
            self._claim.close()

    def start(self) -> None:
        """Start it, or start it again; raises `EngineError` if its port is taken or its log cannot be written."""
        self.state = "loading"
        if self.launch.port is not None:
            check_free(httpx.URL(self.launch.address).host, self.launch.port)
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            stream = _open_private(self.log)
        except OSError as error:
            raise EngineError(
                f"{self.log}: the log cannot be written: {error.strerror}; name another folder with --folder"
            ) from None
        key = {} if self._key is None else {"VLLM_API_KEY": self._key}
        with stream:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the user's own
                (sys.executable, "-I", "-S", _GUARD, str(os.getpid()), *self.launch.command),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.launch.environment, **key},
                # A group of its own: Ctrl-C reaches this process alone, and `stop` reaches the workers of vLLM.
                start_new_session=True,
            )

    def answers(self, client: httpx.Client) -> bool:
        """Return whether its health address answers now; a node that only computes has none and counts as healthy."""
        if not self.launch.address:
            return True
        with contextlib.suppress(httpx.TransportError):
            return client.get(self.launch.health).status_code == httpx.codes.OK
        return False

    def check_alive(self) -> None:
        """Raise `EngineError` with the log's last lines if the server ended by itself."""
        code = self._running.poll()
        if code is not None:
            raise EngineError(f"the server ended with exit code {code}; the last lines of {self.log}:\n{self.tail()}")

    def check_loading(self, seconds: float) -> None:
        """Raise `EngineError` if it loads for too long."""
        if seconds >= TIMING.load_s:
            raise EndpointUnreachableError(
                f"the server was not healthy after {seconds:.0f} s; the last lines of {self.log}:\n{self.tail()}"
            )

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """Return the last lines of the log."""
        with contextlib.suppress(OSError), self.log.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - 16_384, 0))
            text = [line for line in stream.read().decode(errors="replace").splitlines() if line.strip()]
            return "\n".join(text[-lines:])
        return ""

    def schedule_restart(self) -> float:
        """End what is left of it after a crash; returns the seconds until it may be started again."""
        self.stop()
        self.restarts += 1
        # The next start empties the log, which says why it crashed.
        with contextlib.suppress(OSError):
            self.log.replace(self.log.with_suffix(f".{self.restarts}.log"))
        pause_s = TIMING.first_pause_s * 2.0 ** (self.restarts - 1)
        self.state, self.restart_at = "crashed", time.monotonic() + pause_s
        return pause_s

    def stop(self) -> None:
        """End the whole group: asked first, killed after `TIMING.grace_s` seconds. Stopping twice is harmless."""
        if self._process is None:
            return
        for sign, wait_s in ((signal.SIGTERM, TIMING.grace_s), (signal.SIGKILL, 5.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, sign)
            if self._group_ended(wait_s):
                break
        # Unreaped it would stay a zombie, whose number counts as a running server's.
        self._process.wait()
        self._process = None

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise EngineError("the server is not running")
        return self._process

    def _group_ended(self, wait_s: float) -> bool:
        """Return whether the whole group has ended: workers may outlive the process that started them, with a GPU's
        memory.
        """
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            self._running.poll()
            if not group_lives(self._running.pid):
                return True
            time.sleep(_POLL_S)
        return False


def group_lives(group: int) -> bool:
    """Return whether a process of the group still runs; a zombie does not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, member_of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state not in "ZX":
                return True
    return False


def _open_private(path: Path) -> IO[bytes]:
    """Open a file emptied for writing, with mode 600 even if it existed before."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.fchmod(number, 0o600)
    return os.fdopen(number, "wb")
