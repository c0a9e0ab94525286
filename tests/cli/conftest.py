"""The command line in this process."""

import sys

import pytest

from medexam.cli.main import main


@pytest.fixture
def medexam(monkeypatch, capsys, tmp_path):
    """Run the command line; gives its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDEXAM_RUNS", raising=False)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["medexam", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as done:
            code = done.code or 0
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call
