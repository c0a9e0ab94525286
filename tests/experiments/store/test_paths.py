"""Which runs a command line names."""

from pathlib import Path

from medexam.experiments.store.paths import run_paths


def test_what_a_shell_names_beside_runs_is_passed_over(tmp_path: Path) -> None:
    for name in ("a", "b", "mlartifacts"):
        (tmp_path / name).mkdir()
    for name in ("mlflow.db", "mlflow.db-journal", "page.html"):
        (tmp_path / name).write_text("")
    everything = sorted(tmp_path.iterdir())
    assert run_paths(everything, tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert run_paths([tmp_path / "mlartifacts"], tmp_path) == [tmp_path / "mlartifacts"]
