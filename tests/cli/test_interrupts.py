"""Ctrl-C in commands that do not listen to it."""

import signal
import subprocess
import sys

import pytest

from waiting import BACKSTOP_S

HEARD = "medexam: interrupted: the same command continues from there\n"
DESTROYED = """
import signal, time
from medexam.cli.views.interrupts import interrupts_heard
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
with interrupts_heard():
    Interrupted()
    time.sleep(3600)
"""
IMPORTED = """
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from medexam.cli.script import run_script
run_script()
"""


def test_while_modules_are_imported_it_prints_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, timeout=BACKSTOP_S)
    assert (done.returncode, done.stderr) == (3, "medexam: interrupted\n")


def test_while_an_object_is_destroyed_it_is_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", DESTROYED], capture_output=True, text=True, timeout=BACKSTOP_S)
    assert (done.returncode, done.stderr) == (3, HEARD)


def test_a_command_ends_with_one_line(medexam, monkeypatch) -> None:
    def interrupt(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("medexam.cli.views.output.json.dumps", interrupt)
    assert medexam("schema") == (3, "", HEARD)


def test_an_exception_that_replaced_it_counts_as_it(medexam, monkeypatch) -> None:
    def interrupt(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise ValueError("as ctypes does") from error

    monkeypatch.setattr("medexam.cli.views.output.json.dumps", interrupt)
    assert medexam("schema") == (3, "", HEARD)


def test_between_the_steps_of_typer_it_is_one_line_too(monkeypatch, capsys) -> None:
    from medexam.cli.script import run_script

    monkeypatch.setattr("medexam.cli.main.run_command", lambda: sys.exit(130))
    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit, match="3"):
            run_script()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert capsys.readouterr().err == "medexam: interrupted\n"
