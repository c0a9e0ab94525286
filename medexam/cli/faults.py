"""What ends any command in one line: wrong usage, Ctrl-C, and what the system refuses, with the way out.

Errors of other kinds are defects, and this module knows none of them.
"""

import errno
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from medexam.cli.options import INCOMPLETE
from medexam.errors import MedExamError, SpecError
from medexam.text import one_line

SERVING = ("ui", "serve")
"""Commands that Ctrl-C is the usual end of, as of any with `--watch`, and that keep nothing."""


@contextmanager
def interrupts_heard() -> Iterator[None]:
    """Make of Ctrl-C that ends the block one line on standard error and an exit code: `INCOMPLETE`, or 0 if it served.

    What is raised after Ctrl-C counts as Ctrl-C, unless it is an error of this package: libraries in C replace the
    `KeyboardInterrupt` by an exception of their own. Where Ctrl-C is ignored, as under `nohup`, it stays so.
    """
    has_signal = False

    def hear(_number: int, _frame: FrameType | None) -> None:
        nonlocal has_signal
        has_signal = True
        raise KeyboardInterrupt

    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if in_main_thread else None
    if callable(handler):
        signal.signal(signal.SIGINT, hear)
    try:
        yield
    except MedExamError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        if not has_signal and not isinstance(error, KeyboardInterrupt):
            raise
        command, *words = (*sys.argv[1:], "")
        is_server = command in SERVING or any(word.partition("=")[0] == "--watch" for word in words)
        sys.stderr.write(f"medexam: {'ended' if is_server else 'interrupted: the same command continues from there'}\n")
        sys.exit(0 if is_server else INCOMPLETE)
    finally:
        if callable(handler):
            signal.signal(signal.SIGINT, handler)


_MEANT = {
    "dry_run": "`medexam plan` shows what would run",
    **dict.fromkeys(
        ("max_model_len", "tensor_parallel_size", "served_model_name", "max_num_seqs", "gpu_memory_utilization"),
        "vLLM's own flags stand after `--`, as in `medexam serve MODEL -- --max-model-len 8192`",
    ),
}
"""Options of other tools -> what does the same here."""


@contextmanager
def usage_in_one_line() -> Iterator[None]:
    """Raise `SpecError` for a usage error of typer's parser, whose own form is a box of several lines."""
    try:
        yield
    except Exception as error:
        # Typer brings a parser of its own since 0.20 and does not export its errors.
        names = {kind.__name__ for kind in type(error).__mro__}
        if "UsageError" not in names or "NoArgsIsHelpError" in names:
            raise
        raise SpecError(describe_usage(error)) from None


def describe_usage(error: Any) -> str:
    """Describe as `no such option --engine: write --set model.engine=...; medexam run --help lists the options`."""
    message = " ".join(error.format_message().split()).rstrip(".?")
    message = f"{message[0].lower()}{message[1:]}".replace("option: ", "option ")
    # Typer hands on what pydantic says of a value.
    message = message.replace("Value error, ", "").partition(", unable to parse")[0]
    if command := re.fullmatch(r"no such command '(.+)'", message):
        from medexam.specs.loading import library_files

        word = command[1]
        if word in library_files() or (Path(word).suffix in (".yaml", ".yml") and Path(word).is_file()):
            return f"{message}: write `medexam run {word}`"
    option = getattr(error, "option_name", "").lstrip("-").replace("-", "_")
    if message.startswith("no such option") and option:
        from medexam.specs.base import find_places
        from medexam.specs.experiment import ExperimentSpec

        if places := find_places(ExperimentSpec, option):
            message += f": write --set {places[0]}=..."
        elif option in _MEANT:
            message += f": {_MEANT[option]}"
    if message.startswith("invalid value for"):
        return message
    context = getattr(error, "ctx", None)
    return f"{message}; `{context.command_path} --help` lists the choices" if context is not None else message


_WAYS_OUT: Mapping[int, str] = {
    # What a user names may be looked for in many places, and none of them takes a name as long.
    errno.ENAMETOOLONG: "the name is too long; correct the path",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit of open files (`ulimit -n`)"),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS), "make it readable and writable for this user, or name another"
    ),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room, or name a place with more room"),
    **dict.fromkeys(
        (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.EEXIST), "move it away, or name another"
    ),
    **dict.fromkeys((errno.EIO, errno.ESTALE), "check the disk or the network drive"),
}


def describe_system_fault(error: Exception) -> str | None:
    """Return the message of a `MedExamError`, or what the system refuses; None for a defect."""
    if isinstance(error, MedExamError):
        return one_line(str(error))
    if isinstance(error, MemoryError):
        return "there is too little memory: raise its limit (`ulimit -v`, or that of the job), or ask fewer questions"
    if isinstance(error, RuntimeError) and "home directory" in str(error):
        return "this user has no home folder: set HOME to a folder that can be written"
    if isinstance(error, RuntimeError) and "lost sys.stdin" in str(error):
        return "standard input is closed, so nobody can confirm: give --yes, or open it"
    if isinstance(error, OSError) and (way_out := _WAYS_OUT.get(error.errno or 0)):
        reason = f" ({error.strerror})" if error.errno != errno.ENAMETOOLONG else ""
        return one_line(f"{error.filename or 'the output or a file'}{reason}: {way_out}")
    return None
