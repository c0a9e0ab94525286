"""Ctrl-C in a command that does not listen to it itself: one line and an exit code, wherever it arrives."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from medexam.cli.options import INCOMPLETE
from medexam.errors import MedExamError

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
