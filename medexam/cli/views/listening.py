"""Where a command of this package listens: whether it can, and who reaches it there."""

import ipaddress
import socket

from medexam.errors import SpecError


def is_local(host: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_port(host: str, port: int) -> None:
    """Raise `SpecError` when nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SpecError(f"cannot listen on {host}:{port} ({error.strerror}); choose another with --port") from None
