"""From what the user wrote to cells, and the one clear line for what is wrong."""

import pytest

from medexam.errors import SpecError
from medexam.specs import build_cells, load_document, parse_overrides

DOCUMENT = {
    "name": "x",
    "program": {"kind": "zero_shot"},
    "matrix": {
        "program": [{"kind": "zero_shot"}, {"kind": "blind", "option": 2}],
        "dataset.language": ["en", "es"],
    },
}


def test_the_matrix_is_a_product_in_the_order_it_is_written() -> None:
    _, cells = build_cells(DOCUMENT, {})
    assert [(c.program.label, c.dataset.language) for c in cells] == [
        ("zero_shot", "en"),
        ("zero_shot", "es"),
        ("blind-2", "en"),
        ("blind-2", "es"),
    ]


def test_a_value_of_the_matrix_stands_in_the_place_of_the_key() -> None:
    document = {
        "name": "x",
        "program": {"kind": "zero_shot", "answer_format": "guided"},
        "matrix": {"program": [{"kind": "few_shot"}]},
    }
    _, (cell,) = build_cells(document, {})
    assert cell.program.label == "few_shot"


def test_cells_change_several_keys_together() -> None:
    document = {
        **DOCUMENT,
        "matrix": {
            "cells": [
                {"program": "random"},
                {"program": {"kind": "zero_shot", "samples": 3}, "model.temperature": 0.7, "dataset.language": "es"},
            ],
            "dataset.seed": [0, 1],
        },
    }
    _, cells = build_cells(document, {"model.temperature": 0.5})
    told = [(c.program.kind, c.model.temperature, c.dataset.language, c.dataset.seed) for c in cells]
    assert told == [
        ("random", 0.5, "en", 0),
        ("random", 0.5, "en", 1),
        ("zero_shot", 0.5, "es", 0),
        ("zero_shot", 0.5, "es", 1),
    ]


def test_an_override_takes_the_place_of_an_axis() -> None:
    _, cells = build_cells(DOCUMENT, {"dataset.language": "es"})
    assert [c.dataset.language for c in cells] == ["es", "es"]


def test_an_override_below_an_axis_reaches_each_of_its_values() -> None:
    document = {"name": "x", "matrix": {"program": [{"kind": "zero_shot"}, {"kind": "few_shot"}]}}
    _, cells = build_cells(document, {"program.max_tokens": 5})
    assert [c.program.max_tokens for c in cells] == [5, 5]


def test_an_override_below_a_kind_reaches_the_programs_of_that_kind() -> None:
    document = {"name": "x", "matrix": {"program": [{"kind": "few_shot", "max_tokens": 7}, "zero_shot"]}}
    _, cells = build_cells(document, {"program.few_shot.max_tokens": 2})
    assert [c.program.max_tokens for c in cells] == [2, None]
    with pytest.raises(SpecError, match="no_shot"):
        build_cells(document, {"program.no_shot.max_tokens": 2})


def test_a_shorter_path_is_put_first_in_whichever_order_axes_and_overrides_stand() -> None:
    document = {"name": "x", "matrix": {"program.max_tokens": [3, 4], "program": ["zero_shot", "few_shot"]}}
    _, cells = build_cells(document, {"dataset.language": "es", "dataset": "headqa_v2"})
    told = [(cell.program.kind, cell.program.max_tokens, cell.dataset.language) for cell in cells]
    assert told == [(kind, tokens, "es") for tokens in (3, 4) for kind in ("zero_shot", "few_shot")]


DIRECT = {"kind": "zero_shot"}
NAMED = {"name": "x", "dataset": {"name": "headqa_v1", "language": "es", "split": "test"}}


@pytest.mark.parametrize(
    ("mapping", "asked"),
    [
        ({"language": "en"}, ("headqa_v1", "en", "test")),
        ({"name": "headqa_v1", "years": [2016]}, ("headqa_v1", "es", "test")),
        ({"name": "headqa_v2"}, ("headqa_v2", "en", "all")),
        ({"kind": "choice", "path": "mine.csv"}, ("mine", "en", "all")),
    ],
)
def test_a_mapping_changes_the_fields_of_a_part_or_names_another(mapping, asked) -> None:
    _, (cell,) = build_cells(NAMED, {"dataset": mapping})
    assert (cell.dataset.name, cell.dataset.language, cell.dataset.split) == asked


