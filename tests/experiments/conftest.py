"""A document with a scripted model, runs of it by `medexam.run`, and stored runs made by hand."""

import pytest
import yaml

import medexam
from hash_server import serving_hashes
from made_runs import answer_key, exam_questions, make_run, no_collection
from scripted_engines import MADE, SCRIPTED

__all__ = ["answer_key", "exam_questions", "make_run", "no_collection"]


@pytest.fixture(scope="session")
def hash_server():
    """A server whose replies are hashes of the whole prompts; see `hash_server.py`."""
    with serving_hashes() as server:
        yield server


@pytest.fixture
def replies(tmp_path, request):
    """`replies("{Answer: 1}")` -> the model of a spec that always replies so; a mapping replies by words asked."""

    def write(table="{Answer: 1}", name=""):
        path = tmp_path / f"replies{name}.yaml"
        path.write_text(yaml.safe_dump(table if isinstance(table, dict) else {"*": table}))
        if "asked" in request.fixturenames:
            return {"engine": SCRIPTED, "args": {"path": str(path)}}
        return {"engine": "scripted", "path": str(path)}

    return write


@pytest.fixture
def spec(replies):
    """Twelve questions of the bundled sample for a model that always answers 1."""
    return {
        "name": "scripted",
        "dataset": {"name": "headqa_sample", "limit": 12},
        "model": replies(),
        "program": {"kind": "zero_shot"},
    }


@pytest.fixture
def ask(tmp_path):
    """`medexam.run` in a folder of the test's own, without progress and MLflow."""

    def run(spec, **settings):
        return medexam.run(spec, **{"runs_dir": tmp_path / "runs", "progress": False, "track": False} | settings)

    return run


@pytest.fixture
def resume(monkeypatch):
    """Ask a run's pending questions, without MLflow."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////dev/null/mlflow.db")
    return lambda run: run.resume(progress=False)


class Asked:
    """What scripted models were asked since the last `take`."""

    @property
    def prompts(self) -> list[str]:
        return [dialogue.messages[-1]["content"] for engine in MADE for dialogue in engine.dialogues]

    def take(self) -> list[str]:
        prompts = self.prompts
        for engine in MADE:
            engine.dialogues.clear()
        return prompts


@pytest.fixture
def asked() -> Asked:
    MADE.clear()
    return Asked()
