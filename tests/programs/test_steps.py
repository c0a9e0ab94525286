"""Programs that a spec composes of steps: what is asked, what is kept, and what is refused before."""

from pathlib import Path

import pytest
import yaml

from medexam.experiments.plan.document import plan_document
from medexam.experiments.plan.planner import plan_experiment, plan_resume
from medexam.experiments.run.runner import Runner
from medexam.predictions import Status
from watching import Silent

FIELDS = """[[ ## argument ## ]]
It is so.

[[ ## helps ## ]]
True

[[ ## supported ## ]]
False

[[ ## reasoning ## ]]
Because.

[[ ## answer ## ]]
2

[[ ## completed ## ]]
{Answer: 3}"""


@pytest.fixture
def document(tmp_path: Path):
    """`document(steps, replies)` -> the spec of a flow over six sample questions."""

    def make(steps, replies=FIELDS, **parts):
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": replies}))
        return {
            "name": "flows",
            "dataset": {"name": "headqa_sample", "limit": 6},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml"), **parts.pop("model", {})},
            "program": {"steps": steps, **parts.pop("program", {})},
            **parts,
        }

    return make


@pytest.fixture
def run(document, tmp_path: Path):
    """`run(steps, replies)` -> the stored run of a flow."""

    def call(steps, replies=FIELDS, **parts):
        plan = plan_experiment(document(steps, replies, **parts), {}, runs_dir=tmp_path / "runs")
        (stored,), _ = Runner(plan, Silent()).run()
        return stored

    return call


DEBATE = [
    {"repeat": 2, "do": [{"ask": "question, options, arguments -> argument", "add": "arguments"}]},
    {"ask": "question, options, arguments -> answer: int", "answer_format": "guided"},
]


def test_a_flow_goes_the_whole_way(document, tmp_path: Path) -> None:
    """Planned, run, resumed and reported as every other program is."""
    plan = plan_experiment(document(DEBATE), {}, runs_dir=tmp_path / "runs")
    (cell,) = plan.cells
    assert cell.calls == 6 * 3
    assert list(dict(cell.program.named_predictors())) == ["arguments", "answer"]
    assert "options" in str(plan_document(plan))
    (stored,), _ = Runner(plan, Silent()).run()
    predictions = stored.folder.read_predictions()
    assert {(said.status, len(said.generations)) for said in predictions.values()} == {(Status.ANSWERED, 3)}
    lines = (stored.folder.path / "predictions.jsonl").read_text().splitlines()
    (stored.folder.path / "predictions.jsonl").write_text("\n".join(lines[:2]) + "\n")
    (resumed,), _ = Runner(plan_resume(str(stored.folder.path), runs_dir=tmp_path / "runs"), Silent()).run()
    again = resumed.folder.read_predictions()
    assert {key: (said.answer, said.generations) for key, said in again.items()} == {
        key: (said.answer, said.generations) for key, said in predictions.items()
    }
    assert "accuracy" in (resumed.folder.path / "report.md").read_text().lower()