def test_steps_alone_are_a_program_of_their_own() -> None:
    steps = {"name": "mine", "steps": [{"ask": "question, options -> why, answer: int"}]}
    _, (cell,) = build_cells({**NAMED, "program": DIRECT}, {"program": steps})
    assert (cell.program.kind, cell.program.name) == ("flow", "mine")


def test_a_mapping_that_names_none_reaches_each_value_of_an_axis() -> None:
    document = {**NAMED, "matrix": {"program": ["zero_shot", "few_shot"], "model": [{"name": "a/b"}, {"name": "a/c"}]}}
    _, cells = build_cells(document, {"program": {"max_tokens": 5}, "model": {"temperature": 0.5}})
    told = [(cell.program.kind, cell.program.max_tokens, cell.model.name, cell.model.temperature) for cell in cells]
    assert told == [(kind, 5, name, 0.5) for kind in ("zero_shot", "few_shot") for name in ("a/b", "a/c")]
    _, (cell,) = build_cells(document, {"program": {"kind": "random"}, "model": {"engine": "vllm"}})
    assert (cell.program.kind, cell.model.engine, cell.model.name) == ("random", "vllm", None)


@pytest.mark.parametrize("setting", ["dataset.limit", "=5", ""])
def test_a_setting_without_key_or_value_is_refused(setting: str) -> None:
    with pytest.raises(SpecError, match="write it as key=value"):
        parse_overrides([setting])


def test_settings_are_yaml() -> None:
    settings = ["dataset.years=[2016, 2017]", "model.engine=embedded", "dataset.limit=5", "dataset.path=null"]
    assert parse_overrides(settings) == {
        "dataset.years": [2016, 2017],
        "model.engine": "embedded",
        "dataset.limit": 5,
        "dataset.path": None,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: [", "not YAML"),
        ("- 1", "a spec is a mapping"),
        ("", "a spec is a mapping"),
        ("!!python/object:x.y {}", "not YAML"),
    ],
)
def test_a_file_that_is_no_spec(tmp_path, text: str, said: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=said):
        load_document(path)


def test_a_spec_that_does_not_exist_names_the_nearest_one() -> None:
    with pytest.raises(SpecError, match="no spec headqav1: did you mean headqa_v1"):
        load_document("headqav1")


def test_one_value_is_a_list_of_one_and_a_word_is_a_part() -> None:
    document = {
        "name": "x",
        "dataset": "headqa_v1",
        "program": "longest",
        "model": {"engine": "vllm", "endpoints": "http://gpu1:8000/v1"},
    }
    _, (cell,) = build_cells(document, {"dataset.years": 2016, "dataset.disciplines": "medicine"})
    assert (cell.dataset.name, cell.dataset.years, cell.dataset.disciplines) == ("headqa_v1", (2016,), ("medicine",))
    assert (cell.program.kind, cell.model.endpoints) == ("longest", ("http://gpu1:8000/v1",))


def test_a_list_as_an_override_of_a_part_is_an_axis() -> None:
    document = {"name": "x", "matrix": {"program": ["zero_shot", "few_shot"], "dataset.language": ["en", "es"]}}
    _, cells = build_cells(document, {"program": ["random", {"kind": "blind", "option": 2}]})
    found = [(cell.program.label, cell.dataset.language) for cell in cells]
    assert found == [("random", "en"), ("random", "es"), ("blind-2", "en"), ("blind-2", "es")]
    _, cells = build_cells(document, {"program": "longest"})
    assert [cell.program.kind for cell in cells] == ["longest"] * 2


@pytest.mark.parametrize(
    "document",
    [
        {"program": {"kind": "zero_shot", "answer_format": "guided", "seed": 3}},
        {"matrix": {"program": [{"kind": "zero_shot", "answer_format": "guided"}, {"kind": "likelihood"}]}},
    ],
)
def test_another_kind_leaves_out_what_it_does_not_have(document, caplog) -> None:
    _, (cell,) = build_cells({"name": "x", **document}, {"program.kind": "longest"})
    assert cell.program.kind == "longest"
    assert "longest has no answer_format" in caplog.text
    with pytest.raises(SpecError, match="unknown key"):
        build_cells({"name": "x", "program": {"kind": "longest", "answer_format": "guided"}}, {})
