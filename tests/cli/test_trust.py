"""Whose code runs: that of runs that this installation made, wherever they lie now, and of no others unless asked."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from medexam.errors import SpecError
from medexam.experiments import RunFolder
from medexam.experiments.store.trust import check_trusted, is_own
from medexam.plugins import hash_source
from medexam.specs.names import OWN_METRICS

METRIC = "def metric(question, gold, prediction):\n    return 1\n"


@pytest.fixture
def made(medexam, tmp_path) -> Path:
    """A run with a metric of the user's own."""
    (tmp_path / "good.py").write_text(METRIC)
    spec = {
        "name": "made",
        "dataset": {"name": "headqa_sample", "limit": 2},
        "program": {"kind": "longest"},
        "metrics": ["./good.py:metric"],
    }
    (tmp_path / "spec.yaml").write_text(json.dumps(spec))
    code, _, err = medexam("run", "spec.yaml")
    assert code == 0, err
    return next((tmp_path / "runs").glob("made-*"))


@pytest.fixture
def evil(made, tmp_path) -> Path:
    """The run as somebody else sends it: unpacked by the user, and naming code by a relative name."""
    folder = tmp_path / "unpacked" / made.name
    shutil.copytree(made, folder)
    record = json.loads((folder / "spec.json").read_text())
    record["cell"]["metrics"] = ["./evil.py:metric"]
    (folder / "spec.json").write_text(json.dumps(record))
    (folder / "report.md").unlink()
    for place in (tmp_path, folder):
        (place / "evil.py").write_text(f"from pathlib import Path\nPath({str(place / 'ran')!r}).touch()\n{METRIC}")
    return folder


def test_ones_own_runs_are_scored_again_wherever_they_are_moved(medexam, made, tmp_path) -> None:
    moved = made.rename(tmp_path / "runs" / f"moved-{made.name}")
    (moved / "report.md").unlink()
    code, out, err = medexam("report", moved)
    assert code == 0
    assert "--trust" not in out + err
    assert is_own(moved)


@pytest.mark.parametrize("command", ["show", "report", "list", "compare", "track", "export", "run --resume"])
def test_code_of_a_run_from_elsewhere_is_not_imported(medexam, evil, tmp_path, command) -> None:
    words = [*command.split(), *([] if command == "list" else [evil])]
    words += ["--runs-dir", evil.parent] if command == "list" else []
    words += [tmp_path / "runs" / evil.name] if command == "compare" else []
    words += ["--to", "lm_eval"] if command == "export" else []
    code, _, err = medexam(*words)
    assert code in (0, 2), err
    assert not (tmp_path / "ran").exists()
    assert not (evil / "ran").exists()
    assert not is_own(evil), "looking at a run makes it nobody's own"


def test_trusted_code_lies_beside_the_run_and_never_where_the_reader_is(medexam, evil, tmp_path) -> None:
    code, _, err = medexam("report", evil, "--trust")
    assert code == 0, err
    assert (evil / "ran").exists()
    assert not (tmp_path / "ran").exists()
    assert RunFolder(evil).read_record().cell.metrics == (f"{evil}/evil.py:metric",)


@pytest.mark.parametrize("change", ["unsigned", "other key", "no key", "damaged"])
def test_what_makes_a_run_a_strangers(made, tmp_path, monkeypatch, change) -> None:
    check_trusted(made, "metric good.py:metric")
    match change:
        case "unsigned":
            record = json.loads((made / "spec.json").read_text())
            del record["signature"]
            (made / "spec.json").write_text(json.dumps(record))
        case "other key":
            state = tmp_path / "state" / "medexam"
            state.mkdir(parents=True)
            (state / "signing.key").write_text("0" * 64)
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        case "no key":
            monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
        case "damaged":
            (made / "spec.json").write_text("[]")
    with pytest.raises(SpecError, match="another installation made run"):
        check_trusted(made, "metric good.py:metric")


def test_the_key_is_its_owners_alone_and_a_home_that_cannot_be_written_stops_no_run(medexam, made, monkeypatch) -> None:
    import os

    key = Path(os.environ["XDG_STATE_HOME"]) / "medexam" / "signing.key"
    assert key.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    code, _, err = medexam("run", "spec.yaml", "--set", "dataset.limit=3", "--fresh")
    assert code == 0, err


def test_finding_a_source_imports_no_package_above_it(tmp_path, monkeypatch) -> None:
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "own.py").write_text(METRIC)
    monkeypatch.syspath_prepend(tmp_path)
    assert hash_source("outer.inner.own:metric", OWN_METRICS)["object"] == "metric"
    assert not {"outer", "outer.inner"} & sys.modules.keys()
    for missing in ("outer.none:metric", "outer.inner.own.deeper:metric", "none.at.all:metric"):
        with pytest.raises(SpecError, match="can be imported"):
            hash_source(missing, OWN_METRICS)
