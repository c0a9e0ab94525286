"""Runs one command and ends it, with all that it started, once the process that asked for it is gone.

A server holds a GPU's memory until it ends, and the process that started it may be killed by a signal that it cannot
handle. So this script runs between them, in the server's process group, by the standard library alone:

    python guard.py PARENT_PID COMMAND...
"""

import contextlib
import os
import signal
import subprocess
import sys
import time

POLL_S = 0.5
GRACE_S = 20.0
"""Seconds that the server gets to stop by itself before its group is killed."""

if __name__ == "__main__":
    # Signals go to the whole group. The guard must outlive the server to report its exit code, so it ignores them, by a
    # handler: the server would inherit SIG_IGN, but not a handler.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    try:
        child = subprocess.Popen(sys.argv[2:])  # noqa: S603 - the command is the user's own
    except OSError as error:
        sys.stderr.write(f"{sys.argv[2]}: {error.strerror}\n")
        sys.exit(127)
    while child.poll() is None:
        # An orphan gets another parent, which shows it even if the old one's number is already another process's.
        if os.getppid() != int(sys.argv[1]):
            os.killpg(0, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(GRACE_S)
            os.killpg(0, signal.SIGKILL)
        time.sleep(POLL_S)
    sys.exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)
