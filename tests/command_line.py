"""Fixtures of the command line in this process; a folder whose tests call it imports them in its `conftest.py`."""

import sys

import pytest

from medexam.cli import run_command

WITHOUT_MLFLOW = "MLflow is not installed: "
"""What a run says on a line of its own that is sent to no store."""


@pytest.fixture
def medexam(request, monkeypatch, capsys, tmp_path):
    """Run the command line; gives its exit code, standard output, and standard error without `WITHOUT_MLFLOW`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDEXAM_RUNS", raising=False)
    sends = "tracked" in request.fixturenames or "_untracked" not in request.fixturenames

    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["medexam", *map(str, arguments)])
            if not sends and arguments[:1] == ("run",):
                patch.setitem(sys.modules, "mlflow", None)
            try:
                run_command()
                code = 0
            except SystemExit as done:
                code = done.code or 0
        printed = capsys.readouterr()
        errors = (line for line in printed.err.splitlines(keepends=True) if WITHOUT_MLFLOW not in line)
        return code, printed.out, "".join(errors)

    return call


@pytest.fixture
def tracked() -> None:
    """For a test of what a run sends to MLflow."""


@pytest.fixture(autouse=True)
def _untracked() -> None:
    """Where it is imported, `medexam run` finds no MLflow, unless the test asks for `tracked`: sending takes long."""
