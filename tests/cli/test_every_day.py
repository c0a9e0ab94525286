"""What a user meets every day: what is found without being named, what is shown first, and what is refused."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from medexam.cli.progress.pace import Pace
from medexam.cli.progress.run import TerminalProgress
from medexam.experiments import RunFolder
from medexam.specs.schema import complete_override
from medexam.specs.validation import CLOSEST, MOST_CHOICES


@pytest.fixture
def run_dir(medexam, tmp_path):
    (tmp_path / "replies.yaml").write_text("'*': '{Answer: 1}'\n")
    model = f"model={{engine: scripted, path: {tmp_path}/replies.yaml}}"
    code, out, said = medexam("run", "headqa_sample", "--limit", 6, "--set", model, "--json")
    assert code == 0, said
    return json.loads(out)[0]["run_dir"]


def test_report_and_compare_find_the_runs_that_list_finds(medexam, run_dir) -> None:
    assert "zero_shot" in medexam("report")[1]
    medexam("run", "headqa_sample", "--limit", 6, "--program", "longest")
    code, out, _ = medexam("compare")
    assert (code, "longest" in out) == (0, True)


def test_show_begins_with_the_score_and_ends_with_the_origin(medexam, run_dir) -> None:
    lines = medexam("show", run_dir)[1].splitlines()
    score = next(at for at in range(len(lines)) if "of 6 questions right" in " ".join(lines[at : at + 2]))
    digest = next(number for number, line in enumerate(lines) if "spec digest" in line)
    assert score <= 4 < digest


def test_show_of_a_question_has_the_prompt_and_a_wrong_key_the_nearest(medexam, run_dir) -> None:
    keys = json.loads(Path(run_dir, "spec.json").read_text())["questions"]
    code, out, _ = medexam("show", run_dir, keys[0])
    assert code == 0
    assert "Provide the answer in the following JSON format" in out
    assert out.index("user:") < out.index("reply: {Answer: 1}")
    code, _, said = medexam("show", run_dir, f"{keys[0]}9")
    assert (code, keys[0] in said) == (2, True)


def test_a_run_of_a_newer_schema_is_refused_and_its_files_stay(medexam, run_dir) -> None:
    path = Path(run_dir, "spec.json")
    text = json.dumps({**json.loads(path.read_text()), "schema": 99})
    path.write_text(text)
    code, _, said = medexam("show", run_dir)
    assert (code, "is of schema 99" in said, "update medexam" in said) == (2, True, True)
    assert path.read_text() == text


def test_a_run_that_is_asked_now_is_said_to_run(medexam, run_dir, tmp_path) -> None:
    folder = RunFolder(tmp_path / "runs" / run_dir.rpartition("/")[2])
    lines = (folder.path / "predictions.jsonl").read_text().splitlines(keepends=True)
    (folder.path / "predictions.jsonl").write_text("".join(lines[:4]))
    with folder.locked():
        for command in ("show", "report"):
            _, out, said = medexam(command, run_dir)
            assert "unning: 4 of 6 questions answered" in out + said
            assert "--resume" not in out + said
            assert "warning" not in said
        (folder.path / "metrics.json").unlink()
        _, out, said = medexam("list")
        assert ("4 of 6, running" in out, "damaged" in out + said) == (True, False)


def test_an_unknown_key_of_many_names_the_three_nearest(medexam) -> None:
    code, _, said = medexam("run", "headqa_sample", "--set", "model.temprature=1")
    assert (code, "did you mean 'temperature'?" in said) == (2, True)
    assert "the nearest of " in said
    listed = said.partition("are ")[2].partition(";")[0]
    assert len(listed.split(", ")) == CLOSEST < MOST_CHOICES


def test_an_unknown_engine_is_guessed(medexam) -> None:
    assert "did you mean vllm?" in medexam("run", "headqa_sample", "--set", "model.engine=vlm")[2]


def test_help_groups_the_commands(medexam) -> None:
    out = medexam("--help")[1]
    places = [out.index(f" {title} ") for title in ("Ask", "Look", "Compare", "Your own", "Serve", "Papers")]
    assert min(places) > 0
    assert " More " not in out


def test_progress_says_which_cell_of_how_many_and_the_whole_time_left() -> None:
    cells = [SimpleNamespace(run_id=f"r{n}", pending=list(range(10)), later=0, label=f"way {n}") for n in range(3)]
    for cell in cells:
        cell.total, cell.done, cell.right, cell.is_right = 10, 0, 0, None
    with TerminalProgress(cells) as progress:
        progress.cell_starts(cells[0])
        progress.cell_starts(cells[2])
        assert progress._label == "cell 2 of 3: way 2"
        assert progress._pace is not None
        assert progress._pace.later == 10
    pace = Pace(None, total=10, progress=0, right=0, later=10)
    pace.describe(100.0)
    pace.progress += 5
    assert "all cells: 0:00:15 left" in pace.describe(105.0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")
def test_ctrl_c_of_a_page_says_nothing_of_runs(tmp_path) -> None:
    watch = [sys.executable, "-c", "import sys; from medexam.cli.script import run_script; run_script()", "watch"]
    with subprocess.Popen([*watch, "--port", "0"], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as page:
        assert page.stderr is not None
        page.stderr.readline()
        page.send_signal(signal.SIGINT)
        said = page.stderr.read()
    assert "same command continues" not in said


def test_doctor_without_a_server_says_what_this_machine_has(medexam, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-shown")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    code, out, said = medexam("doctor", "--json")
    assert code == 0, said
    machine = json.loads(out)["machine"]
    assert {
        "memory",
        "GPU",
        "GPU driver",
        "keys",
        "data sets",
        "versions",
        "network",
        "disk of the runs",
        "extra local",
    } <= set(machine)
    assert machine["keys"]["here"] == "OPENAI_API_KEY"
    assert "headqa_study" in machine["data sets"]["here"]
    assert "not-to-be-shown" not in out + medexam("doctor")[1]


@pytest.mark.parametrize(
    ("beginning", "words"),
    [
        ("dataset.la", {"dataset.language="}),
        ("da", {"dataset."}),
        ("program.answer_format=g", {"program.answer_format=guided"}),
        ("program.kind=zero", {"program.kind=zero_shot"}),
        ("dataset.as_published=", {"dataset.as_published=true", "dataset.as_published=false"}),
        ("nonsense.x", set()),
    ],
)
def test_set_completes_keys_and_values_of_a_spec(beginning, words) -> None:
    assert set(complete_override(beginning)) == words
