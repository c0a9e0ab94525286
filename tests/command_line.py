"""Fixtures of the command line in this process; a folder whose tests call it imports them in its `conftest.py`."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from medexam.cli import run_command
from medexam.plugins import added_names

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


@pytest.fixture
def spec(tmp_path):
    """`spec(replies, dataset=...)` writes spec.yaml and its replies, and gives its path; None leaves a part out."""

    def write(replies: object = "{Answer: 1}", **changes: object) -> Path:
        table = replies if isinstance(replies, dict) else {"*": replies}
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
        document = {
            "name": "trial",
            "dataset": {"name": "headqa_sample", "limit": 6},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": {"kind": "zero_shot"},
            **changes,
        }
        (path := tmp_path / "spec.yaml").write_text(
            yaml.safe_dump({key: value for key, value in document.items() if value is not None})
        )
        return path

    return write


@pytest.fixture
def run(medexam):
    """`run(SPEC, "--limit", 3)`: the documents of `medexam run --json`, which ends with `code`."""

    def call(*arguments: object, code: int = 0) -> list[dict]:
        ended, out, err = medexam("run", *arguments, "--json")
        assert ended == code, err
        return json.loads(out)

    return call


@pytest.fixture
def refused(medexam):
    """`refused("run", "nothere")`: the only line that a command prints which ends with 2."""

    def call(*arguments: object) -> str:
        code, out, err = medexam(*arguments)
        lines = [line for line in err.splitlines() if not line.startswith(("Preparing", "preparing"))]
        assert (code, out, len(lines)) == (2, "", 1), err
        assert lines[0].startswith("medexam: "), err
        assert "Traceback" not in err
        return lines[0]

    return call


@pytest.fixture
def install(tmp_path, monkeypatch):
    """`install(group, points, modules)`: a package of these entry points and modules is installed during the test."""

    def write(group, points, modules) -> None:
        metadata = tmp_path / "site" / "own-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
        lines = "\n".join(f"{name} = {target}" for name, target in points.items())
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
        for name, code in modules.items():
            (tmp_path / "site" / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path / "site")
        added_names.cache_clear()

    yield write
    added_names.cache_clear()
