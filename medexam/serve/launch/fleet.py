"""Keeping several servers of this machine running: all loaded, told to the registry, restarted, and stopped as one.

A fleet leaves nothing behind, however it ends: its servers leave the registry first and are stopped then, and where
this process is killed without a word, each server's guard ends it. This module knows processes and the registry; it
plans no command and sends no questions.
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
"""Seconds between two signs of life in the registry."""
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

        `logs` is a folder, or a file that ends in `.log`. `key` is what clients must show, `key_file` where they find
        it. `restarts` is how often each server may be started again. `public_host` is the name by which other machines
        reach this one; None: addresses stay as they are planned. `notify` hears of what happens while servers run.
        """
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._registry = registry
        self._beaten = 0.0
        self._complaint = ""
        self._patience_s = float("inf")
        self._restarts = restarts
        self._tell = notify
        self._servers = [
            SupervisedServer(launch, _log(logs, launch, len(launches)), key, _reached(launch.address, public_host))
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
            self._registry.heartbeat()  # One that cannot be written is better known before the model is loaded.
        try:
            for server in self._servers:
                server.claim()
            for server in self._servers:
                with self._lock:
                    if not self._over.is_set():
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
        """Return once all servers answer, or the fleet is stopped; the registry hears of each as soon as it answers.

        `progress` is told the seconds that went by and the last line of a server that still loads. Raises `EngineError`
        with the log's last lines where one ends or takes longer; then leave the `with` block.
        """
        self._patience_s = timeout_s
        started = time.monotonic()
        with _client() as client:
            while True:
                with self._lock:
                    for server in self._loading():
                        server.check()
                        if server.answers(client):
                            self._announce(server)
                    loading = self._loading()
                    self._beat()
                if not loading or self._over.is_set():
                    return
                waited = time.monotonic() - started
                if waited >= timeout_s:
                    raise loading[0].too_slow(timeout_s)
                if progress is not None:
                    progress(waited, loading[0].line(len(self._servers)))
                self._over.wait(_TICK_S)

    def watch(self) -> None:
        """Keep the servers running until `stop` is called.

        A server that ends by itself is started again after a pause; until then it is not in the registry. Raises
        `EngineError` with the log's last lines for one that ended more often than `restarts`.
        """
        with _client() as client:
            while not self._over.is_set():
                with self._lock:
                    for server in () if self._over.is_set() else self._servers:
                        self._look_after(server, client)
                    self._beat()
                self._over.wait(_TICK_S)

    def stop(self) -> None:
        """Take the servers out of the registry and end them with all that they started. Stopping twice is harmless."""
        self._over.set()
        with self._lock:
            self._unregister(*self._servers)
            with ThreadPoolExecutor(max_workers=max(len(self._servers), 1)) as pool:
                list(pool.map(SupervisedServer.stop, self._servers))
            for server in self._servers:
                server.release()

    def _look_after(self, server: SupervisedServer, client: httpx.Client) -> None:
        try:
            if server.state == "resting":
                if time.monotonic() >= server.restart_at:
                    server.start()
                return
            server.check()
            if server.state == "loading":
                if server.answers(client):
                    self._announce(server)
                    self._tell(f"{server.address} answers again")
                elif server.age_s > self._patience_s:
                    raise server.too_slow(self._patience_s)
        except EngineError as error:
            self._unregister(server)
            if server.restarts_done >= self._restarts:
                raise
            pause = server.schedule_restart()
            reason = str(error).partition(";")[0]
            left = self._restarts - server.restarts_done
            self._tell(
                f"{server.address}: {reason}; it is started again in {pause:.0f} s, {left} more times after that"
            )

    def _announce(self, server: SupervisedServer) -> None:
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

    def _beat(self) -> None:
        """Say that the servers run; a registry that cannot be written now is no reason to stop serving."""
        if self._registry is None or time.monotonic() - self._beaten < HEARTBEAT_S:
            return
        self._beaten = time.monotonic()
        running = {server.address: server for server in self._servers if server.state != "resting"}
        try:
            unknown = self._registry.heartbeat(*running) if running else ()
            if unknown:
                self._registry.add(*(self._entry(running[address]) for address in unknown))
        except EngineError as error:
            if str(error) != self._complaint:
                self._tell(str(error))
            self._complaint = str(error)
        else:
            self._complaint = ""

    def _unregister(self, *servers: SupervisedServer) -> None:
        known = [server.address for server in servers if server.state != "resting"]
        if self._registry is not None and known:
            try:
                self._registry.remove(*known)
            except EngineError as error:
                self._tell(str(error))

    def _loading(self) -> list[SupervisedServer]:
        return [server for server in self._servers if server.state == "loading"]


def _client() -> httpx.Client:
    return httpx.Client(timeout=2.0, trust_env=False)


def _log(logs: Path, launch: Launch, of: int) -> Path:
    which = port_of(launch) or "worker"
    if logs.suffix != ".log":
        return logs / f"vllm-{which}.log"
    return logs if of == 1 else logs.with_stem(f"{logs.stem}-{which}")


def _reached(address: str, host: str | None) -> str:
    return address if host is None or not address else str(httpx.URL(address).copy_with(host=host))
