"""Several servers of this machine, kept running: loaded, registered, restarted, and stopped together.

A fleet leaves nothing behind, however it ends: its servers leave the registry before they are stopped, and if this
process is killed, each server's guard ends it. This module knows processes and the registry; it plans no command and
sends no questions.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx

from medexam.errors import EngineError
from medexam.files import host_name
from medexam.serve.discovery.registry import RegisteredServer, Registry
from medexam.serve.launch.processes import Launch, ServerProcess
from medexam.serve.timing import TIMING

LoadProgress = Callable[[float, str], None]
RESTARTS = 3
"""How often a server that crashed is started again."""


@dataclass(frozen=True)
class ClientAccess:
    """How clients find servers and which key they send."""

    key: str | None = field(default=None, repr=False)
    """What clients must send; None: the servers ask for none."""
    key_file: Path | None = None
    """Where clients find the key."""
    registry: Registry | None = None
    """Where clients find the servers; None: they are told the addresses."""
    job: str | None = None
    """Id of the servers' Slurm job."""
    host: str | None = None
    """The name by which other machines reach this one; None: the addresses as planned."""

    def address(self, launch: Launch) -> str:
        """Return the address that clients use."""
        if self.host is None or not launch.address:
            return launch.address
        return str(httpx.URL(launch.address).copy_with(host=self.host))


class Fleet:
    """Running servers: `with Fleet(launches, logs=Path("logs")) as fleet: fleet.wait_healthy(); fleet.watch()`.

    One thread may watch while another stops it.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        *,
        logs: Path,
        access: ClientAccess = ClientAccess(),
        restarts: int = RESTARTS,
        notify: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """Set up the servers; nothing starts before the `with` block.

        `logs` is a folder. `restarts` is how often each server may be started again. `notify` is called with each event
        while servers run.
        """
        self._lock = threading.RLock()
        """Held for each round of checks, so that `stop`, in another thread, never ends a server while it is started."""
        self._stopping = threading.Event()
        self._access = access
        self._registry = access.registry
        self._last_heartbeat = 0.0
        self._registry_fault = ""
        """The last one that was reported."""
        self._restarts = restarts
        self._notify = notify
        self._servers = [
            ServerProcess(launch, logs / f"vllm-{launch.port or 'worker'}.log", access.key, access.address(launch))
            for launch in launches
        ]

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
            # All ports are claimed first: servers on ports that another fleet has must not load for minutes.
            for server in self._servers:
                server.claim()
            for server in self._servers:
                with self._lock:
                    if not self._stopping.is_set():
                        server.start()
                        self._register(server)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait_healthy(self, progress: LoadProgress | None = None) -> None:
        """Return once all servers answer, or the fleet is stopped; each is registered as soon as it answers.

        `progress` is called with the seconds that passed and the last log line of a server that loads. Raises
        `EngineError` with the log's last lines if one ends or takes longer; then leave the `with` block.
        """
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
                loading[0].check_loading(waited)
                if progress is not None:
                    progress(waited, self._last_line(loading[0]))
                self._stopping.wait(TIMING.tick_s)

    def watch(self) -> None:
        """Keep the servers running until `stop` is called.

        A server that ends by itself is started again after a pause, and is not in the registry meanwhile. Raises
        `EngineError` with the log's last lines if one ends more often than `restarts`.
        """
        with _client() as client:
            while not self._stopping.is_set():
                with self._lock:
                    # Asked again under the lock: `stop` may have ended the servers while this thread waited for it.
                    for server in () if self._stopping.is_set() else self._servers:
                        self._check(server, client)
                    self._send_heartbeat()
                self._stopping.wait(TIMING.tick_s)

    def stop(self) -> None:
        """Take the servers out of the registry and end them with all that they started. Stopping twice is harmless."""
        self._stopping.set()
        with self._lock:
            # First, so that no run sends questions to a server that is about to end.
            self._unregister(*self._servers)
            # At once: each may take `TIMING.grace_s` to end.
            with ThreadPoolExecutor(max_workers=max(len(self._servers), 1)) as pool:
                list(pool.map(ServerProcess.stop, self._servers))
            for server in self._servers:
                server.release()

    def _check(self, server: ServerProcess, client: httpx.Client) -> None:
        try:
            if server.state == "crashed":
                if time.monotonic() >= server.restart_at:
                    server.start()
                return
            server.check_alive()
            if server.state == "loading" and server.answers(client):
                self._set_healthy(server)
                self._notify(f"{server.address} answers again")
        except EngineError as error:
            self._unregister(server)
            if server.restarts >= self._restarts:
                raise
            pause_s = server.schedule_restart()
            reason = str(error).partition(";")[0]
            restarts_left = self._restarts - server.restarts
            self._notify(
                f"{server.address}: {reason}; it is started again in {pause_s:.0f} s, "
                f"{restarts_left} more times after that"
            )

    def _set_healthy(self, server: ServerProcess) -> None:
        server.state = "healthy"
        self._register(server)

    def _register(self, *servers: ServerProcess) -> None:
        if self._registry is not None:
            self._registry.add(
                *(
                    RegisteredServer(
                        address=server.address,
                        model=server.launch.model,
                        host=host_name(),
                        pid=server.pid,
                        job=self._access.job,
                        key_file=self._access.key_file,
                        ready=server.state == "healthy",
                    )
                    for server in servers
                )
            )

    def _send_heartbeat(self) -> None:
        """Note in the registry that the servers run; if it cannot be written now, they still serve."""
        if self._registry is None or time.monotonic() - self._last_heartbeat < TIMING.heartbeat_s:
            return
        self._last_heartbeat = time.monotonic()
        running = {server.address: server for server in self._servers if server.state != "crashed"}
        try:
            unknown = self._registry.heartbeat(*running) if running else ()
            # Someone removed the registry file, or this machine slept until its entries were stale.
            if unknown:
                self._register(*(running[address] for address in unknown))
            self._registry_fault = ""
        except EngineError as error:
            if str(error) != self._registry_fault:
                self._notify(str(error))
            self._registry_fault = str(error)

    def _unregister(self, *servers: ServerProcess) -> None:
        addresses = [server.address for server in servers if server.state != "crashed"]
        if self._registry is not None and addresses:
            try:
                self._registry.remove(*addresses)
            except EngineError as error:
                self._notify(str(error))

    def _last_line(self, server: ServerProcess) -> str:
        return server.tail(1) if len(self._servers) == 1 else f"{server.address}: {server.tail(1)}"

    def _loading(self) -> list[ServerProcess]:
        return [server for server in self._servers if server.state == "loading"]


def _client() -> httpx.Client:
    # Without the environment's proxies: the servers are on this machine.
    return httpx.Client(timeout=2.0, trust_env=False)
