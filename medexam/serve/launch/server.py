"""One vLLM server of this machine, kept running: started behind a guard, registered, restarted, and stopped.

It has a Python of its own, because vLLM rarely shares an environment with other packages, and a process group of its
own, because it starts workers that must not outlive it. It leaves nothing behind: it leaves the registry before it is
stopped, and if this process is killed, its guard ends it. This module plans no command and sends no questions.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from socket import gethostname
from typing import Self

import httpx

from medexam.errors import EngineError
from medexam.serve.discovery.registry import RegisteredServer, Registry
from medexam.serve.launch.command import Launch
from medexam.serve.network.retry import TIMING

_GUARD = str(Path(__file__).with_name("guard.py"))


class VLLMServer:
    """A running server: `with VLLMServer(launch, logs=folder) as server: server.wait_healthy(); server.watch()`."""

    def __init__(
        self,
        launch: Launch,
        *,
        logs: Path,
        key: str = "",
        registry: Registry | None = None,
        host: str | None = None,
        job: str | None = None,
        restarts: int = 3,
        notify: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """Set up the server; nothing starts before the `with` block.

        `logs` is a folder; only its owner can read the log. The key is passed in the server's environment alone.
        Clients find server and key in the registry, by the name `host` if other machines reach this one by it. A server
        that crashes is started again at most `restarts` times; `notify` is called with each event.
        """
        self.launch, self.log = launch, logs / f"vllm-{launch.port or 'worker'}.log"
        self.address = launch.address
        """Base address as clients reach it; empty for a node that only computes."""
        if host is not None and launch.address:
            self.address = str(httpx.URL(launch.address).copy_with(host=host))
        self.entry = RegisteredServer(self.address, launch.model, gethostname(), 0, key, job=job)
        """What stands in the registry."""
        self.healthy = False
        self._registry, self._notify = registry if launch.address else None, notify
        self._restarts = restarts
        self._process: subprocess.Popen[bytes] | None = None
        """The guard, whose id is also that of the group of guard and server; None while it does not run."""

    def __enter__(self) -> Self:
        try:
            # A registry that cannot be written is reported now, before minutes of loading.
            if self._registry is not None:
                self._registry.add(self.entry)
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def wait_healthy(self, progress: Callable[[float, str], None] = lambda _seconds, _line: None) -> None:
        """Return once it answers; it is registered as soon as it does.

        `progress` is called with the seconds that passed and the last line of the log. Raises `EngineError` with the
        log's last lines if it ends; then leave the `with` block.
        """
        started = time.monotonic()
        while not self._look():
            progress(time.monotonic() - started, self._tail(1))
            time.sleep(TIMING.tick_s)

    def watch(self) -> None:
        """Keep it running until an exception ends the block, such as that of Ctrl-C.

        If it ends by itself, it is started again after a pause, and is not in the registry meanwhile. Raises
        `EngineError` with the log's last lines if it ends more often than `restarts`.
        """
        for crashes in count(1):
            try:
                self.wait_healthy()
                if crashes > 1:
                    self._notify(f"{self.address} answers again")
                while self._look():
                    time.sleep(TIMING.tick_s)
            except EngineError as error:
                self._end()
                if crashes > self._restarts:
                    raise
                # The next start makes a new log, and this one says why it crashed.
                with contextlib.suppress(OSError):
                    self.log.replace(self.log.with_suffix(f".{crashes}.log"))
                pause_s = TIMING.first_pause_s * 2.0 ** (crashes - 1)
                self._notify(f"{self.address}: {str(error).partition(';')[0]}; it is started again in {pause_s:.0f} s")
                time.sleep(pause_s)
                self._start()

    def _start(self) -> None:
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.log.unlink(missing_ok=True)
            number = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EngineError(
                f"{self.log}: the log cannot be written: {error.strerror}; name another folder with --folder"
            ) from None
        with os.fdopen(number, "wb") as stream:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the user's own
                (sys.executable, "-I", "-S", _GUARD, str(os.getpid()), *self.launch.command),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.launch.environment, "VLLM_API_KEY": self.entry.key},
                # A group of its own: Ctrl-C reaches this process alone, and `_end` the workers of vLLM.
                start_new_session=True,
            )
        self._write()

    def _look(self) -> bool:
        """Return whether it answers; raises `EngineError` with the log's last lines if it ended."""
        assert self._process is not None  # noqa: S101
        if (code := self._process.poll()) is not None:
            raise EngineError(f"the server ended with exit code {code}; {self._tail()}")
        if not self.healthy:
            self.healthy = not self.launch.address  # a node that only computes
            with contextlib.suppress(httpx.TransportError):
                # Without the environment's proxies: the server is on this machine.
                address = f"{self.launch.address.removesuffix('/v1')}/health"
                self.healthy = self.healthy or httpx.get(address, timeout=2.0, trust_env=False).is_success
            if self.healthy:
                self._write()
        return self.healthy

    def _end(self) -> None:
        process, self._process, self.healthy = self._process, None, False
        # First, so that no run sends questions to a server that is about to end.
        self._write()
        if process is None:
            return
        for sign, wait_s in ((signal.SIGTERM, TIMING.grace_s), (signal.SIGKILL, 5.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            deadline = time.monotonic() + wait_s
            # Workers may outlive the process that started them, with a GPU's memory. Unreaped it would stay a
            # zombie, whose number counts as a running server's.
            while (alive := process.poll() is None or group_lives(process.pid)) and time.monotonic() < deadline:
                time.sleep(0.05)
            if not alive:
                return

    def _write(self) -> None:
        """Bring the registry up to date; if it cannot be written now, that is told, and the server still serves."""
        if self._registry is None:
            return
        try:
            if self._process is None:
                self._registry.remove(self.entry)
            else:
                self._registry.add(replace(self.entry, pid=self._process.pid, ready=self.healthy))
        except EngineError as error:
            self._notify(str(error))

    def _tail(self, lines: int = 12) -> str:
        with contextlib.suppress(OSError), self.log.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - 16_384, 0))
            text = [line for line in stream.read().decode(errors="replace").splitlines() if line.strip()]
            opening = f"the last lines of {self.log}:\n" if lines > 1 else ""
            return opening + "\n".join(text[-lines:])
        return ""


def group_lives(group: int) -> bool:
    """Return whether a process of the group still runs; a zombie does not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, member_of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state not in "ZX":
                return True
    return False
