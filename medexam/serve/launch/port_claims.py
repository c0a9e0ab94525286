"""Claims on ports that are not open yet: a server loads for minutes before it listens.

Two servers that are planned meanwhile must not get one port: the second would end minutes later, and until then the
first's answers would pass for its own. A claim is a Unix socket in Linux's abstract namespace, which is as wide as a
machine's ports are and vanishes with its process. Elsewhere than on Linux nothing is claimed.
"""

import socket
import sys

from medexam.errors import EngineError


def claim_port(port: int) -> socket.socket:
    """Claim it until the socket is closed; raises `EngineError` where another process does."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if sys.platform == "linux":
            holder.bind(_name(port))
    except OSError:
        holder.close()
        raise EngineError(
            f"port {port} belongs to another server of medexam's, which may still load; choose another with --port"
        ) from None
    return holder


def is_claimed(port: int) -> bool:
    """Whether a process claims the port."""
    try:
        claim_port(port).close()
    except EngineError:
        return True
    return False


def _name(port: int) -> str:
    return f"\0medexam-port-{port}"
