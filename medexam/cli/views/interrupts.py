"""Ctrl-C in a command that does not listen to it itself: one line and an exit code, wherever it arrives."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from medexam.cli.options import INCOMPLETE
from medexam.errors import MedExamError

SERVING = ("ui", "serve")
"""Commands that Ctrl-C is the usual end of, as of any with `--watch`, and that keep nothing."""
AGAIN_S = 0.05
"""Seconds after which a lost Ctrl-C is sent again."""


@contextmanager
def interrupts_heard() -> Iterator[None]:
    """Make of Ctrl-C that ends the block one line on standard error and an exit code: `INCOMPLETE`, or 0 if it served.

    What is raised after Ctrl-C counts as Ctrl-C, unless it is an error of this package: libraries in C replace the
    `KeyboardInterrupt` by an exception of their own. Python only prints what is raised while an object is destroyed:
    there Ctrl-C would be lost, and is sent to the main thread again.
    """
    has_signal = False

    def hear(_number: int, _frame: FrameType | None) -> None:
        nonlocal has_signal
        has_signal = True
        raise KeyboardInterrupt

    with _handled_by(hear):
        try:
            yield
        except MedExamError:
            raise
        except (Exception, KeyboardInterrupt) as error:
            if not has_signal and not isinstance(error, KeyboardInterrupt):
                raise
            command, *words = (*sys.argv[1:], "")
            served = command in SERVING or any(word.partition("=")[0] == "--watch" for word in words)
            kept = "" if served else ": the same command continues from there"
            sys.stderr.write(f"medexam: {'ended' if served else 'interrupted'}{kept}\n")
            sys.exit(0 if served else INCOMPLETE)


@contextmanager
def _handled_by(hear: Any) -> Iterator[None]:
    """Have `hear` handle Ctrl-C, unless it is ignored, as under `nohup`, and lose none of it."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    old_handler = signal.getsignal(signal.SIGINT) if in_main_thread else None
    old_hook = sys.unraisablehook

    def send_again(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            old_hook(unraisable)
            return
        # Not at once: it would be raised within the same destructor, and lost again.
        timer = threading.Timer(AGAIN_S, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.daemon = True
        timer.start()

    if callable(old_handler):
        signal.signal(signal.SIGINT, hear)
    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = old_hook
        if callable(old_handler):
            signal.signal(signal.SIGINT, old_handler)
