"""A folder, a pipe or a socket where a file of a run should be: one line names it, and nothing waits for it."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from stored_runs import write_run

FILES = ("spec.json", "environment.json", "predictions.jsonl", "metrics.json", "made_from.json", "predictions.parquet")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes with names")


@pytest.fixture
def runs(medexam, tmp_path) -> list[Path]:
    """Two runs of a control, the second of which is to be spoilt."""
    from medexam.datasets import load_exam_set
    from medexam.specs import DatasetSpec

    exams = load_exam_set(DatasetSpec(name="headqa_sample", limit=4))
    folders = [tmp_path / "runs" / f"demo-longest-en-{digit * 12}" for digit in "ab"]
    for folder in folders:
        write_run(folder, exams, {"kind": "longest"}, lambda *_: {"status": "answered", "answer": 1})
    return folders


def spoil(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    match kind:
        case "folder":
            path.mkdir()
            (path / "inside").touch()
        case "pipe":
            os.mkfifo(path)
        case "socket":
            # A socket's address is shorter than most paths of tests.
            place = Path.cwd()
            os.chdir(path.parent)
            try:
                socket.socket(socket.AF_UNIX).bind(path.name)
            finally:
                os.chdir(place)


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("kind", ["folder", "pipe", "socket"])
@pytest.mark.parametrize("file", FILES)
def test_every_command_says_so_at_once(medexam, runs, file, kind) -> None:
    whole, spoilt = runs
    spoil(spoilt / file, kind)
    for command in (
        ["report"],
        ["show"],
        ["run", "--resume"],
        ["track"],
        ["compare", whole],
        ["export", "--to", "lm_eval"],
    ):
        code, _, err = medexam(*command, spoilt)
        assert "Traceback" not in err, (command, err)
        assert code in (0, 2), (command, err)
        if code == 2:
            assert err.splitlines()[-1].startswith("medexam: "), (command, err)
    code, out, err = medexam("list", "--json")
    assert (code, "Traceback" in err) == (0, False)
    listed = {entry["run_id"]: entry["status"] for entry in json.loads(out)}
    assert listed[whole.name] == "complete"
    assert listed.get(spoilt.name) in {None, "complete", "damaged"}


def test_a_damaged_run_is_listed_as_damaged(medexam, runs) -> None:
    _, spoilt = runs
    (spoilt / "metrics.json").write_text("{", encoding="utf-8")
    code, out, err = medexam("list")
    assert code == 0
    assert "damaged" in next(line for line in out.splitlines() if "bbbbbbbbbbbb" in line)
    assert f"warning: {spoilt.name} cannot be read" in err


@pytest.mark.parametrize(
    "words",
    [
        "run pipe.yaml",
        "plan headqa_sample --set model.engine=scripted --set model.path=pipe.yaml",
        "run headqa_sample --limit 1 --set model.engine=scripted --set model.path=pipe.yaml",
        "data check headqa_v2 --path pipe.parquet",
        "data build --booklet pipe.pdf --key pipe.csv --out built --name Cuaderno_2020_0_B",
        "plan headqa_sample --set program.prompt=./pipe.yaml",
        "plan headqa_sample --set dataset.only=pipe.csv",
    ],
)
def test_a_pipe_that_a_user_names_is_refused_and_not_waited_for(medexam, tmp_path, words) -> None:
    for ending in ("yaml", "parquet", "pdf", "csv"):
        os.mkfifo(tmp_path / f"pipe.{ending}")
    code, _, err = medexam(*words.split())
    assert code == 2
    assert "is a pipe and not a file" in err or "is not there" in err, err


def test_a_shard_that_leads_nowhere_holds_nothing(medexam, runs) -> None:
    (runs[0] / "parts").mkdir()
    (runs[0] / "parts" / "w.jsonl").symlink_to("nowhere")
    code, _, err = medexam("report", runs[0])
    assert code == 0, err
