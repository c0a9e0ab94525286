"""One server of a fleet, over its restarts: behind a guard, with its port claimed and the logs of its crashes kept.

The fleet decides when it is started, restarted and stopped; this module knows its process and its states.
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
"""A crashed server is started again after the first pause, and after twice as long each further time."""
_GUARD = str(Path(__file__).with_name("guard.py"))


class SupervisedServer(ServerProcess):
    """A server behind its guard; `pid` is the guard's, and the group's of both."""

    def __init__(self, launch: Launch, log: Path, key: str | None, address: str) -> None:
        """Nothing starts yet; `address` is the one that clients use."""
        guarded = (sys.executable, "-I", "-S", _GUARD, str(os.getpid()), *launch.command)
        super().__init__(replace(launch, command=guarded), log, key)
        self.address = address
        self.state: Literal["loading", "healthy", "crashed"] = "loading"
        self.restart_at = 0.0
        """When a crashed one is started again, on the monotonic clock."""
        self.restarts = 0
        self._started = 0.0
        self._claim: socket.socket | None = None

    @property
    def age_s(self) -> float:
        """Seconds since it was last started."""
        return time.monotonic() - self._started

    def claim(self) -> None:
        """Keep other servers off its port; raises `EngineError` if another process has it."""
        port = port_of(self.launch)
        self._claim = None if port is None else claim_port(port)

    def release(self) -> None:
        """Let other servers have its port."""
        if self._claim is not None:
            self._claim.close()

    def start(self) -> None:
        """Start it, or start it again; raises `EngineError` if that cannot be done."""
        self.state, self._started = "loading", time.monotonic()
        super().start()

    def answers(self, client: httpx.Client) -> bool:
        """Whether its health address answers now; a node that only computes has none and counts as healthy."""
        if not self.launch.health:
            return True
        with contextlib.suppress(httpx.TransportError):
            return client.get(self.launch.health).status_code == httpx.codes.OK
        return False

    def schedule_restart(self) -> float:
        """End what is left of it after a crash; returns the seconds until it may be started again."""
        self.stop()
        self.restarts += 1
        # The next start empties the log, which says why it crashed.
        with contextlib.suppress(OSError):
            self.log.replace(self.log.with_suffix(f".{self.restarts}.log"))
        pause_s = min(FIRST_PAUSE_S * 2.0 ** (self.restarts - 1), LONGEST_PAUSE_S)
        self.state, self.restart_at = "crashed", time.monotonic() + pause_s
        return pause_s

    def too_slow(self, timeout_s: float) -> EndpointUnreachableError:
        """The error for one that loads too long."""
        return EndpointUnreachableError(
            f"the server was not healthy after {timeout_s:.0f} s; give it longer with --timeout; "
            f"the last lines of {self.log}:\n{self.tail()}"
        )


def port_of(launch: Launch) -> int | None:
    """The port that it answers on; None for a node that only computes."""
    return httpx.URL(launch.address).port if launch.address else None
