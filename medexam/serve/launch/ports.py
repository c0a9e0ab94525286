"""Ports of this machine: which is free, and whose server may use it.

A server loads for minutes before it listens, and two that are planned meanwhile must not get one port. So a port is
claimed when it is chosen, by a Unix socket in Linux's abstract namespace, which is as wide as a machine's ports are and
vanishes with this process. Elsewhere than on Linux nothing is claimed.
"""

import os
import socket
import sys

from medexam.errors import EngineError

FIRST_PORT = 8000
"""Where the search for a free port begins."""
_LAST_PORT = 65_535
_claims: set[int] = set()
"""Ports that this process took; their sockets stay open."""


def take_port(host: str, port: int) -> None:
    """Claim a port; raises `EngineError` if nothing new can listen there, or another server is to."""
    if (fault := _refusal(host, port)) is not None:
        raise EngineError(
            f"port {port} on {host} cannot be used ({fault}); choose another with --port, or stop what listens there"
        )
    if port not in _claims and not _claim(port):
        raise EngineError(
            f"port {port} belongs to another server that medexam started, which may still be loading; choose another "
            "with --port"
        )


def next_free(host: str, start: int = FIRST_PORT) -> int:
    """Find the first free port from `start` on and claim it; raises `EngineError` if none is free."""
    for port in range(start, _LAST_PORT + 1):
        if port not in _claims and _refusal(host, port) is None and _claim(port):
            return port
    raise EngineError(f"no port from {start} on is free on {host}; name another with --port")


def _claim(port: int) -> bool:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if sys.platform == "linux":
            holder.bind(f"\0medexam-port-{port}")
    except OSError:
        holder.close()
        return False
    holder.detach()
    _claims.add(port)
    return True


def _refusal(host: str, port: int) -> str | None:
    """Say why the port cannot be bound; None if it can."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port whose last connections only wait for their end counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or os.strerror(error.errno or 0)
    return None
