"""The file that says which servers run where, so that a run finds them.

The process that starts a server writes it there and repeats every few seconds that it still runs. An entry without such
a heartbeat counts no more, so nobody has to clean up after a machine that lost its power. The file may lie on storage
that several machines share, whose clocks may differ: a reader takes the time between two changes of a heartbeat by its
own clock. The file names the files of keys and holds no key. This module knows files; it starts nothing.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from enum import Enum, auto
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import ValidationError
from pydantic.dataclasses import dataclass

from medexam.errors import EngineError
from medexam.files import cache_dir, host_name, process_lives, write_whole
from medexam.frozen_model import FrozenModel
from medexam.serve.timing import TIMING


@dataclass(frozen=True, config={"extra": "forbid"})
class RegisteredServer:
    """One server that runs."""

    address: str
    """Base address of its OpenAI API, as other machines reach it."""
    model: str
    """The name it is served by."""
    host: str
    """Name of the machine that it runs on."""
    pid: int
    """The server's process there."""
    job: str | None = None
    """Id of its Slurm job; None if it was started by hand."""
    key_file: Path | None = None
    """Where its API key lies; None if it asks for none."""
    ready: bool = True
    """Whether it answers; False while it loads."""
    seen_at: float = field(default_factory=time.time)
    """Its heartbeat: when it was last known to run, in Unix seconds of its own machine's clock."""


class _File(FrozenModel):
    form: Literal["medexam servers 1"]
    servers: tuple[RegisteredServer, ...]


class _Life(Enum):
    """What is known of a server."""

    RUNS = auto()
    UNSURE = auto()
    """The clocks say that it ended, or differ; only another heartbeat decides."""
    ENDED = auto()


@dataclass(frozen=True)
class _Heartbeat:
    """A server's last heartbeat, as one reader saw it."""

    seen_at: float
    came_at: float
    """When it was first read, by the reader's monotonic clock."""
    follows: bool
    """Whether an earlier one was read."""


class Registry:
    """A registry file; it is made at the first `add`, for its owner alone. One object remembers what it read."""

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is read or written yet."""
        self.path = path.expanduser().absolute()
        self._heartbeats: dict[str, _Heartbeat] = {}

    def add(self, *entries: RegisteredServer) -> None:
        """Write servers; one at the same address is replaced. Raises `EngineError` if the file cannot be written."""
        with self._rewriting() as entry_by_address:
            entry_by_address.update({entry.address: entry for entry in entries})

    def remove(self, *addresses: str) -> None:
        """Take servers out, if they are there. Raises `EngineError` if the file cannot be written."""
        if not self.path.exists():
            return
        with self._rewriting() as entry_by_address:
            for address in addresses:
                entry_by_address.pop(address, None)

    def heartbeat(self, *addresses: str) -> tuple[str, ...]:
        """Note that servers run; returns those that the file does not know, as after it was removed."""
        now = time.time()
        with self._rewriting(keep=lambda entry: entry.address in addresses) as entry_by_address:
            entry_by_address.update(
                {
                    address: replace(entry_by_address[address], seen_at=now)
                    for address in addresses
                    if address in entry_by_address
                }
            )
            return tuple(address for address in addresses if address not in entry_by_address)

    def read(self) -> tuple[RegisteredServer, ...]:
        """Read the servers that answer, oldest first; () without a file.

        Left out are those without a new heartbeat for `Timing.stale_s` seconds, those of this machine whose process
        ended, and those of `read_unsure`. Raises `EngineError` for a file that is damaged or is no registry.
        """
        return tuple(entry for entry in self._entries() if entry.ready and self._life(entry) is _Life.RUNS)

    def read_loading(self) -> tuple[RegisteredServer, ...]:
        """Read the servers that do not answer yet, oldest first; raises as `read` does."""
        return tuple(entry for entry in self._entries() if not entry.ready and self._life(entry) is _Life.RUNS)

    def read_unsure(self) -> tuple[RegisteredServer, ...]:
        """Read the servers that ended, or whose machine's clock differs from this one's; oldest first, raises as
        `read`.

        Who reads again knows which: within `Timing.stale_s` seconds each has another heartbeat or counts no more.
        """
        return tuple(entry for entry in self._entries() if self._life(entry) is _Life.UNSURE)

    def _entries(self) -> tuple[RegisteredServer, ...]:
        try:
            return _File.model_validate_json(self.path.read_bytes()).servers
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise EngineError(f"{self.path}: the registry cannot be read: {error}; name another") from None
        except ValidationError as error:
            raise EngineError(
                f"{self.path}: damaged, or no registry of servers ({error.errors()[0]['msg']}); name another file, "
                "or remove it: running servers write a new one within seconds"
            ) from None

    def _life(self, entry: RegisteredServer) -> _Life:
        # A process of another machine cannot be looked up here; its heartbeats alone say that it runs.
        if entry.host == host_name() and not process_lives(entry.pid):
            return _Life.ENDED
        now, heartbeat = time.monotonic(), self._heartbeats.get(entry.address)
        if heartbeat is None or heartbeat.seen_at != entry.seen_at:
            heartbeat = self._heartbeats[entry.address] = _Heartbeat(entry.seen_at, now, follows=heartbeat is not None)
        if now - heartbeat.came_at > TIMING.stale_s:
            return _Life.ENDED
        agrees = abs(time.time() - entry.seen_at) <= TIMING.stale_s
        return _Life.RUNS if heartbeat.follows or agrees else _Life.UNSURE

    @contextlib.contextmanager
    def _rewriting(
        self, keep: Callable[[RegisteredServer], bool] = lambda _entry: False
    ) -> Iterator[dict[str, RegisteredServer]]:
        """Yield the entries by address, to be changed in place; without those that count no more, unless `keep` has
        them.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Read, changed and written under one lock: of two writers at once, one would undo the other's change.
            with FileLock(f"{self.path}.lock", timeout=TIMING.registry_lock_s, mode=0o600):
                entries = self._entries()
                entry_by_address = {
                    entry.address: entry for entry in entries if self._life(entry) is not _Life.ENDED or keep(entry)
                }
                yield entry_by_address
                # The whole file at once: readers take no lock, and see the file of before or this one.
                file = _File(form="medexam servers 1", servers=tuple(entry_by_address.values()))
                write_whole(self.path, file.model_dump_json(indent=1), private=True)
        except Timeout:
            raise EngineError(
                f"{self.path}: another process holds {self.path.name}.lock since {TIMING.registry_lock_s:.0f} s; "
                "end it, or name another registry with --registry"
            ) from None
        except (OSError, NotImplementedError) as error:
            raise EngineError(
                f"{self.path}: the registry cannot be written: {error}; name one in another folder with --registry"
            ) from None


def local_registry() -> Registry:
    """Return the registry of this machine, which `medexam serve` writes unless it is told another."""
    return Registry(cache_dir() / "servers.json")
