"""Which machine this is, and whether a process runs on it."""

import contextlib
import os
import socket
from pathlib import Path


def host_name() -> str:
    """The name of this machine."""
    return socket.gethostname()


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
