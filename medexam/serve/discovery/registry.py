"""The file that says which servers run where, so that a run finds servers that come and go.

The process that starts a server writes it there and repeats every few seconds that it still runs. An entry without such
a heartbeat counts no more, so nobody has to clean up after a machine that lost its power. The file may lie on storage
that several machines share. It names the files of keys and holds no key. This module knows files; it starts nothing.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import ValidationError
from pydantic.dataclasses import dataclass

from medexam.errors import EngineError
from medexam.files import cache_dir, host_name, process_lives, write_whole
from medexam.frozen_model import FrozenModel

STALE_S = 30.0
"""Seconds without a heartbeat after which an entry counts no more; the machines' clocks must agree better."""
_LOCK_S = 20.0


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
    """When it was last known to run, in Unix seconds."""


class _File(FrozenModel):
    form: Literal["medexam servers 1"]
    servers: tuple[RegisteredServer, ...]


class Registry:
    """A registry file; it is made at the first `add`, for its owner alone."""

    def __init__(self, path: Path) -> None:
        """Nothing is read or written yet."""
        self.path = path.expanduser().absolute()

    def add(self, *entries: RegisteredServer) -> None:
        """Write servers; one at the same address is replaced. Raises `EngineError` if the file cannot be written."""
        with self._rewriting() as known:
            known.update({entry.address: entry for entry in entries})

    def remove(self, *addresses: str) -> None:
        """Take servers out, if they are there. Raises `EngineError` if the file cannot be written."""
        if not self.path.exists():
            return
        with self._rewriting() as known:
            for address in addresses:
                known.pop(address, None)

    def heartbeat(self, *addresses: str) -> tuple[str, ...]:
        """Note that servers run; returns those that the file does not know, as after it was removed."""
        now = time.time()
        with self._rewriting(keep=lambda entry: entry.address in addresses) as known:
            known.update({one: replace(known[one], seen_at=now) for one in addresses if one in known})
            return tuple(one for one in addresses if one not in known)

    def read(self) -> tuple[RegisteredServer, ...]:
        """The servers that answer, oldest first; () without a file.

        Left out are those without a heartbeat for `STALE_S` seconds and those of this machine whose process ended.
        Raises `EngineError` for a file that is damaged or is no registry.
        """
        return tuple(entry for entry in self._entries() if entry.ready and _runs(entry))

    def read_loading(self) -> tuple[RegisteredServer, ...]:
        """The servers that do not answer yet, oldest first; raises as `read` does."""
        return tuple(entry for entry in self._entries() if not entry.ready and _runs(entry))

    def read_stale(self) -> tuple[RegisteredServer, ...]:
        """The servers whose last heartbeat is too long ago by this machine's clock, oldest first; raises as `read`."""
        return tuple(entry for entry in self._entries() if _is_stale(entry))

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
                "or remove it: servers that run write themselves into a new one within seconds"
            ) from None

    @contextlib.contextmanager
    def _rewriting(
        self, keep: Callable[[RegisteredServer], bool] = lambda _entry: False
    ) -> Iterator[dict[str, RegisteredServer]]:
        """The entries by address, to be changed in place; without those that count no more, unless `keep` has them."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Read, changed and written under one lock: of two writers at once, one would undo the other's change.
            with FileLock(f"{self.path}.lock", timeout=_LOCK_S, mode=0o600):
                known = {entry.address: entry for entry in self._entries() if _runs(entry) or keep(entry)}
                yield known
                # The whole file at once: readers take no lock, and see the file of before or this one.
                held = _File(form="medexam servers 1", servers=tuple(known.values()))
                write_whole(self.path, held.model_dump_json(indent=1), private=True)
        except Timeout:
            raise EngineError(
                f"{self.path}: another process holds {self.path.name}.lock since {_LOCK_S:.0f} s; end it, "
                "or name another registry with --registry"
            ) from None
        except (OSError, NotImplementedError) as error:
            raise EngineError(
                f"{self.path}: the registry cannot be written: {error}; name one in another folder with --registry"
            ) from None


def local_registry() -> Registry:
    """The registry of this machine, which `medexam serve` writes unless it is told another."""
    return Registry(cache_dir() / "servers.json")


def _runs(entry: RegisteredServer) -> bool:
    if _is_stale(entry):
        return False
    # A process of another machine cannot be looked up here; its heartbeat alone says that it runs.
    return entry.host != host_name() or process_lives(entry.pid)


def _is_stale(entry: RegisteredServer) -> bool:
    return time.time() - entry.seen_at > STALE_S
