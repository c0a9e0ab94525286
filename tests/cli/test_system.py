"""What the system does to a command: Ctrl-C, a full disk, a limit of memory, pipes and folders instead of files."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec
from stored_runs import write_run
from waiting import BACKSTOP_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals, limits and pipes of POSIX")
HEARD = "medexam: interrupted: the same command continues from there\n"
IMPORTED = """
import runpy, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
runpy.run_module("medexam", run_name="__main__")
"""


def test_litellm_fetches_no_list_whoever_imports_it() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM_")}
    looked = "import os, medexam; print(*(name for name in os.environ if name.startswith('LITELLM_LOCAL_')))"
    done = subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"]


def test_ctrl_c_while_modules_are_imported_prints_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, timeout=BACKSTOP_S)
    assert (done.returncode, done.stderr) == (3, "medexam: interrupted\n")


@pytest.mark.parametrize("replaced", [False, True])
def test_ctrl_c_ends_a_command_with_one_line_also_where_another_error_replaced_it(medexam, monkeypatch, replaced):
    def interrupt(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            if replaced:
                raise ValueError("as ctypes does") from error
            raise

    monkeypatch.setattr("typer.echo", interrupt)
    assert medexam("schema") == (3, "", HEARD)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_output_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "medexam", "schema"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "No space left on device): make room" in done.stderr


@pytest.fixture
def runs(tmp_path) -> list[Path]:
    """Two runs of a control, the second of which is to be spoilt."""
    exams = load_exam_set(DatasetSpec(name="headqa_sample", limit=4))
    folders = [tmp_path / "runs" / f"demo-longest-en-{digit * 12}" for digit in "ab"]
    for folder in folders:
        write_run(folder, exams, {"kind": "longest"}, lambda *_: {"status": "answered", "answer": 1})
    return folders


@pytest.mark.parametrize("file", ["spec.json", "environment.json", "predictions.jsonl", "metrics.json"])
def test_a_file_of_a_run_that_is_none_is_said_at_once(medexam, runs, file) -> None:
    whole, spoilt = runs
    (spoilt / file).unlink(missing_ok=True)
    (spoilt / file).mkdir()
    for command in (["report"], ["show"], ["run", "--resume"], ["compare", whole]):
        code, _, err = medexam(*command, spoilt)
        assert "Traceback" not in err, (command, err)
        assert code in (0, 2), (command, err)
        if code == 2:
            assert err.splitlines()[-1].startswith("medexam: "), (command, err)
    code, out, err = medexam("list", "--json")
    listed = {entry["run_id"]: entry["status"] for entry in json.loads(out)}
    assert (code, "Traceback" in err, listed[whole.name]) == (0, False, "complete")
    assert listed.get(spoilt.name) in {None, "complete", "damaged"}


def test_a_damaged_run_is_listed_as_damaged_and_a_broken_shard_holds_nothing(medexam, runs) -> None:
    whole, spoilt = runs
    (spoilt / "metrics.json").write_text("{", encoding="utf-8")
    code, out, err = medexam("list")
    assert code == 0
    assert "damaged" in next(line for line in out.splitlines() if "bbbbbbbbbbbb" in line)
    assert f"warning: {spoilt.name} cannot be read" in err
    (whole / "parts").mkdir()
    (whole / "parts" / "w.jsonl").symlink_to("nowhere")
    assert medexam("report", whole)[0] == 0


def test_a_reader_that_goes_ends_no_command_and_a_closed_stream_loses_no_word(runs, tmp_path) -> None:
    command = f"{sys.executable} -m medexam"
    compared = f"compare {runs[0]} {runs[1]} --fail-if worse:1"
    for words, code in (("list --runs-dir runs", 0), ("schema", 0), (compared, 1)):
        line = f"{command} {words} | head -1 > first; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path)
        assert (done.stdout, "Broken" in done.stderr) == (f"{code}\n", False), (words, done.stderr)
    line = f"{command} rm nothing 2>&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, "no run nothing" in done.stdout) == (2, True)
