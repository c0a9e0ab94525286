"""Ports of this machine: which is free, and whose server may use it.

A server loads for minutes before it listens. Two servers that are planned meanwhile must not get one port: the second
would end minutes later, and until then the first's answers would pass for its own. So a port is claimed when it is
chosen, by a Unix socket in Linux's abstract namespace, which is as wide as a machine's ports are and vanishes with its
process. Elsewhere than on Linux nothing is claimed.
"""

import os
import socket
import sys

from medexam.errors import EngineError

FIRST_PORT = 8000
"""Where the search for a free port begins."""
_LAST_PORT = 65_535
_claims: dict[int, int] = {}
"""Ports that `next_free` returned -> the descriptors of their claims, until their servers take these over."""


def claim_port(port: int) -> socket.socket:
    """Claim it until the socket is closed; raises `EngineError` if another server has claimed it."""
    descriptor = _claims.pop(port, None)
    claim = _try_claim(port) if descriptor is None else socket.socket(fileno=descriptor)
    if claim is None:
        raise EngineError(
            f"port {port} belongs to another server that medexam started, which may still be loading; choose another "
            "with --port"
        )
    return claim


def check_free(host: str, port: int) -> None:
    """Raise `EngineError` if nothing new can listen there."""
    error = _refusal(host, port)
    if error is None:
        return
    raise EngineError(
        f"port {port} on {host} cannot be used ({error}); choose another with --port, or stop what listens there"
    )


def next_free(host: str, start: int = FIRST_PORT) -> int:
    """Find the first free port from `start` on, claimed for this process; raises `EngineError` if none is free."""
    for port in range(start, _LAST_PORT + 1):
        if port in _claims or _refusal(host, port) is not None:
            continue
        # Claimed now and not when the server starts: another run that looks in between would find the port free too.
        if (claim := _try_claim(port)) is not None:
            _claims[port] = claim.detach()
            return port
    raise EngineError(f"no port from {start} on is free on {host}; name another with --port")


def _try_claim(port: int) -> socket.socket | None:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if sys.platform == "linux":
            holder.bind(f"\0medexam-port-{port}")
    except OSError:
        holder.close()
        return None
    return holder


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
