"""Whose code runs: that of runs that this installation made, wherever they lie now, and of no others unless asked."""

import json
import shutil
from pathlib import Path

import pytest

METRIC = "def metric(question, gold, prediction):\n    return 1\n"


def marking(folder: Path) -> str:
    """A metric that leaves a file in `folder` when it is imported."""
    return f"from pathlib import Path\nPath({str(folder / 'ran')!r}).touch()\n{METRIC}"


@pytest.fixture
def made(run, spec, tmp_path) -> Path:
    """A run with a metric of the user's own, which is to be scored again."""
    (tmp_path / "good.py").write_text(marking(tmp_path))
    dataset = {"name": "headqa_sample", "limit": 2}
    (document,) = run(spec(dataset=dataset, program={"kind": "longest"}, metrics=["./good.py:metric"]))
    (tmp_path / "ran").unlink()
    folder = tmp_path / document["run_dir"]
    (folder / "report.md").unlink()
    return folder


@pytest.fixture
def evil(made, tmp_path) -> Path:
    """The run as somebody else sends it: unpacked by the user, and naming code by a relative name."""
    folder = tmp_path / "unpacked" / made.name
    shutil.copytree(made, folder)
    record = json.loads((folder / "spec.json").read_text())
    record["cell"]["metrics"] = ["./evil.py:metric"]
    (folder / "spec.json").write_text(json.dumps(record))
    for place in (tmp_path, folder):
        (place / "evil.py").write_text(marking(place))
    return folder


@pytest.mark.parametrize("command", ["show", "report", "list", "compare", "track", "export", "run --resume"])
def test_code_of_a_run_from_elsewhere_is_not_imported(medexam, evil, made, tmp_path, command) -> None:
    words = {
        "list": ["list", "--runs-dir", evil.parent],
        "compare": ["compare", evil, made],
        "export": ["export", evil, "--to", "lm_eval"],
    }.get(command, [*command.split(), evil])
    (tmp_path / "good.py").write_text(METRIC)
    code, _, err = medexam(*words)
    assert code in (0, 2), err
    assert not (tmp_path / "ran").exists()
    assert not (evil / "ran").exists()


def test_trusted_code_lies_beside_the_run_and_never_where_the_reader_is(medexam, evil, tmp_path) -> None:
    code, _, err = medexam("report", evil, "--trust")
    assert code == 0, err
    assert (evil / "ran").exists()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("change", [None, "moved", "unsigned", "other key"])
def test_ones_own_runs_are_scored_again_wherever_they_are_and_strangers_are_not(
    medexam, made, tmp_path, monkeypatch, change
) -> None:
    match change:
        case "moved":
            made = made.rename(tmp_path / "runs" / f"moved-{made.name}")
        case "unsigned":
            record = json.loads((made / "spec.json").read_text())
            del record["signature"]
            (made / "spec.json").write_text(json.dumps(record))
        case "other key":
            state = tmp_path / "state" / "medexam"
            state.mkdir(parents=True)
            (state / "signing.key").write_text("0" * 64)
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    code, out, err = medexam("report", made)
    assert (code, "--trust" in out + err) == (0, change not in {None, "moved"})
