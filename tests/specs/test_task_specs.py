"""Specs of what is answered in words: programs and settings that do not fit a data set are refused in one line."""

import pytest

from medexam.errors import SpecError
from medexam.specs import DatasetSpec, build_cells, build_identity, digest

CLINIQLINK = {"name": "cliniqlink"}
SHORT = {"kind": "short_answer", "path": "mine.csv"}
VERIFY = {"kind": "retrieve_verify"}
SPANS = {"name": "casimedicos_spans", "language": "es"}


def _cell(dataset: dict, program: dict):
    _, (cell,) = build_cells({"name": "x", "dataset": dataset, "program": program}, {})
    return cell


@pytest.mark.parametrize(
    ("dataset", "program", "said"),
    [
        (CLINIQLINK, {"kind": "zero_shot"}, "program zero_shot does not answer cliniqlink: set program.kind to by_f"),
        (CLINIQLINK, {"kind": "extract_explanation"}, "does not answer cliniqlink: set program.kind to by_format"),
        (CLINIQLINK, {"kind": "random"}, "program random does not answer cliniqlink"),
        (SPANS, {"kind": "likelihood"}, "does not answer casimedicos_spans: set program.kind to extract_explanation"),
        (SPANS, {"kind": "by_format"}, "does not answer casimedicos_spans: set program.kind to extract_explanation"),
        ({}, {"kind": "by_format"}, "does not answer headqa_sample, an exam: set dataset.name to cliniqlink"),
        ({"name": "casimedicos"}, {"kind": "extract_explanation"}, "an exam: set dataset.name to casimedicos_spans"),
        (CLINIQLINK, {**VERIFY, "then": "zero_shot"}, "set program.kind to by_format or retrieve_verify"),
        (CLINIQLINK, {**VERIFY, "then": "short_answer"}, "retrieve_verify does not answer cliniqlink"),
        (CLINIQLINK, {**VERIFY, "reader": "some/nli"}, "reader belongs to numbered options, and `then: 'by_format'`"),
        (SPANS, VERIFY, "does not answer casimedicos_spans: set program.kind to extract_explanation"),
        ({}, {**VERIFY, "then": "by_format"}, "retrieve_verify does not answer headqa_sample, an exam"),
        (SHORT, {**VERIFY, "answer_format": "guided"}, "answer_format guided cannot constrain short answers"),
        (CLINIQLINK, {"kind": "by_format", "answer_format": "guidd"}, "answer_format"),
        (CLINIQLINK, {"kind": "by_format", "answer_form": "angles"}, "answer_form"),
        (CLINIQLINK, {"kind": "by_formt"}, "did you mean 'by_format'?"),
        (SPANS, {"kind": "extract_explanation", "max_tokens": 0}, "max_tokens"),
        ({**CLINIQLINK, "formats": ["shrt"]}, {"kind": "by_format"}, "dataset.formats"),
        ({**SPANS, "variants": ["CQ"]}, {"kind": "extract_explanation"}, "dataset.variants"),
        ({**SPANS, "formats": ["list"]}, {"kind": "extract_explanation"}, "formats belongs to cliniqlink, not to casi"),
        ({**CLINIQLINK, "variants": ["CQ#E"]}, {"kind": "by_format"}, "variants belongs to casimedicos_spans"),
        ({**CLINIQLINK, "explained": True}, {"kind": "by_format"}, "explained belongs to casimedicos, not to clin"),
        ({**CLINIQLINK, "years": [2013]}, {"kind": "by_format"}, "years belongs to headqa_sample, headqa_study"),
        ({**SPANS, "images": "without"}, {"kind": "extract_explanation"}, "images belongs to"),
        ({"explained": True}, {"kind": "zero_shot"}, "explained belongs to casimedicos, not to headqa_sample"),
        ({**CLINIQLINK, "alter": "none_of_the_above"}, {"kind": "by_format"}, "alter belongs to headqa_sample"),
        ({"alter": "paraphrased"}, {"kind": "zero_shot"}, "set both, or leave both out"),
        ({"alter_seed": 3}, {"kind": "zero_shot"}, "alter_seed belongs to `alter: options_replaced`"),
        ({"name": "./mine.py:Mine", "alter": "none_of_the_above"}, {"kind": "zero_shot"}, "alter works on questions"),
        (
            {"name": "headqa_v1", "alter": "question_withheld"},
            {"kind": "zero_shot", "images": "shown"},
            "set program.images to hidden",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(dataset, program, said) -> None:
    with pytest.raises(SpecError) as raised:
        _cell(dataset, program)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_every_cell_of_a_matrix_must_fit() -> None:
    matrix = {"dataset.name": ["cliniqlink", "headqa_sample"]}
    with pytest.raises(SpecError, match="by_format does not answer headqa_sample"):
        build_cells({"name": "x", "program": {"kind": "by_format"}, "matrix": matrix}, {})


@pytest.mark.parametrize(
    ("program", "label"),
    [
        ({"kind": "by_format"}, "by_format"),
        ({"kind": "by_format", "answer_format": "guided"}, "by_format-guided"),
        ({"kind": "by_format", "prompt": "mine/terse.yaml"}, "by_format-terse"),
        (VERIFY, "retrieve_verify-by_format-fusion-k5"),
    ],
)
def test_labels_tell_programs_apart(program, label) -> None:
    assert _cell(CLINIQLINK, program).program.label == label


def _digest(dataset: dict, program: dict | None = None) -> str:
    return digest(build_identity(_cell(dataset, program or {"kind": "zero_shot"}), fingerprint="0" * 64, words={}))


def test_an_explanation_before_the_question_changes_the_identity() -> None:
    plain = {"name": "casimedicos", "language": "es"}
    assert _digest({**plain, "explained": True}) != _digest(plain)
    assert _digest({**plain, "explained": False}) == _digest(plain)


def test_an_alteration_changes_the_identity_and_only_then_is_stored() -> None:
    plain, replaced = {"name": "headqa_v1"}, {"name": "headqa_v1", "alter": "options_replaced"}
    digests = {_digest({**plain, "alter": how}) for how in (None, "question_withheld", "none_of_the_above")}
    assert len(digests | {_digest(replaced), _digest({**replaced, "alter_seed": 3})}) == 5
    assert _digest({**replaced, "alter_seed": 17}) == _digest(replaced)
    assert not {"alter", "alter_seed"} & set(DatasetSpec.model_validate(plain).model_dump())
    found = DatasetSpec.model_validate({**replaced, "alter_seed": 3})
    assert DatasetSpec.model_validate(found.model_dump()) == found
    assert found.whole.alter == "options_replaced"
    assert found.label == "headqa_v1 en options_replaced seed 3"


def test_variants_and_formats_are_a_selection() -> None:
    by_format, extract = {"kind": "by_format"}, {"kind": "extract_explanation"}
    assert _digest({**CLINIQLINK, "formats": ["list"]}, by_format) == _digest(CLINIQLINK, by_format)
    assert _digest({**SPANS, "variants": ["CQ#E"]}, extract) == _digest(SPANS, extract)
