"""Whose code runs: that of a spec, when it is run or continued; a command that shows runs imports none."""

import shutil
from pathlib import Path

import pytest

COMMANDS = ["show", "report", "list", "compare", "track", "export"]


@pytest.fixture
def made(run, spec, tmp_path) -> Path:
    """A run on a benchmark and with a metric of the user's own, as another process finds it: importing them is seen."""
    (tmp_path / "bench.py").write_text(
        "from medexam.measures import find_benchmark\nfrom medexam.specs import DatasetSpec\n"
        "class Mine(type(find_benchmark(DatasetSpec()))):\n"
        "    def __init__(self):\n        super().__init__('headqa_sample')\n"
        "    def load(self, spec):\n        return super().load(DatasetSpec(name='headqa_sample', limit=4))\n"
    )
    (tmp_path / "metric.py").write_text("def metric(question, gold, prediction):\n    return 1\n")
    (document,) = run(
        spec(dataset={"name": "./bench.py:Mine"}, program={"kind": "longest"}, metrics=["./metric.py:metric"])
    )
    folder = tmp_path / document["run_dir"]
    record = (folder / "spec.json").read_text()
    for name in ("bench", "metric"):
        marking = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
        (tmp_path / f"marking_{name}.py").write_text(marking + (tmp_path / f"{name}.py").read_text())
        record = record.replace(f"{name}.py", f"marking_{name}.py")
    (folder / "spec.json").write_text(record)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_shows_runs_imports_no_code(medexam, made, tmp_path, command) -> None:
    (made / "metrics.json").unlink(missing_ok=True)
    words = {
        "list": ["list"],
        "compare": ["compare", made, shutil.copytree(made, tmp_path / "other")],
        "export": ["export", made, "--to", "lm_eval"],
    }
    code, _, err = medexam(*words.get(command, [command, made]))
    assert code in (0, 2), err
    assert not (tmp_path / "ran").exists()


def test_rescore_runs_the_code_that_a_run_names(medexam, made, tmp_path) -> None:
    (made / "metrics.json").unlink()
    assert "scores its questions itself" in medexam("report", made)[2]
    code, out, err = medexam("report", made, "--rescore", "--json")
    assert (code, (tmp_path / "ran").exists(), '"metric": {' in out) == (0, True, True), err
