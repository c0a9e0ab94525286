"""The command line in this process, and what every end of it must be: a result, or one line of the package's own."""

import io
import re
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from medexam.cli import run_command
from medexam.errors import MedExamError

LONGEST_LINE, LONGEST_S = 2100, 60
"""Characters of a message, and what a command may take; one that reads a file without end never ends."""
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys, and no text may hold that is printed."""


class EndError(AssertionError):
    """A command ended as none may."""


def call(*words: object) -> str:
    """Run `medexam` with these words; gives what it prints, or raises `EndError` unless it ends as it should.

    The exit code is 0, 2 or 3, there is no traceback, an error is one line, and nothing printed commands a terminal.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    argv, sys.argv = sys.argv, ["medexam", *map(str, words)]
    code: Any = 0
    try:
        with redirect_stdout(out), redirect_stderr(err), refusing():
            run_command()
    except SystemExit as done:
        code = done.code or 0
    finally:
        sys.argv = argv
    printed, said = (stream.buffer.getvalue().decode("utf-8", "surrogateescape") for stream in (out, err))  # type: ignore[attr-defined]
    if code not in (0, 2, 3) or "Traceback" in said:
        raise EndError(f"exit code {code}\n{said}")
    if found := UNSEEN.search(printed + said):
        raise EndError(f"{found[0]!r} is printed\n{printed[-2000:]}{said[-2000:]}")
    if code == 2 and "Usage: " not in said:
        _, marked, message = said.rpartition("medexam: ")
        if not (marked or printed) or message.count("\n") > 1 or len(message) > LONGEST_LINE:
            raise EndError(f"no line, or more than one, says why\n{said}")
    return printed + said


@contextmanager
def refusing() -> Iterator[None]:
    """Let the package refuse, by an error of its own; raises `EndError` for anything else, and for no end."""

    def refuse(*_: object) -> None:
        raise EndError(f"it does not end in {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, refuse)
    signal.alarm(LONGEST_S)
    try:
        yield
    except MedExamError:
        pass
    except Exception:
        raise EndError(traceback.format_exc()) from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
