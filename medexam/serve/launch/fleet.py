"""Several servers of this machine, kept running: loaded, registered, restarted, and stopped together.

A fleet leaves nothing behind, however it ends: its servers leave the registry before they are stopped, and if this
process is killed, each server's guard ends it. This module knows processes and the registry; it plans no command and
sends no questions.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from medexam.errors import EngineError
from medexam.serve.discovery.registry import RegisteredServer, Registry, host_name
from medexam.serve.launch.processes import Launch
from medexam.serve.launch.supervised_server import SupervisedServer, port_of

HEARTBEAT_S = 5.0
"""Seconds between two heartbeats in the registry."""
_TICK_S = 0.25

LoadProgress = Callable[[float, str], None]


class Fleet:
    """Running servers: `with Fleet(launches, logs=Path("logs")) as fleet: fleet.wait_healthy(600); fleet.watch()`.

    One thread may watch while another stops it.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        *,
        logs: Path,
        key: str | None = None,
        key_file: Path | None = None,
        registry: Registry | None = None,
        restarts: int = 3,
        job: str | None = None,
        public_host: str | None = None,
        notify: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """Nothing starts before the `with` block.

        `logs` is a folder, or a file that ends in `.log`. `key` is what clients must send, `key_file` where they find
        it. `restarts` is how often each server may be started again. `public_host` is the name by which other machines
        reach this one; None: the addresses as planned. `notify` is called with each event while servers run.
        """
        self._lock = threading.RLock()
        """Held for each round of checks, so that `stop`, in another thread, never ends a server while it is started."""
        self._stopping = threading.Event()
        self._registry = registry
        self._last_heartbeat = 0.0
        self._registry_fault = ""
        """The last one that was reported."""
        self._load_timeout_s = float("inf")
        self._restarts = restarts
        self._notify = notify
        self._servers = [
            SupervisedServer(launch, _log(logs, launch, len(launches)), key, _public(launch.address, public_host))
            for launch in launches
        ]
        self._job = job
        self._key_file = key_file

    @property
    def addresses(self) -> tuple[str, ...]:
        """Base addresses of the servers, as clients reach them."""
        return tuple(server.address for server in self._servers)

    @property
    def logs(self) -> tuple[Path, ...]:
        """Where each server's output goes."""
        return tuple(server.log for server in self._servers)

    def __enter__(self) -> Self:
        if self._registry is not None:
            # A registry that cannot be written is reported now, before minutes of loading.
            self._registry.heartbeat()
        try:
            for server in self._servers:
                server.claim()
            # All ports are claimed first: servers on ports that another fleet has must not load for minutes.
            for server in self._servers:
                with self._lock:
                    if not self._stopping.is_set():
                        server.start()
                        self._register(server)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def wait_healthy(self, timeout_s: float, progress: LoadProgress | None = None) -> None:
        """Return once all servers answer, or the fleet is stopped; each is registered as soon as it answers.

        `progress` is called with the seconds that passed and the last log line of a server that loads. Raises
        `EngineError` with the log's last lines if one ends or takes longer; then leave the `with` block.
        """
        self._load_timeout_s = timeout_s
        started = time.monotonic()
        with _client() as client:
            while True:
                with self._lock:
                    for server in self._loading():
                        server.check_alive()
                        if server.answers(client):
                            self._set_healthy(server)
                    loading = self._loading()
                    self._send_heartbeat()
                if not loading or self._stopping.is_set():
                    return
                waited = time.monotonic() - started
                if waited >= timeout_s:
                    raise loading[0].too_slow(timeout_s)
                if progress is not None:
                    progress(waited, self._last_line(loading[0]))
                self._stopping.wait(_TICK_S)

    def watch(self) -> None:
        """Keep the servers running until `stop` is called.

        A server that ends by itself is started again after a pause, and is not in the registry meanwhile. Raises
        `EngineError` with the log's last lines if one ends more often than `restarts`.
        """
        with _client() as client:
            while not self._stopping.is_set():
                with self._lock:
                    for server in () if self._stopping.is_set() else self._servers:
                        self._check(server, client)
                    self._send_heartbeat()
                self._stopping.wait(_TICK_S)

    def stop(self) -> None:
        """Take the servers out of the registry and end them with all that they started. Stopping twice is harmless."""
        self._stopping.set()
        with self._lock:
            # First, so that no run sends questions to a server that is about to end.
            self._unregister(*self._servers)
            with ThreadPoolExecutor(max_workers=max(len(self._servers), 1)) as pool:
                list(pool.map(SupervisedServer.stop, self._servers))
            for server in self._servers:
                server.release()

    def _check(self, server: SupervisedServer, client: httpx.Client) -> None:
        try:
            if server.state == "crashed":
                if time.monotonic() >= server.restart_at:
                    server.start()
                return
            server.check_alive()
            if server.state == "loading":
                if server.answers(client):
                    self._set_healthy(server)
                    self._notify(f"{server.address} answers again")
                elif server.age_s > self._load_timeout_s:
                    raise server.too_slow(self._load_timeout_s)
        except EngineError as error:
            self._unregister(server)
            if server.restarts >= self._restarts:
                raise
            pause_s = server.schedule_restart()
            reason = str(error).partition(";")[0]
            left = self._restarts - server.restarts
            self._notify(
                f"{server.address}: {reason}; it is started again in {pause_s:.0f} s, {left} more times after that"
            )

    def _set_healthy(self, server: SupervisedServer) -> None:
        server.state = "healthy"
        self._register(server)

    def _register(self, server: SupervisedServer) -> None:
        if self._registry is not None:
            self._registry.add(self._entry(server))

    def _entry(self, server: SupervisedServer) -> RegisteredServer:
        return RegisteredServer(
            address=server.address,
            model=server.launch.model,
            host=host_name(),
            pid=server.pid,
            job=self._job,
            key_file=self._key_file,
            ready=server.state == "healthy",
        )

    def _send_heartbeat(self) -> None:
        """Note in the registry that the servers run; if it cannot be written now, they still serve."""
        if self._registry is None or time.monotonic() - self._last_heartbeat < HEARTBEAT_S:
            return
        self._last_heartbeat = time.monotonic()
        running = {server.address: server for server in self._servers if server.state != "crashed"}
        try:
            unknown = self._registry.heartbeat(*running) if running else ()
            # Someone removed the registry file, or this machine slept until its entries were stale.
            if unknown:
                self._registry.add(*(self._entry(running[address]) for address in unknown))
        except EngineError as error:
            if str(error) != self._registry_fault:
                self._notify(str(error))
            self._registry_fault = str(error)
        else:
            self._registry_fault = ""

    def _unregister(self, *servers: SupervisedServer) -> None:
        known = [server.address for server in servers if server.state != "crashed"]
        if self._registry is not None and known:
            try:
                self._registry.remove(*known)
            except EngineError as error:
                self._notify(str(error))

    def _last_line(self, server: SupervisedServer) -> str:
        return server.tail(1) if len(self._servers) == 1 else f"{server.address}: {server.tail(1)}"

    def _loading(self) -> list[SupervisedServer]:
        return [server for server in self._servers if server.state == "loading"]


def _client() -> httpx.Client:
    return httpx.Client(timeout=2.0, trust_env=False)


def _log(logs: Path, launch: Launch, of: int) -> Path:
    which = port_of(launch) or "worker"
    if logs.suffix != ".log":
        return logs / f"vllm-{which}.log"
    return logs if of == 1 else logs.with_stem(f"{logs.stem}-{which}")


def _public(address: str, host: str | None) -> str:
    return address if host is None or not address else str(httpx.URL(address).copy_with(host=host))
