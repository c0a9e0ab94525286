"""Ports of this machine: which is free, and which process listens on one that is not."""

import contextlib
import os
import socket
from collections.abc import Container, Iterator
from pathlib import Path

from medexam.errors import EngineError
from medexam.serve.launch.port_claims import is_claimed

FIRST_PORT = 8000
"""Where the search for a free port begins."""
_LAST_PORT = 65_535
_LISTENING = "0A"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_SHOWN = 100


def check_free(host: str, port: int) -> None:
    """Raise `EngineError` if nothing new can listen there; it says who does, where this user may know."""
    error = _refusal(host, port)
    if error is None:
        return
    holder = listening_process(port)
    raise EngineError(
        f"port {port} on {host} cannot be used ({error}){f': {holder} listens there' if holder else ''}; "
        "choose another with --port, or stop what listens there"
    )


def next_free(host: str, start: int = FIRST_PORT, taken: Container[int] = ()) -> int:
    """The first port from `start` on that is free and not in `taken`; raises `EngineError` where none is."""
    for port in range(start, _LAST_PORT + 1):
        if port not in taken and not is_claimed(port) and _refusal(host, port) is None:
            return port
    raise EngineError(f"no port from {start} on is free on {host}; name another with --port")


def listening_process(port: int) -> str | None:
    """The process that listens on the port, as `process 12 (its command)`; None where that cannot be read."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    if not sockets:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(_target(link) in sockets for link in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return f"process {process.name} ({' '.join(words).strip()[:_SHOWN]})"
    return None


def _target(link: Path) -> str:
    with contextlib.suppress(OSError):
        return str(link.readlink())
    return ""


def _listening(port: int) -> Iterator[str]:
    for table in _TABLES:
        with contextlib.suppress(OSError):
            for row in table.read_text(encoding="ascii").splitlines()[1:]:
                _, local, _, state, *rest = row.split()
                if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                    yield rest[5]


def _refusal(host: str, port: int) -> str | None:
    """Why the port cannot be bound; None where it can."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or os.strerror(error.errno or 0)
    return None
