"""Where a command of this package listens."""

import socket

from medexam.errors import SpecError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Addresses that only this machine reaches."""


def check_port(host: str, port: int) -> None:
    """Raise `SpecError` when nothing can listen there."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise SpecError(f"cannot listen on {host}:{port} ({error.strerror}); choose another with --port") from None
