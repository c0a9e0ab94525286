"""The plug-in package of `examples/plugin`, installed and run as its reader would, and looked at when it is gone."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = """
import contextlib, io, json, sys
sys.modules["mlflow"] = None
from medexam.cli import run_command

for line in sys.stdin:
    sys.argv, code, printed = ["medexam", *json.loads(line)], 0, io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            run_command()
        except SystemExit as ended:
            code = ended.code
    print(json.dumps([code, printed.getvalue()]), flush=True)
"""


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
    """`medexam("run", ...)` -> its standard output, with the plug-in or without; each has one process."""
    with ExitStack() as stack:

        @cache
        def start(plugin: bool) -> subprocess.Popen[str]:
            path = [str(ROOT), *([str(installed / "site")] if plugin else [])]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "MEDEXAM_CACHE": str(installed / "cache")}
            return stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", COMMANDS],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=installed,
                    env=environment,
                )
            )

        def call(*words: str, plugin: bool = True) -> str:
            process = start(plugin)
            process.stdin.write(json.dumps(words) + "\n")
            process.stdin.flush()
            code, printed = json.loads(process.stdout.readline())
            assert not code, printed
            return printed

        yield call


def test_every_part_runs_by_its_short_name_and_is_reported_without_its_code(medexam, installed):
    spec = str(installed / "source" / "toys.yaml")
    runs = json.loads(medexam("run", spec, "--runs-dir", "runs", "--json"))
    assert [run["metrics"]["measures"]["accuracy"]["value"] for run in runs] == [1.0, 1.0]
    assert [run["metrics"]["own"]["brief"]["n"] for run in runs] == [8, 8]
    assert runs[0]["program"] == "second_thought-guided"
    lines = (Path(runs[1]["run_dir"]) / "predictions.jsonl").read_text().splitlines()
    assert {json.loads(line)["passages"][0]["id"] for line in lines} == {"2"}, "the glossary found them"
    assert json.loads(lines[0])["calls"][-1]["model"] == "echo"
    gone = json.loads(medexam("report", *(run["run_dir"] for run in runs), "--json", plugin=False))
    assert [run["metrics"] for run in gone] == [run["metrics"] for run in runs]
    assert gone[0]["program"] == "second_thought-guided"
    assert "Count the words of the replies" in " ".join(medexam("--help").split())
    (line,) = (line for line in medexam("lengths", runs[1]["run_dir"]).splitlines() if line.split()[-2:-1] == ["8"])
    assert int(line.split()[-1]) == 2 * len(lines), "{Answer: 1}, and so on"


def test_a_section_of_a_comparison_brings_its_flag(medexam, installed):
    spec = str(installed / "source" / "toys.yaml")
    first, other = (run["run_dir"] for run in json.loads(medexam("run", spec, "--runs-dir", "compared", "--json")))
    means = json.loads(medexam("compare", first, other, "--reply-words", "--json"))["reply_words"]
    assert list(means.values())[1] == 2, "{Answer: 1}, and so on"
    assert "Words a reply: " in " ".join(medexam("compare", first, other, "--reply-words").split())
    assert "--reply-words" in medexam("compare", "--help")
    assert "--reply-words" not in medexam("compare", "--help", plugin=False)


def test_a_data_set_comes_with_its_reader_and_experiment_and_its_runs_are_read_without_them(medexam):
    (run,) = json.loads(medexam("run", "colours_quick", "--runs-dir", "colours", "--json"))
    assert (run["metrics"]["n"], run["metrics"]["measures"]["accuracy"]["value"]) == (3, 2 / 3)
    assert "colours" in [entry["name"] for entry in json.loads(medexam("data", "list", "--json"))]
    (gone,) = json.loads(medexam("report", run["run_dir"], "--json", plugin=False))
    assert gone["metrics"] == run["metrics"]


def test_a_kind_of_program_has_keys_of_its_own_and_its_runs_are_read_without_it(medexam):
    words = ("headqa_sample", "--limit", "6", "--set", "program.kind=nth", "--set", "program.place=2")
    (run,) = json.loads(medexam("run", *words, "--runs-dir", "kinds", "--json"))
    lines = (Path(run["run_dir"]) / "predictions.jsonl").read_text().splitlines()
    assert (run["program"], {json.loads(line)["answer"] for line in lines}) == ("nth-2", {2})
    assert "place" in medexam("schema", "nth")
    (gone,) = json.loads(medexam("report", run["run_dir"], "--json", plugin=False))
    assert (gone["program"], gone["metrics"]) == ("nth", run["metrics"])
