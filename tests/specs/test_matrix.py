"""From what the user wrote to cells, and the one clear line for what is wrong."""

import re

import pytest

from medexam.errors import SpecError
from medexam.specs import build_cells, build_identity, differing_keys, digest, load_document, parse_overrides

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


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["random"], "matrix.cells: expected a mapping of dotted keys to values, found 'random'"),
        ("random", "matrix.cells: expected a list of mappings, found 'random'"),
        ([{}], "matrix.cells: expected a mapping of dotted keys to values, found {}"),
        ([{"program.samplez": 3}], "matrix: 'program.samplez' does not exist: did you mean 'samples'?"),
        ([{"program": "random"}, {"program": "random"}], "matrix: cells 1 and 2 are the same run; remove one"),
    ],
)
def test_cells_that_say_nothing_are_refused(cells: object, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        build_cells({**DOCUMENT, "matrix": {"cells": cells}}, {})


def test_an_override_takes_the_place_of_an_axis() -> None:
    _, cells = build_cells(DOCUMENT, {"dataset.language": "es"})
    assert [c.dataset.language for c in cells] == ["es", "es"]


def test_an_override_below_an_axis_reaches_each_of_its_values() -> None:
    document = {"name": "x", "matrix": {"program": [{"kind": "zero_shot"}, {"kind": "few_shot"}]}}
    _, cells = build_cells(document, {"program.max_tokens": 5})
    assert [c.program.max_tokens for c in cells] == [5, 5]


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
    assert (cell.program.kind, cell.program.name) == ("signature", "mine")


def test_a_mapping_that_names_none_reaches_each_value_of_an_axis() -> None:
    document = {**NAMED, "matrix": {"program": ["zero_shot", "few_shot"], "model": [{"name": "a/b"}, {"name": "a/c"}]}}
    _, cells = build_cells(document, {"program": {"max_tokens": 5}, "model": {"temperature": 0.5}})
    told = [(cell.program.kind, cell.program.max_tokens, cell.model.name, cell.model.temperature) for cell in cells]
    assert told == [(kind, 5, name, 0.5) for kind in ("zero_shot", "few_shot") for name in ("a/b", "a/c")]
    _, (cell,) = build_cells(document, {"program": {"kind": "random"}, "model": {"engine": "vllm"}})
    assert (cell.program.kind, cell.model.engine, cell.model.name) == ("random", "vllm", None)


@pytest.mark.parametrize(
    ("document", "overrides"),
    [
        ({"name": "x", "dataset": {"language": "es"}}, {}),
        ({"name": "x"}, {"dataset": {"language": "es"}}),
        ({**NAMED, "matrix": {"dataset": [{"language": "es"}]}}, {}),
        (NAMED, {"dataset": [{"language": "es"}]}),
    ],
)
def test_questions_of_no_named_data_set_are_refused(document, overrides) -> None:
    with pytest.raises(SpecError, match=r"dataset: it names no data set: set dataset\.name"):
        build_cells(document, overrides)
    assert build_cells(document, {**overrides, "dataset.name": "headqa_sample"})
    assert build_cells({"name": "x"}, {"dataset.limit": 5})


@pytest.mark.parametrize(
    ("document", "overrides", "said"),
    [
        ({"name": "x", "program": {"kind": "zero_shot", "answer_fromat": "free"}}, {}, "did you mean 'answer_format'?"),
        ({"name": "x", "datset": {}}, {}, "did you mean 'dataset'?"),
        ({"name": "x", "dataset": {"langage": "es"}}, {}, "did you mean 'language'?"),
        ({"name": "x"}, {"dataset.langage": "es"}, "did you mean 'language'?"),
        ({"name": "x"}, {"program.kind.deeper": 1}, "does not exist"),
        ({"name": "x", "matrix": {"program.knd": ["a"]}}, {}, "did you mean 'kind'?"),
        ({"name": "x", "matrix": {"dataset.language": "es"}}, {}, "list"),
        ({"name": "x", "matrix": {"dataset.language": []}}, {}, "at least 1"),
        ({"name": "x", "matrix": ["en"]}, {}, "mapping"),
        ({"name": "x", "matrix": {"dataset.language": ["en", "en"]}}, {}, "the same run"),
        ({"name": "x", "program": {"kind": "zeroshot"}}, {}, "did you mean 'zero_shot'?"),
        ({"name": "x", "program": {}}, {}, "needs a kind"),
        ({"name": "x", "program": {"kind": "longest", "max_tokens": 3}}, {}, "max_tokens"),
        ({"name": "x", "dataset": {"limit": "many"}}, {}, "dataset.limit"),
        ({"name": "x", "dataset": {"limit": 0}}, {}, "dataset.limit"),
        ({"name": "x", "model": {"engine": "vllm", "start": True}}, {}, "start needs a profile"),
        (
            {"name": "x", "model": {"engine": "embedded", "profile": "qwen3-8b"}},
            {},
            "profile belongs to the engines 'vllm' and 'batch'",
        ),
        (
            {"name": "x", "model": {"engine": "vllm", "endpoints": ["registry:a", "http://b/v1"]}},
            {},
            "give the registry alone",
        ),
        ({"name": "x", "model": {"engine": "litellm"}}, {}, "needs a name"),
        ({"name": "x/../y"}, {}, "name"),
        ({}, {}, "name: is missing"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(document: dict, overrides: dict, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        build_cells(document, overrides)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_setting_below_a_kind_reaches_the_programs_of_that_kind_alone() -> None:
    _, cells = build_cells(DOCUMENT, {"program.blind.option": 4})
    assert [cell.program.label for cell in cells] == ["zero_shot", "zero_shot", "blind-4", "blind-4"]
    _, (cell,) = build_cells({"name": "x", "program": {"kind": "blind"}}, {"program.blind.option": 3})
    assert cell.program.label == "blind-3"
    # A kind that needs a field may be given it so.
    _, (cell,) = build_cells({"name": "x", "program": {"kind": "entailment"}}, {"program.entailment.reader": "m"})
    assert cell.program.label == "entailment-m-medcpt-per_option"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("program.longest.option", "--set program.longest.option: no program of the experiment is of the kind longest"),
        ("program.blind.opton", "unknown key 'program.blind.opton': did you mean 'option'?"),
    ],
)
def test_a_setting_below_a_kind_that_reaches_nothing_is_refused(path: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        build_cells(DOCUMENT, {path: 1})


def test_a_reader_is_part_of_the_identity_and_its_place_is_not() -> None:
    def known(folder: str, **reader: str):
        program = {"kind": "span_reader", "reader": folder}
        _, (cell,) = build_cells({"name": "x", "program": program}, {})
        return build_identity(cell, fingerprint="f", words={}, retriever={"kind": "bm25"}, reader=reader)

    assert known("a/qa", revision="1") == known("b/qa", revision="1") != known("a/qa", revision="2")
    assert "model" not in known("a/qa", revision="1")


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


def test_a_table_of_questions_is_told_from_a_spec(tmp_path) -> None:
    (tmp_path / "my.csv").write_text("question,a,b,answer\n")
    with pytest.raises(SpecError, match=r"my\.csv is a table of questions, not a spec: `medexam data init"):
        load_document(tmp_path / "my.csv")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"engine": "vllm"}, "'engine' does not exist: did you mean 'model.engine'?"),
        ({"temperature": 0.5}, "did you mean 'model.temperature'?"),
        ({"program.temperature": 0.5}, "did you mean 'model.temperature'?"),
        ({"language": "es"}, "did you mean 'dataset.language'?"),
        ({"model.answer_format": "guided"}, "did you mean 'program.answer_format'?"),
        ({"dataset.yeers": 2016}, "did you mean 'years'?"),
        ({"program.kind": "cot"}, "did you mean 'chain_of_thought'?"),
        ({"program": "rag"}, "did you mean 'retrieve_then_answer'?"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_its_place(overrides, said) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        build_cells({"name": "x"}, overrides)


def test_a_key_of_a_spec_in_the_wrong_place_is_told_its_place() -> None:
    with pytest.raises(SpecError, match=r"did you mean 'model\.temperature'\?"):
        build_cells({"name": "x", "program": {"kind": "zero_shot", "temperature": 0.7}}, {})


def test_a_spec_that_does_not_exist_names_the_nearest_one() -> None:
    with pytest.raises(SpecError, match="no spec headqav1: did you mean headqa_v1"):
        load_document("headqav1")


def test_a_spec_that_does_not_exist_names_the_shipped_ones() -> None:
    with pytest.raises(SpecError, match="quickstart"):
        load_document("quickstrat")


def _digest(overrides: dict, words: str = "w") -> str:
    _, (cell,) = build_cells({"name": "x"}, overrides)
    return digest(build_identity(cell, fingerprint="0" * 64, words={"instructions": words}))


@pytest.mark.parametrize(
    "overrides",
    [
        {"dataset.years": [2016]},
        {"dataset.limit": 5},
        {"dataset.images": "without"},
        {"model.device": "cpu"},
        {"name": "y"},
    ],
)
def test_which_questions_and_where_is_no_part_of_the_identity(overrides: dict) -> None:
    assert _digest(overrides) == _digest({})


@pytest.mark.parametrize(
    "overrides",
    [
        {"dataset.language": "es"},
        {"dataset.name": "headqa_v1"},
        {"program.answer_format": "guided"},
        {"program.max_tokens": 3},
        {"model.temperature": 0.5},
    ],
)
def test_what_an_answer_depends_on_is_part_of_the_identity(overrides: dict) -> None:
    assert _digest(overrides) != _digest({})


def test_what_the_model_is_counts() -> None:
    _, (cell,) = build_cells({"name": "x"}, {})
    found = [digest(build_identity(cell, fingerprint="0" * 64, words={}, model={"weights": one})) for one in "aab"]
    assert found[0] == found[1] != found[2]


def test_the_words_of_the_prompt_are_part_of_the_identity() -> None:
    assert _digest({}, "other") != _digest({})


def test_a_control_does_not_depend_on_the_model() -> None:
    control = {"program.kind": "longest"}
    assert _digest({**control, "model.temperature": 1.0}) == _digest(control)


def test_differences_name_the_keys() -> None:
    assert differing_keys({"a": 1, "b": {"c": 1, "d": 2}}, {"a": 1, "b": {"c": 3, "d": 2}, "e": 0}) == ["b.c", "e"]


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


def test_only_is_shown_on_the_questions_with_a_picture() -> None:
    document = {
        "name": "x",
        "program": {"kind": "zero_shot"},
        "matrix": {"program.images": ["hidden", "shown", "only"]},
    }
    _, (hidden, shown, only) = build_cells(document, {})
    assert [cell.dataset.images for cell in (hidden, shown, only)] == ["all", "all", "with"]
    assert only.program == shown.program != hidden.program
    assert [cell.program.label for cell in (hidden, only)] == ["zero_shot", "zero_shot-images"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (
            {"dataset": {"kind": "choice", "path": "a", "images": "without"}, "program": {**DIRECT, "images": "only"}},
            "leaves these out",
        ),
        ({"program": {"kind": "zero_shot", "image_side": 512}}, "image_side belongs to images: shown"),
        ({"program": {"kind": "likelihood", "images": "shown"}}, "images"),
    ],
)
def test_pictures_that_cannot_be_asked_are_refused(part, said) -> None:
    with pytest.raises(SpecError, match=said):
        build_cells({"name": "x", **part}, {})


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
