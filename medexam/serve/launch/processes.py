"""The process of one vLLM server: started, checked, and stopped with all that it started.

The server has a Python of its own, because vLLM rarely shares an environment with other packages, and a process group
of its own, because it starts workers that must not outlive it. This module knows processes and ports;
`vllm_command.py` knows vLLM's command line.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import httpx

from medexam.errors import EngineError
from medexam.serve.launch.ports import check_free

GRACE_S = 20.0
"""Seconds that the server gets to stop by itself before it is killed."""
_POLL_S = 0.05
_TAIL_LINES = 12


@dataclass(frozen=True)
class Launch:
    """What to start and where it will answer."""

    command: tuple[str, ...]
    address: str
    """Base address of its OpenAI API; empty for a node that only computes for another."""
    health: str
    """Address that answers once it is ready; empty for such a node."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it needs in addition to this process's; never a key."""
    model: str = ""
    """The name that it serves the model by."""
    gpus: tuple[int, ...] = ()
    """Indices of the GPUs that it uses; () on the CPU, or if they are not known yet."""
    notes: tuple[str, ...] = ()
    """What a reader of the command should know, such as the sum of the memory."""

    def __str__(self) -> str:
        """The shell line that starts the same server."""
        return " ".join([*(f"{k}={shlex.quote(v)}" for k, v in self.environment.items()), shlex.join(self.command)])


class ServerProcess:
    """A server's process on this machine, with all that it starts."""

    def __init__(self, launch: Launch, log: Path, key: str | None = None) -> None:
        """Nothing starts yet; the server's output is written to `log`, which only its owner can read.

        `key` is what clients must send, passed in the server's environment alone; None: it asks for none.
        """
        self.launch = launch
        self.log = log
        self._key = key
        self._process: subprocess.Popen[bytes] | None = None
        self._stream: IO[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the server, which is also its group's."""
        return self._running.pid

    def start(self) -> None:
        """Start it; raises `EngineError` if its port is taken or its log cannot be written."""
        if self.launch.address:
            check_port_free(self.launch.address)
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self._stream = _open_private(self.log)
        except OSError as error:
            raise EngineError(
                f"{self.log}: the log cannot be written: {error.strerror}; name another with --log"
            ) from None
        key = {} if self._key is None else {"VLLM_API_KEY": self._key}
        self._process = subprocess.Popen(  # noqa: S603 - the command is the user's own
            self.launch.command,
            stdin=subprocess.DEVNULL,
            stdout=self._stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self.launch.environment, **key},
            # A group of its own: Ctrl-C reaches this process alone, and `stop` reaches the workers that vLLM starts.
            start_new_session=True,
        )

    def check_alive(self) -> None:
        """Raise `EngineError` with the log's last lines if the server ended by itself."""
        code = self._running.poll()
        if code is not None:
            raise EngineError(f"the server ended with exit code {code}; the last lines of {self.log}:\n{self.tail()}")

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
        for sign, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, sign)
            if self._ended(group, wait_s):
                break
        # Unreaped it would stay a zombie, whose number counts as a running server's.
        self._process.wait()
        self._process = None
        if self._stream is not None:
            self._stream.close()

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise EngineError("the server is not running")
        return self._process

    def _ended(self, group: int, wait_s: float) -> bool:
        """Whether the whole group has ended: workers may outlive the process that started them, with a GPU's memory."""
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            self._running.poll()
            if not group_lives(group):
                return True
            time.sleep(_POLL_S)
        return False


def check_port_free(address: str) -> None:
    """Raise `EngineError` if something listens at the address already."""
    parts = httpx.URL(address)
    check_free(parts.host, parts.port or 80)


def group_lives(group: int) -> bool:
    """Whether a process of the group still runs; a zombie does not count."""
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
