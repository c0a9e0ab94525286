"""What the script `medexam` runs: the command line, and no traceback if Ctrl-C comes before or after it."""

import atexit
import gc
import signal
import sys

INTERRUPTED = 3
"""Exit code as of any command that Ctrl-C ends, whose constant takes long to import."""
_OF_TYPER = 130
"""Exit code of typer's own where Ctrl-C comes between its steps."""


def run_script() -> None:
    """Import the command line and run it."""
    # At its end Python searches all that is alive for cycles, which takes up to a second and frees what ends anyway.
    atexit.register(gc.freeze)
    try:
        from medexam.cli.main import run_command

        run_command()
    except (KeyboardInterrupt, SystemExit) as ended:
        if isinstance(ended, SystemExit) and ended.code != _OF_TYPER:
            raise
        sys.stderr.write("medexam: interrupted\n")
        sys.exit(INTERRUPTED)
    finally:
        # What is left is Python's own end, which would print a traceback: from here on Ctrl-C ends the process at once.
        if callable(signal.getsignal(signal.SIGINT)):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
