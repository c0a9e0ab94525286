"""Commands that are killed: forks of this process, which has imported what they import, or processes of their own.

A fork starts in milliseconds, so that a kill meets the command's own work; a process of its own meets its imports and
its end as well.
"""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OUT, ERR = "stdout.txt", "stderr.txt"
MEDEXAM = "from pathlib import Path; Path({begun!r}).touch(); from medexam.cli.script import run_script; run_script()"
"""What the script `medexam` does; before, it tells that Python itself has begun."""
_POLL_S = 0.005
_BEGINS_S = 30.0
"""What Python itself may take to begin; a kill before is none of the command."""

Hook = Callable[[], object]


@dataclass
class Child:
    """A command under way."""

    pid: int
    folder: Path
    """Where its two streams go."""
    status: int | None = None
    """Exit code, or the negative number of the signal that ended it; None until it was waited for."""

    def wait(self, seconds: float) -> bool:
        """Whether it ended within so many seconds."""
        deadline = time.monotonic() + seconds
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                return False
            else:
                time.sleep(_POLL_S)
        return True

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.status is None:
            os.kill(self.pid, number)

    def end(self) -> None:
        """Kill it, if it still runs, and forget it."""
        self.signal(signal.SIGKILL)
        self.wait(60)

    @property
    def said(self) -> str:
        """What it wrote on standard error; empty if it has not begun."""
        path = self.folder / ERR
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    @property
    def begun(self) -> bool:
        """Whether it is the command, and not yet a copy of this process."""
        return (self.folder / ERR).exists()


def start(words: Sequence[str], cwd: Path, streams: Path, *, forked: bool = True, before: Hook = bool) -> Child:
    """Begin `medexam WORDS` in the folder `cwd`; `before` is called in the child, before the command."""
    streams.mkdir(parents=True, exist_ok=True)
    for name in (OUT, ERR):
        (streams / name).unlink(missing_ok=True)  # what another command said before is none of this one's
    pid = fork(lambda: be_command(words, cwd, streams, before)) if forked else _spawn(words, cwd, streams, before)
    return Child(pid, streams)


def fork(function: Callable[[], int]) -> int:
    """The id of a copy of this process that calls the function and ends with what it returns."""
    sys.stdout.flush()
    sys.stderr.flush()
    # Until the copy has handlers of its own, a signal would meet those of the soak.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code = function()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def in_fork(function: Callable[[], Any]) -> Any:
    """What a function returns in a fork, as JSON has it: this process opens no stores and starts no threads."""
    reads, writes = os.pipe()

    def write() -> int:
        with os.fdopen(writes, "w") as stream:
            json.dump(function(), stream)
        return 0

    pid = fork(write)
    os.close(writes)
    with os.fdopen(reads) as stream:
        text = stream.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError("what was called in a fork failed there: see above")
    return json.loads(text)


def _spawn(words: Sequence[str], cwd: Path, streams: Path, before: Hook) -> int:
    begun = streams / "begun"
    begun.unlink(missing_ok=True)
    with (streams / OUT).open("wb") as out, (streams / ERR).open("wb") as err:
        # A session of its own: Ctrl-C on the soak is for the soak.
        process = subprocess.Popen(
            [sys.executable, "-c", MEDEXAM.format(begun=str(begun)), *words],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=lambda: (_hear_signals(), before()),
        )
    process.returncode = 0  # it is waited for by its id, not by this object
    deadline = time.monotonic() + _BEGINS_S
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return process.pid


def be_command(words: Sequence[str], cwd: Path, streams: Path, before: Hook = bool) -> int:
    """Be `medexam WORDS` in this process, which is a fork; its exit code."""
    os.setsid()
    for number, name in ((1, OUT), (2, ERR)):
        os.dup2(os.open(streams / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.chdir(cwd)
    sys.argv = ["medexam", *words]
    before()
    _hear_signals()  # not earlier: until here this is no command, and has nothing to say to Ctrl-C
    return call_main()


def _hear_signals() -> None:
    """As a command in a terminal does: a shell makes what it starts in the background ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def call_main() -> int:
    """The command line's exit code."""
    from medexam.cli.script import run_script

    try:
        run_script()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
