"""What the system refuses any command: memory, files, room or a home folder, in one line with the way out.

Errors of other kinds are defects, and this module knows none of them.
"""

import errno
import os
import re
from collections.abc import Mapping
from types import MappingProxyType

from medexam.errors import MedExamError
from medexam.plugins import added_names
from medexam.text import one_line

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_ASKING = ("run", "plan", "optimize", "index", "track")
"""Commands that load the libraries of models, vectors or MLflow, as those of packages may."""
LEAST_MEMORY = 1 << 30
"""Bytes of addresses without which the libraries of commands that ask models may end the process without a word."""
_NO_MEMORY = re.compile(
    "failed to map segment|can(no|')t allocate memory|can't start new thread|without (setting an )?exception"
)
_WAYS_OUT: Mapping[int, str] = MappingProxyType(
    {
        # What a user names may be looked for in many places, and none of them takes a name as long.
        errno.ENAMETOOLONG: "the name is too long; correct the path",
        **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit of open files (`ulimit -n`)"),
        **dict.fromkeys(
            (errno.EACCES, errno.EPERM, errno.EROFS), "make it readable and writable for this user, or name another"
        ),
        **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room, or name a place with more room"),
        **dict.fromkeys((errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO), "move it away, or name another"),
        **dict.fromkeys((errno.EIO, errno.ESTALE), "check the disk or the network drive"),
    }
)


def describe_system_fault(error: Exception) -> str | None:
    """Return the message of a `MedExamError`, or what the system refuses; None for a defect."""
    if isinstance(error, MedExamError):
        return one_line(str(error))
    if _lacks_memory(error):
        return (
            f"there is too little memory ({one_line(str(error)) or 'no detail'}): raise its limit (`ulimit -v`, or "
            "that of the job), or ask fewer questions at a time with --limit"
        )
    if isinstance(error, RuntimeError) and "home directory" in str(error):
        return "this user has no home folder: set HOME to a folder that can be written"
    if isinstance(error, RuntimeError) and "lost sys.stdin" in str(error):
        return "standard input is closed, so nobody can confirm: give --yes, or open it"
    if isinstance(error, OSError) and error.errno is not None and error.errno in _WAYS_OUT:
        reason = f" ({error.strerror})" if error.errno != errno.ENAMETOOLONG else ""
        return one_line(f"{error.filename or 'the output or a file'}{reason}: {_WAYS_OUT[error.errno]}")
    return None


def check_memory_limit(command: str) -> None:
    """Raise `MedExamError` if this process may have less than `LEAST_MEMORY`; with any limit, ask for less."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0] if resource else -1
    if resource is None or limit == resource.RLIM_INFINITY:
        return
    # A library that makes threads for each processor takes the memory of each at once, and ends the process without it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if limit < LEAST_MEMORY and command in (*_ASKING, *added_names("medexam.commands")):
        raise MedExamError(
            f"`medexam {command}` needs {LEAST_MEMORY >> 20:,} MiB of memory, and the limit is {limit >> 20:,} MiB: "
            "raise it (`ulimit -v`, or that of the job)"
        )


def _lacks_memory(error: Exception) -> bool:
    """Return whether the system gave no more memory, be it for a value, a library or a thread."""
    is_of_system = isinstance(error, ImportError | OSError | RuntimeError | SystemError)
    return isinstance(error, MemoryError) or (is_of_system and _NO_MEMORY.search(str(error).lower()) is not None)
