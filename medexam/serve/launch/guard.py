"""Runs one command and ends it, with all that it started, once the process that asked for it is gone.

A server holds a GPU's memory until it ends, and the process that started it may be killed by a signal that it cannot
handle. So this script runs between them, in the server's process group: it passes on the server's exit code, leaves
signals to the server, and looks twice a second whether its parent still lives. It needs the standard library alone:

    python guard.py PARENT_PID COMMAND...
"""

import os
import signal
import subprocess
import sys
import time

POLL_S = 0.5
GRACE_S = 20.0
"""Seconds that the server gets to stop by itself before its group is killed."""


def main(parent: int, command: list[str]) -> int:
    """Run the command; its exit code, or 128 and the number of the signal that ended it."""
    # Signals go to the whole group. The guard must outlive the server to report its exit code, so it ignores them, by a
    # handler: the server would inherit SIG_IGN, but not a handler.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    try:
        child = subprocess.Popen(command)  # noqa: S603 - the command is the user's own
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    while child.poll() is None:
        # An orphan gets another parent, which shows it even if the old one's number is already another process's.
        if os.getppid() != parent:
            _end(child)
        time.sleep(POLL_S)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Ask the group to stop, then kill what is left of it, this process included."""
    os.killpg(0, signal.SIGTERM)
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        sys.stderr.write("killed: it would not stop\n")
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
