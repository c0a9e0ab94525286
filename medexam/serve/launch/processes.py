"""The process of one vLLM server: started behind a guard, checked, restarted, and stopped with all that it started.

The server has a Python of its own, because vLLM rarely shares an environment with other packages, and a process group
of its own, because it starts workers that must not outlive it. The fleet decides when it is started and stopped.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import httpx

from medexam.errors import EngineError
from medexam.serve.launch.command import Launch
from medexam.serve.timing import TIMING

_GUARD = str(Path(__file__).with_name("guard.py"))
_POLL_S = 0.05
_TAIL_LINES = 12


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
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the guard, which is also the group's of guard and server."""
        return self._running.pid

    def start(self) -> None:
        """Start it, or start it again; raises `EngineError` if its log cannot be written."""
        self.state = "loading"
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.log.unlink(missing_ok=True)
            number = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EngineError(
                f"{self.log}: the log cannot be written: {error.strerror}; name another folder with --folder"
            ) from None
        key = {} if self._key is None else {"VLLM_API_KEY": self._key}
        with os.fdopen(number, "wb") as stream:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the user's own
                (sys.executable, "-I", "-S", _GUARD, str(os.getpid()), *self.launch.command),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.launch.environment, **key},
                # A group of its own: Ctrl-C reaches this process alone, and `stop` reaches the workers of vLLM.
                start_new_session=True,
            )

    def answers(self) -> bool:
        """Return whether its health address answers now; a node that only computes has none and counts as healthy."""
        if not self.launch.address:
            return True
        with contextlib.suppress(httpx.TransportError):
            # Without the environment's proxies: the server is on this machine.
            return httpx.get(self.launch.health, timeout=2.0, trust_env=False).status_code == httpx.codes.OK
        return False

    def check_alive(self) -> None:
        """Raise `EngineError` with the log's last lines if the server ended by itself."""
        code = self._running.poll()
        if code is not None:
            raise EngineError(f"the server ended with exit code {code}; the last lines of {self.log}:\n{self.tail()}")

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
        # The next start makes a new log, and this one says why it crashed.
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
            deadline = time.monotonic() + wait_s
            while time.monotonic() < deadline:
                self._process.poll()
                # Workers may outlive the process that started them, with a GPU's memory.
                if not group_lives(self._process.pid):
                    # Unreaped it would stay a zombie, whose number counts as a running server's.
                    self._process.wait()
                    self._process = None
                    return
                time.sleep(_POLL_S)
        self._process = None

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise EngineError("the server is not running")
        return self._process


def group_lives(group: int) -> bool:
    """Return whether a process of the group still runs; a zombie does not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, member_of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state not in "ZX":
                return True
    return False
