"""Labels of cells that would be equal."""

from medexam.specs import CellSpec
from medexam.specs.identity import distinct_labels


def cell(**program) -> CellSpec:
    return CellSpec.model_validate({"name": "x", "dataset": {"name": "headqa_sample"}, "program": program})


def test_equal_labels_are_followed_by_what_differs() -> None:
    cells = [cell(kind="zero_shot"), cell(kind="zero_shot", max_tokens=64), cell(kind="few_shot")]
    labels = [one.program.label for one in cells]
    assert labels[0] == labels[1]
    assert distinct_labels(labels, cells) == ["zero_shot (max_tokens null)", "zero_shot (max_tokens 64)", "few_shot"]
    assert distinct_labels(labels[:1] * 2, cells[:1] * 2) == ["zero_shot"] * 2
