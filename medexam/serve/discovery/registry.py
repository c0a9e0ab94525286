"""The file that says which servers run where, so that a run finds servers that come and go.

Whoever starts a server writes it there and says every few seconds that it still runs; an entry whose writer fell silent
counts no more, so a machine that lost its power needs nobody to clean up after it. The file may lie on storage that
several machines share. Keys are not in it, only where they lie. This module knows files; it starts and asks nothing.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from medexam.errors import EngineError
from medexam.files import write_whole
from medexam.paths import cache_dir

STALE_S = 30.0
"""Seconds without a sign of life after which an entry counts no more; the machines' clocks must agree better."""
_LOCK_S = 20.0
_FORM = "medexam servers 1"


@dataclass(frozen=True)
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
    """Id of its Slurm job; None where it was started by hand."""
    key_file: Path | None = None
    """Where its API key lies; None where it asks for none."""
    ready: bool = True
    """Whether it answers; False while it loads."""
    seen_at: float = field(default_factory=time.time)
    """When it was last known to run, in Unix seconds."""


class Registry:
    """A registry file; it is made at the first `add`, for its owner alone."""

    def __init__(self, path: Path) -> None:
        """Nothing is read or written yet."""
        self.path = path.expanduser().absolute()

    def add(self, *entries: RegisteredServer) -> None:
        """Write servers; one at the same address is replaced. Raises `EngineError` where that cannot be done."""
        with self._rewriting() as known:
            known.update({entry.address: entry for entry in entries})

    def remove(self, *addresses: str) -> None:
        """Take servers out; one that is not there is no fault. Raises `EngineError` where that cannot be done."""
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
        """The servers that answer, oldest first; () where there is no file.

        Left out are those that nobody vouched for during `STALE_S` seconds and those of this machine whose process
        ended. Raises `EngineError` for a file that is damaged or is no registry.
        """
        return tuple(entry for entry in self._entries() if entry.ready and _runs(entry))

    def read_loading(self) -> tuple[RegisteredServer, ...]:
        """The servers that do not answer yet, oldest first; raises as `read` does."""
        return tuple(entry for entry in self._entries() if not entry.ready and _runs(entry))

    def _entries(self) -> list[RegisteredServer]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise EngineError(f"{self.path}: the registry cannot be read: {error}; name another") from None
        try:
            held = json.loads(text)
            if held["form"] != _FORM:
                raise ValueError(f"its form is {held['form']!r}")
            return [_read(row) for row in held["servers"]]
        except (ValueError, KeyError, TypeError) as error:
            raise EngineError(
                f"{self.path}: damaged, or no registry of servers ({error}); name another file, "
                "or remove it: servers that run write themselves into a new one within seconds"
            ) from None

    @contextlib.contextmanager
    def _rewriting(
        self, keep: Callable[[RegisteredServer], bool] = lambda _entry: False
    ) -> Iterator[dict[str, RegisteredServer]]:
        """The entries by address, to be changed in place; without those that count no more, unless `keep` has them."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(f"{self.path}.lock", timeout=_LOCK_S, mode=0o600):
                known = {entry.address: entry for entry in self._entries() if _runs(entry) or keep(entry)}
                yield known
                self._write(known)
        except Timeout:
            raise EngineError(
                f"{self.path}: another process holds {self.path.name}.lock since {_LOCK_S:.0f} s; end it, "
                "or name another registry with --registry"
            ) from None
        except (OSError, NotImplementedError) as error:
            raise EngineError(
                f"{self.path}: the registry cannot be written: {error}; name one in another folder with --registry"
            ) from None

    def _write(self, known: dict[str, RegisteredServer]) -> None:
        """The whole file at once: a reader sees the one before or this one."""
        rows = [{**asdict(one), "key_file": str(one.key_file) if one.key_file else None} for one in known.values()]
        write_whole(self.path, json.dumps({"form": _FORM, "servers": rows}, indent=1), private=True)


def local_registry() -> Registry:
    """The registry of this machine, which `medexam serve` writes unless it is told another."""
    return Registry(cache_dir() / "servers.json")


def host_name() -> str:
    """The name of this machine."""
    return socket.gethostname()


def _read(row: dict[str, Any]) -> RegisteredServer:
    entry = RegisteredServer(**{**row, "key_file": Path(row["key_file"]) if row["key_file"] else None})
    if not isinstance(entry.pid, int) or not isinstance(entry.seen_at, int | float):
        raise TypeError(f"the entry of {entry.address} has no process or time")
    return entry


def _runs(entry: RegisteredServer) -> bool:
    if time.time() - entry.seen_at > STALE_S:
        return False
    return entry.host != host_name() or process_lives(entry.pid)


def process_lives(pid: int) -> bool:
    """Whether the process runs on this machine; a dead one that nobody reaped does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] not in "ZX"
    return True
