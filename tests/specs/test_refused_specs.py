"""What is no spec is refused in one line that says where the fault is: `tests/cases/refused_specs.jsonl`."""

import json
from pathlib import Path

import pytest

import medexam
from medexam.errors import SpecError
from medexam.specs import EngineNeeds, build_cells

LINES = (Path(__file__).parents[1] / "cases" / "refused_specs.jsonl").read_text().splitlines()


@pytest.mark.parametrize("case", list(map(json.loads, LINES)), ids=lambda case: case["says"][:50])
def test_what_is_wrong_is_said_in_one_line(case) -> None:
    with pytest.raises(SpecError) as refused:
        build_cells(case["spec"], case.get("set", {}))
    assert case["says"] in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("program", "dataset", "label"),
    [
        ("retrieve_verify", "headqa_sample", "retrieve_verify-fusion"),
        ("retrieve_then_answer", "headqa_sample", "retrieve_then_answer-medcpt"),
        ({"kind": "relevance", "retriever": "medcpt"}, "headqa_sample", "relevance-medcpt"),
        ({"kind": "likelihood", "context": "retrieved"}, "headqa_sample", "likelihood-option_text-medcpt"),
    ],
)
def test_labels_tell_programs_apart(program, dataset, label) -> None:
    _, (cell,) = build_cells({"name": "x", "dataset": dataset, "program": program}, {})
    assert cell.program.label == label


def test_equal_labels_are_followed_by_what_differs(tmp_path) -> None:
    programs = ["zero_shot", {"kind": "zero_shot", "max_tokens": 65}, "few_shot"]
    (tmp_path / "replies.yaml").write_text("'*': x")
    model = {"engine": "scripted", "path": str(tmp_path / "replies.yaml")}
    spec = {"name": "x", "dataset": {"name": "headqa_sample", "limit": 1}, "model": model}
    cells = medexam.plan({**spec, "matrix": {"program": programs}}, runs_dir=tmp_path).cells
    shown = ["zero_shot (max_tokens null)", "zero_shot (max_tokens 65)", "few_shot"]
    assert [entry["program"] for entry in cells] == shown


@pytest.mark.parametrize(
    ("program", "needs"),
    [
        ({"kind": "zero_shot"}, {"chat": True}),
        ({"kind": "zero_shot", "images": "shown"}, {"chat": True, "pictures": True}),
        ({"kind": "zero_shot", "answer_after_budget": True}, {"chat": True, "guided": True, "closes": True}),
        ({"kind": "chain_of_thought", "answer_format": "guided"}, {"chat": True, "guided": True}),
        ({"kind": "retrieve_verify"}, {"chat": True, "guided": True}),
        ({"kind": "likelihood"}, {"logprobs": True}),
        ({"kind": "longest"}, {}),
    ],
)
def test_an_engine_must_honour_what_requests_hold(program, needs) -> None:
    _, (cell,) = build_cells({"name": "x", "program": program}, {})
    assert cell.program.asking.engine_needs == EngineNeeds(**needs)
