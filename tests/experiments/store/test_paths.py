"""Which runs a command line names."""

from pathlib import Path

import pytest

from medexam.experiments.store.paths import run_paths


def test_what_a_shell_names_beside_runs_is_passed_over(tmp_path: Path) -> None:
    for name in ("a", "b", "mlartifacts"):
        (tmp_path / name).mkdir()
    for name in ("mlflow.db", "mlflow.db-journal", "page.html"):
        (tmp_path / name).write_text("")
    everything = sorted(tmp_path.iterdir())
    assert run_paths(everything, tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert run_paths([tmp_path / "mlartifacts"], tmp_path) == [tmp_path / "mlartifacts"]


def test_a_prefix_behind_a_folder_means_a_run_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept" / "exam-longest-en-0123").mkdir(parents=True)
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run_paths([Path("kept/exam-long")], Path("runs")) == [Path("kept/exam-longest-en-0123")]
    assert run_paths([Path("kept/other")], Path("runs")) == [Path("kept/other")]
    assert run_paths([Path("nowhere/other")], Path("runs")) == [Path("runs/nowhere/other")]
