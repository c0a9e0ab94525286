"""Programs that do not fit the data sets of companions are refused in one line, and labels tell those that fit."""

import json
from pathlib import Path

import pytest

from medexam.errors import SpecError
from medexam.specs import build_cells

LINES = Path(__file__).with_name("refused_specs.jsonl").read_text().splitlines()


@pytest.mark.parametrize("case", list(map(json.loads, LINES)), ids=lambda case: case["says"][:50])
def test_what_is_wrong_is_said_in_one_line(case) -> None:
    with pytest.raises(SpecError) as refused:
        build_cells(case["spec"], case.get("set", {}))
    assert case["says"] in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("program", "label"),
    [
        ("by_format", "by_format"),
        ({"kind": "by_format", "answer_format": "guided"}, "by_format-guided"),
        ({"kind": "by_format", "prompt": "mine/terse.yaml"}, "by_format-terse"),
        ({"kind": "retrieve_verify", "then": "by_format"}, "retrieve_verify-by_format-fusion"),
    ],
)
def test_labels_tell_programs_apart(program, label) -> None:
    _, (cell,) = build_cells({"name": "x", "dataset": "cliniqlink", "program": program}, {})
    assert cell.program.label == label
