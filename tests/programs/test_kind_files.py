"""Strategies that are files of one's own: one file, no line elsewhere."""

import json

import pytest
import yaml

import medexam as package
from medexam.errors import SpecError
from medexam.specs import build_cells, load_document
from table_cases import read_cases

TWICE = """
help: Answer, look at the answer again, then decide.
asks: reply
parameters:
  looks: {type: count, default: 1, label: "looks{}", help: How often it looks again.}
  asker: {type: [plain, kind], default: plain, help: Who decides.}
  note: {type: text, default: null, help: What the decider is told.}
steps:
  - {ask: "question, options -> answer: int", as: draft, answer_format: guided}
  - {repeat: $looks, do: [{ask: "question, options, draft -> answer: int", as: better, answer_format: guided}]}
  - {only: {asker: plain}, ask: "question, options, better -> answer: int", words: zero_shot}
  - {only: {asker: kind}, ask: "question, options -> answer: int", instructions: $note}
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """`programs({"looks": 2})` -> the program of a spec beside the strategy's file."""
    monkeypatch.chdir(tmp_path.parent)
    (tmp_path / "twice.yaml").write_text(TWICE)
    (tmp_path / "replies.yaml").write_text("'*': '{Answer: 2}'")

    def build(settings, kind="./twice.yaml"):
        model = {"engine": "scripted", "path": str(tmp_path / "replies.yaml")}
        dataset = {"name": "headqa_sample", "limit": 2}
        spec = {"name": "x", "dataset": dataset, "model": model, "program": {"kind": kind, **settings}}
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
        return tmp_path / "spec.yaml"

    return build


def test_a_file_beside_the_spec_is_a_kind(programs, tmp_path, medexam) -> None:
    spec = programs({"looks": 2, "answer_form": "angles", "max_tokens": 7})
    (cell,) = package.plan(spec, runs_dir=tmp_path / "runs").cells
    assert cell["program"] == "twice-angles-looks2"
    _, (planned,) = build_cells(load_document(spec), {})
    document = planned.program.document
    assert [next(iter(step)) for step in document["steps"]] == ["ask", "repeat", "ask"]
    assert (document["steps"][1]["repeat"], document["steps"][2]["words"]["answer_form"]) == (2, "angles")
    for pasted in (json.loads(json.dumps(document)), planned.program.flow.model_dump(mode="json")):
        written = {**yaml.safe_load(spec.read_text()), "program": pasted}
        (again,) = package.plan(written, runs_dir=tmp_path / "runs").cells
        assert again["spec_digest"] == cell["spec_digest"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"look": 2}, "did you mean 'looks'"),
        ({"looks": 0}, "looks: input should be greater than or equal to 1"),
        ({"note": "Think."}, "note changes nothing beside these settings: leave it out"),
        ({"asker": "nobody"}, "'plain' or 'kind'"),
    ],
)
def test_a_wrong_parameter_is_named(programs, settings, says) -> None:
    with pytest.raises(SpecError, match=says):
        build_cells(load_document(programs(settings)), {})


@pytest.mark.parametrize("case", read_cases("refused_strategies"))
def test_a_file_that_is_no_strategy_is_refused(programs, tmp_path, case) -> None:
    spec = programs(case["settings"], "./other.yaml")
    (tmp_path / "other.yaml").write_text(case["file"])
    with pytest.raises(SpecError) as refused:
        build_cells(load_document(spec), {})
    assert case["says"] in str(refused.value)
    (tmp_path / "other.yaml").unlink()
    with pytest.raises(SpecError, match="cannot read it"):
        build_cells(load_document(spec), {})
