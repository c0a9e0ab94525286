"""The command line in this process, and what every end of it must be."""

import io
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from medexam.cli import run_command
from medexam.errors import MedExamError

LONGEST_LINE = 2100
"""Characters of a message."""


class EndError(AssertionError):
    """A command ended as none may; `kind` tells one defect from another."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}\n{detail}")
        self.kind = kind


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def call(*words: object) -> Ended:
    """Run `medexam` with these words, on streams as a terminal has them; raises `EndError` unless it ends as it should.

    The exit code is 0, 2 or 3, there is no traceback, and an error is one line.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    argv, sys.argv = sys.argv, ["medexam", *map(str, words)]
    code: Any = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            run_command()
    except SystemExit as done:
        code = done.code or 0
    except BaseException as error:
        raise EndError(_kind(error), traceback.format_exc()) from None
    finally:
        sys.argv = argv
    ended = Ended(code, *(stream.buffer.getvalue().decode("utf-8", "surrogateescape") for stream in (out, err)))  # type: ignore[attr-defined]
    _check(ended)
    return ended


@contextmanager
def refusing() -> Iterator[None]:
    """Let the package refuse, by an error of its own; raises `EndError` for anything else."""
    try:
        yield
    except MedExamError:
        pass
    except BaseException as error:
        raise EndError(_kind(error), traceback.format_exc()) from None


def _check(ended: Ended) -> None:
    if ended.code not in (0, 2, 3) or "Traceback" in ended.err:
        raise EndError(f"exit code {ended.code}", ended.err)
    if ended.code == 2 and "Usage: " not in ended.err:
        _, found, message = ended.err.rpartition("medexam: ")
        if not found and not ended.out:
            raise EndError("exit code 2 without a word", ended.err)
        if message.count("\n") > 1 or len(message) > LONGEST_LINE:
            raise EndError(f"a message of {len(message)} characters: {message[:80]}", message)


def _kind(error: BaseException) -> str:
    """The error with the last place in the package that it came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/medexam/" in frame.filename]
    where = f"{frames[-1].filename.rpartition('/medexam/')[2]}:{frames[-1].lineno}" if frames else "outside"
    return f"{type(error).__name__} at {where}"
