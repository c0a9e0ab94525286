"""One server of a fleet, over its restarts: behind a guard, with its port claimed and the logs of its crashes kept.

The fleet decides what becomes of it; this module knows its process and its states.
"""

import contextlib
import os
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import httpx

from medexam.errors import EndpointUnreachableError
from medexam.serve.launch.port_claims import claim_port
from medexam.serve.launch.processes import Launch, ServerProcess

FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 60.0
"""A crashed server rests for the first pause before it is started again, and twice as long each further time."""
_GUARD = str(Path(__file__).with_name("guard.py"))


class SupervisedServer:
    """One server of a fleet, over its restarts."""

    def __init__(self, launch: Launch, log: Path, key: str | None, address: str) -> None:
        """Nothing starts yet; `address` is the one that clients are told."""
        self.launch = launch
        self.log = log
        self.address = address
        self.state: Literal["loading", "healthy", "resting"] = "loading"
        self.restart_at = 0.0
        """When a resting one is started again, on the monotonic clock."""
        self.restarts_done = 0
        self._began = 0.0
        self._claim: socket.socket | None = None
        guarded = (sys.executable, "-I", "-S", _GUARD, str(os.getpid()), *launch.command)
        self._process = ServerProcess(replace(launch, command=guarded), log, key)

    @property
    def pid(self) -> int:
        """Process id of its guard, and id of their group."""
        return self._process.pid

    @property
    def age_s(self) -> float:
        """Seconds since it was last started."""
        return time.monotonic() - self._began

    def start(self) -> None:
        """Start it, or start it again; raises `EngineError` where that cannot be done."""
        self.state, self._began = "loading", time.monotonic()
        self._process.__enter__()

    def claim(self) -> None:
        """Keep others off its port; raises `EngineError` where another process has it."""
        port = port_of(self.launch)
        self._claim = None if port is None else claim_port(port)

    def release(self) -> None:
        """Leave its port to others."""
        if self._claim is not None:
            self._claim.close()

    def check(self) -> None:
        """Raise `EngineError` with the log's last lines if it ended."""
        self._process.check_alive()

    def answers(self, client: httpx.Client) -> bool:
        """Whether its health address answers now; one that only computes has none and is always well."""
        if not self.launch.health:
            return True
        with contextlib.suppress(httpx.TransportError):
            return client.get(self.launch.health).status_code == httpx.codes.OK
        return False

    def schedule_restart(self) -> float:
        """Clear away what ended; returns the seconds until it may be started again."""
        self.stop()
        self.restarts_done += 1
        with contextlib.suppress(OSError):
            self.log.replace(self.log.with_suffix(f".{self.restarts_done}.log"))
        pause = min(FIRST_PAUSE_S * 2.0 ** (self.restarts_done - 1), LONGEST_PAUSE_S)
        self.state, self.restart_at = "resting", time.monotonic() + pause
        return pause

    def stop(self) -> None:
        """End its whole process group; stopping twice is harmless."""
        self._process.stop()

    def line(self, of: int) -> str:
        """The log's last line, with its address where it is one `of` several."""
        last = self._process.tail(1)
        return last if of == 1 else f"{self.address}: {last}"

    def too_slow(self, timeout_s: float) -> EndpointUnreachableError:
        """The error for one that loads too long."""
        return EndpointUnreachableError(
            f"the server was not healthy after {timeout_s:.0f} s; give it longer with --timeout; "
            f"the last lines of {self.log}:\n{self._process.tail()}"
        )


def port_of(launch: Launch) -> int | None:
    """Where it answers; None for one that only computes."""
    return httpx.URL(launch.address).port if launch.address else None
