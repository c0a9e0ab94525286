"""The plug-in package of `examples/plugin`, installed and run as its reader would, and looked at when it is gone."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(pip_and_setuptools, tmp_path_factory):
    """A folder that holds the installed package."""
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(ROOT / "examples" / "plugin", folder / "source")
    command = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([sys.executable, *command, "--target", str(folder / "site"), str(source)], check=True)
    return folder


@pytest.fixture(scope="module")
def medexam(installed):
    """`medexam("run", ...)` -> its standard output, with the plug-in or without."""

    def call(*words, plugin=True):
        path = [str(ROOT), *([str(installed / "site")] if plugin else [])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "MEDEXAM_CACHE": str(installed / "cache")}
        command = [sys.executable, "-c", "from medexam.cli.main import main; main()", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=installed, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_every_part_runs_by_its_short_name_and_is_reported_without_its_code(medexam, installed):
    spec = str(installed / "source" / "toys.yaml")
    runs = json.loads(medexam("run", spec, "--runs-dir", "runs", "--json"))
    assert [run["metrics"]["accuracy"] for run in runs] == [1.0, 1.0]
    assert [run["metrics"]["own"]["brief"]["n"] for run in runs] == [8, 8]
    assert runs[0]["program"] == "SecondThought-guided"
    lines = (Path(runs[1]["run_dir"]) / "predictions.jsonl").read_text().splitlines()
    assert {json.loads(line)["passages"][0]["id"] for line in lines} == {"2"}, "the glossary found them"
    assert json.loads(lines[0])["model"] == "echo"
    gone = json.loads(medexam("report", *(run["run_dir"] for run in runs), "--json", plugin=False))
    assert [run["metrics"] for run in gone] == [run["metrics"] for run in runs]
    assert gone[0]["program"] == "SecondThought-guided"
    assert any("metric brief is shown as it was scored" in warning for warning in gone[0]["warnings"])
    assert "Count the words of the replies" in " ".join(medexam("--help").split())
    (line,) = (line for line in medexam("lengths", runs[1]["run_dir"]).splitlines() if line.split()[-2:-1] == ["8"])
    assert int(line.split()[-1]) == sum(len(json.loads(line)["reply"].split()) for line in lines)
