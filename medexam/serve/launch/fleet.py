"""Several servers of this machine, kept running: loaded, registered, restarted, and stopped together.

A fleet leaves nothing behind, however it ends: its servers leave the registry before they are stopped, and if this
process is killed, each server's guard ends it. It plans no command and sends no questions.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx

from medexam.errors import EndpointUnreachableError, EngineError
from medexam.files import host_name
from medexam.serve.discovery.registry import RegisteredServer, Registry
from medexam.serve.launch.command import Launch
from medexam.serve.launch.processes import ServerProcess
from medexam.serve.timing import TIMING

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
        self._restarts = restarts
        self._notify = notify
        self._servers = []
        for launch in launches:
            address = launch.address
            if access.host is not None and address:
                address = str(httpx.URL(address).copy_with(host=access.host))
            log = logs / f"vllm-{launch.port or 'worker'}.log"
            self._servers.append(ServerProcess(launch, log, access.key, address))

    @property
    def addresses(self) -> tuple[str, ...]:
        """Base addresses of the servers, as clients reach them."""
        return tuple(server.address for server in self._servers)

    @property
    def logs(self) -> tuple[Path, ...]:
        """Where each server's output goes."""
        return tuple(server.log for server in self._servers)

    def __enter__(self) -> Self:
        try:
            # A registry that cannot be written is reported now, before minutes of loading.
            if self._access.registry is not None:
                self._access.registry.add()
            with self._lock:
                if not self._stopping.is_set():
                    for server in self._servers:
                        server.start()
                    self._register()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait_healthy(self, progress: Callable[[float, str], None] | None = None) -> None:
        """Return once all servers answer, or the fleet is stopped; each is registered as soon as it answers.

        `progress` is called with the seconds that passed and the last log line of a server that loads. Raises
        `EngineError` with the log's last lines if one ends or takes longer; then leave the `with` block.
        """
        started = time.monotonic()
        while not self._stopping.is_set():
            with self._lock:
                for server in self._servers if not self._stopping.is_set() else ():
                    self._look(server)
                loading = [server for server in self._servers if server.state == "loading"]
            if not loading:
                return
            waited, server = time.monotonic() - started, loading[0]
            if waited >= TIMING.load_s:
                raise EndpointUnreachableError(
                    f"the server was not healthy after {waited:.0f} s; the last lines of {server.log}:\n{server.tail()}"
                )
            if progress is not None:
                line = server.tail(1)
                progress(waited, line if len(self._servers) == 1 else f"{server.address}: {line}")
            self._stopping.wait(TIMING.tick_s)

    def watch(self) -> None:
        """Keep the servers running until `stop` is called.

        A server that ends by itself is started again after a pause, and is not in the registry meanwhile. Raises
        `EngineError` with the log's last lines if one ends more often than `restarts`.
        """
        while not self._stopping.is_set():
            with self._lock:
                # Asked again under the lock: `stop` may have ended the servers while this thread waited for it.
                for server in () if self._stopping.is_set() else self._servers:
                    try:
                        if self._look(server):
                            self._notify(f"{server.address} answers again")
                    except EngineError as error:
                        self._restart_later(server, error)
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

    def _look(self, server: ServerProcess) -> bool:
        """Start a crashed server whose pause is over; return whether one that loaded answers now.

        Raises `EngineError` with the log's last lines if it ended by itself.
        """
        if server.state == "crashed":
            if time.monotonic() >= server.restart_at:
                server.start()
                self._register()
            return False
        server.check_alive()
        if server.state == "loading" and server.answers():
            server.state = "healthy"
            self._register()
            return True
        return False

    def _restart_later(self, server: ServerProcess, error: EngineError) -> None:
        self._unregister(server)
        if server.restarts >= self._restarts:
            raise error
        pause_s = server.schedule_restart()
        self._notify(
            f"{server.address}: {str(error).partition(';')[0]}; it is started again in {pause_s:.0f} s, "
            f"{self._restarts - server.restarts} more times after that"
        )

    def _register(self) -> None:
        access = self._access
        entries = [
            RegisteredServer(
                address=server.address,
                model=server.launch.model,
                host=host_name(),
                pid=server.pid,
                job=access.job,
                key_file=access.key_file,
                ready=server.state == "healthy",
            )
            for server in self._servers
            if server.state != "crashed"
        ]
        self._write(lambda registry: registry.add(*entries))

    def _unregister(self, *servers: ServerProcess) -> None:
        self._write(lambda registry: registry.remove(*(server.address for server in servers)))

    def _write(self, change: Callable[[Registry], None]) -> None:
        """Change the registry; if it cannot be written now, that is told, and the servers still serve."""
        if self._access.registry is not None:
            try:
                change(self._access.registry)
            except EngineError as error:
                self._notify(str(error))
