"""The file that says which servers run where, so that a run finds them.

The process that starts a server writes it there and takes it out. The file may lie on storage that several machines
share. It names the files of keys and holds no key.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from medexam.errors import EngineError
from medexam.files import cache_dir, host_name, process_lives, write_whole
from medexam.serve.timing import TIMING


@dataclass(frozen=True, config={"extra": "forbid"})
class RegisteredServer:
    """One server that was started."""

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
    """Where its API key lies, a file of its starter's own; None if it asks for none."""
    ready: bool = True
    """Whether it answers; False while it loads."""


_SERVERS = TypeAdapter(tuple[RegisteredServer, ...])


class Registry:
    """A registry file; it is made at the first `add`, for its owner alone."""

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is read or written yet."""
        self.path = path.expanduser().absolute()

    def add(self, *servers: RegisteredServer) -> None:
        """Write servers; those of the same address or key file are replaced, which an earlier start of a job left.

        Raises `EngineError` if the file cannot be written.
        """
        with self._rewriting() as entries:
            addresses = {server.address for server in servers}
            keys = {server.key_file for server in servers} - {None}
            entries[:] = [one for one in entries if one.address not in addresses and one.key_file not in keys]
            entries += servers

    def remove(self, *addresses: str) -> None:
        """Take servers out, if they are there. Raises `EngineError` if the file cannot be written."""
        if self.path.exists():
            with self._rewriting() as entries:
                entries[:] = [entry for entry in entries if entry.address not in addresses]

    def read(self) -> tuple[RegisteredServer, ...]:
        """Read the servers that answer, oldest first, without those of this machine whose process ended.

        () without a file. Raises `EngineError` for a file that is damaged or is no registry.
        """
        return tuple(entry for entry in self._entries() if entry.ready)

    def read_loading(self) -> tuple[RegisteredServer, ...]:
        """Read the servers that do not answer yet; raises as `read` does."""
        return tuple(entry for entry in self._entries() if not entry.ready)

    def _entries(self) -> tuple[RegisteredServer, ...]:
        try:
            servers = _SERVERS.validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise EngineError(f"{self.path}: the registry cannot be read: {error}; name another") from None
        except ValidationError as error:
            raise EngineError(
                f"{self.path}: damaged, or no registry of servers ({error.errors()[0]['msg']}); name another file, "
                "or remove it and start the servers again"
            ) from None
        return tuple(one for one in servers if one.host != host_name() or process_lives(one.pid))

    @contextlib.contextmanager
    def _rewriting(self) -> Iterator[list[RegisteredServer]]:
        """Yield the servers, to be changed in place."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Read, changed and written under one lock: of two writers at once, one would undo the other's change.
            with FileLock(f"{self.path}.lock", timeout=TIMING.registry_lock_s, mode=0o600):
                entries = list(self._entries())
                yield entries
                # The whole file at once: readers take no lock, and see the file of before or this one.
                write_whole(self.path, _SERVERS.dump_json(tuple(entries), indent=1), private=True)
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
    return Registry(cache_dir() / "server_list.json")
