"""A document with a scripted model, runs of it by `medexam.run`, and stored runs made by hand."""

import os
import signal
from collections.abc import Callable

import pytest
import yaml

import medexam
from hash_server import serving_hashes
from made_runs import answer_key, exam_questions, make_run, no_collection
from medexam.errors import ServerError
from medexam.serve import ScriptedEngine

__all__ = ["answer_key", "exam_questions", "make_run", "no_collection"]


@pytest.fixture(scope="session")
def hash_server():
    """A server whose replies are hashes of the whole prompts; see `hash_server.py`."""
    with serving_hashes() as server:
        yield server


@pytest.fixture
def replies(tmp_path):
    """`replies("{Answer: 1}")` -> the model of a spec that always replies so; a mapping replies by words asked."""

    def write(table="{Answer: 1}", name="replies"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(table if isinstance(table, dict) else {"*": table}))
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
    """What scripted models are asked; a test has them fail, or does something once so many prompts are asked."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.fails: Callable[[str], bool] = lambda prompt: False
        self.acts: dict[int, Callable[[], object]] = {}
        """Number of prompts -> what is done at the last of them."""

    def take(self) -> list[str]:
        """The prompts since the last call."""
        prompts = list(self.prompts)
        self.prompts.clear()
        return prompts

    def interrupt_at(self, count: int) -> None:
        """Press Ctrl-C once so many prompts are asked."""

        self.acts[count] = lambda: os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def asked(monkeypatch) -> Asked:
    kept, answer = Asked(), ScriptedEngine.answer

    def answer_or_fail(engine, dialogue):
        prompt = dialogue.messages[-1]["content"]
        kept.prompts.append(prompt)
        kept.acts.get(len(kept.prompts), bool)()
        if kept.fails(prompt):
            raise ServerError("scripted failure of a server")
        return answer(engine, dialogue)

    monkeypatch.setattr(ScriptedEngine, "answer", answer_or_fail)
    return kept
