"""Runs that a real Ray cluster of this machine makes, beside those of this process."""

import json
from pathlib import Path

import pytest
import yaml

from medexam import load_run
from stored_runs import without_times

SAMPLE = Path(__file__).parents[1] / "retrievers" / "corpus_sample"
QUESTIONS = 120
# Ray Data warns of what its own settings hold by default.
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")]


@pytest.fixture
def run(medexam, tmp_path):
    """`run("local")` asks the bundled questions, behind passages; gives the folder, or what was said if that failed."""
    numbers = {"cell": 2, "patient": 3, "nurs": 1, "which": 4, "*": 1}
    replies = {word: {"text": f"{{Answer: {number}}}", "wait_s": 0.02} for word, number in numbers.items()}
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump(replies))
    retriever = {"kind": "bm25", "corpus": str(SAMPLE)}
    spec = {
        "name": "spread",
        "dataset": {"name": "headqa_sample"},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": {"kind": "retrieve_then_answer", "k": 2, "retriever": retriever},
    }

    def call(place: str, *options: str, **changes: object) -> Path | str:
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec | changes))
        code, _, err = medexam("run", "spec.yaml", "--runs-dir", place, *options)
        return next((tmp_path / place).glob("*/spec.json")).parent if code == 0 else err

    return call


def answers(folder: Path) -> dict[str, dict]:
    """What each question was answered, without what no two runs share; each stands there once."""
    predictions = load_run(folder).predictions
    assert (folder / "predictions.jsonl").read_bytes().count(b"\n") == len(predictions)
    return {key: without_times(one.to_json()) for key, one in predictions.items()}


def written(folder: Path, name: str) -> dict:
    return json.loads((folder / name).read_text())


def test_a_spread_run_is_the_local_run(run, cluster) -> None:
    local, spread = run("local"), run("spread", "--executor", "ray", "--workers", "2")
    assert answers(spread) == answers(local)
    assert len(answers(spread)) == QUESTIONS
    scores, others = (
        {name: value for name, value in written(folder, "metrics.json").items() if not name.startswith("latency")}
        for folder in (spread, local)
    )
    assert scores == others
    assert written(spread, "spec.json")["spec_digest"] == written(local, "spec.json")["spec_digest"]
    assert spread.name == local.name
    assert not (spread / "parts").exists()
    told = written(spread, "environment.json")["executor"]
    assert (told["kind"], told["ray"]) == ("ray", cluster.__version__)
    assert sum(one["asked"] for one in told["workers"]) == QUESTIONS
    assert all(one["asked"] for one in told["workers"])


DYING = """
import asyncio, os
from pathlib import Path
from medexam.serve import ScriptedEngine

class Dying(ScriptedEngine):
    async def reply(self, dialogue):
        await asyncio.sleep(0.02)
        try:
            Path(__file__).with_name("death").unlink()
        except OSError:
            return await super().reply(dialogue)
        os._exit(1)
"""


@pytest.mark.nightly
def test_a_shard_that_dies_is_started_again(run, cluster, tmp_path) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    (death := tmp_path / "death").touch()
    model = {"engine": f"{tmp_path / 'dying.py'}:Dying", "args": {"replies": {"*": "{Answer: 1}"}}}
    folder = run("runs", "--executor", "ray", "--workers", "2", model=model)
    assert not death.exists()
    assert len(answers(folder)) == QUESTIONS
    assert len(written(folder, "environment.json")["executor"]["lost"]) == 1
