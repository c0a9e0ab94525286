"""Altered questions: what is shown, what stays, and what cannot be altered."""

from collections import Counter
from typing import get_args

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, MedExamError
from medexam.questions import Language, Question
from medexam.specs import DatasetSpec, validate
from table_cases import write_rows

MADE = ("question_withheld", "options_withheld", "none_of_the_above", "options_replaced", "question_continued")


def _load(alter: str | dict[str, object] | None = None, **more: object) -> dict[str, Question]:
    return {each.key: each for each in load_exam_set(DatasetSpec.model_validate({"alter": alter, **more})).questions}


@pytest.fixture
def own(tmp_path):
    """`own(rows, alter)`: the altered questions of a file."""

    def load(rows, alter, name="mine.jsonl"):
        path = write_rows(tmp_path / name, rows)
        return load_exam_set(validate(DatasetSpec, {"kind": "choice", "path": path, "alter": alter}))

    return load


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("how", MADE)
def test_the_right_options_number_stays(how: str, language: str) -> None:
    plain = load_exam_set(DatasetSpec(language=language))
    found = load_exam_set(DatasetSpec.model_validate({"language": language, "alter": how}))
    assert {each.key: found.golds[each.key] for each in found.questions}.items() <= dict(plain.golds).items()
    assert {each.key for each in found.questions} | set(found.left_out) == {each.key for each in plain.questions}
    assert bool(found.left_out) == bool(found.notes)
    before = {each.key: each for each in plain.questions}
    assert all(each.option_numbers == before[each.key].option_numbers for each in found.questions)


def test_the_question_or_the_options_are_withheld() -> None:
    plain, without_stem, without_options = _load(), _load("question_withheld"), _load("options_withheld")
    assert len(without_stem) == len(without_options) == len(plain)
    for key, question in plain.items():
        assert without_stem[key].asked == "(The question is not shown.)"
        assert without_stem[key].options == question.options
        assert without_stem[key].image is None
        assert without_options[key].stem == question.stem
        assert {option.text for option in without_options[key].options} == {"(This option is not shown.)"}


def test_the_right_option_becomes_none_of_the_others() -> None:
    golds, plain = load_exam_set(DatasetSpec()).golds, _load()
    for key, question in _load("none_of_the_above").items():
        for now, before in zip(question.options, plain[key].options, strict=True):
            right = now.number == golds[key].number
            assert now.text == ("None of the other options." if right else before.text)


def test_wrong_options_are_replaced_by_right_ones_of_the_same_discipline() -> None:
    data, plain = load_exam_set(DatasetSpec()), _load()
    right = {
        (each.exam.discipline, option.text)
        for each in data.questions
        for option in each.options
        if option.number == data.golds[each.key].number
    }
    for key, question in _load("options_replaced").items():
        texts = {option.text for option in plain[key].options}
        for option in question.options:
            assert (question.exam.discipline, option.text) in right
            assert (option.text in texts) == (option.number == data.golds[key].number)
        assert max(Counter(option.text for option in question.options).values()) == 1


def test_further_right_options_and_negated_questions_keep_theirs(own) -> None:
    rows = [
        {"id": f"q{n}", "question": f"Which is {n}?", "options": [f"{n}{letter}" for letter in "abcd"], "answer": "B"}
        for n in range(8)
    ]
    rows[0] |= {"id": "several", "answer": ["A", "C"]}
    rows[1] |= {"id": "negated", "question": "A man of 30. Which is NOT a cause?"}
    rows[2] |= {"id": "negada", "question": "Señale la respuesta INCORRECTA:"}
    rows[3] |= {"question": "The fever does not rise. What is the diagnosis?"}
    found = own(rows, "options_replaced")
    assert {*found.left_out} == {"negated", "negada"}
    texts = [option.text for option in found.questions[0].options]
    assert (texts[0], texts[2]) == ("0a", "0c")
    assert {"0b", "0d"}.isdisjoint(texts)


def test_a_question_is_continued_by_its_own_second_half_among_others_of_the_discipline() -> None:
    golds, plain = load_exam_set(DatasetSpec()).golds, _load()
    stems = {(each.exam.discipline, " ".join(each.stem.split())) for each in plain.values()}
    found = _load("question_continued")
    assert {key for key in plain if key not in found} == {k for k, each in plain.items() if len(each.stem.split()) < 8}
    for key, question in found.items():
        assert len(question.stem.split()) - len(plain[key].stem.split()) // 2 in {0, 1}
        for option in question.options:
            assert any(where == question.exam.discipline and stem.endswith(option.text) for where, stem in stems)
            whole = f"{question.stem} {option.text}" == " ".join(plain[key].stem.split())
            assert whole == (option.number == golds[key].number)


@pytest.mark.parametrize("how", ["options_replaced", "question_continued"])
def test_what_is_selected_and_in_which_order_changes_no_question(own, how: str) -> None:
    everything = _load(how)
    some = _load(how, limit=30)
    assert some.items() <= everything.items()
    assert {*some} <= {*_load(limit=30)}
    assert _load({"how": how, "seed": 3}) != everything
    rows = [
        {"id": each.key, "question": each.stem, "options": [option.text for option in each.options], "answer": "A"}
        for each in _load().values()
    ]
    once, again = own(rows, how), own(rows[::-1], how, "turned.jsonl")
    assert {one.key: one.printed for one in once.questions} == {one.key: one.printed for one in again.questions}


REFERRING = (
    *("All of the above.", "None is correct.", "Answers 2 and 3 are the correct ones.", "1 and 3 are correct."),
    *("1,2 and 3.", "Todas las respuestas anteriores son correctas.", "Ninguna de las anteriores."),
)
ALONE = (
    *("None, since the blockade produced by these drugs is irreversible.", "1,4-dihydropyridines (nifedipine)."),
    *("Evaluar la respuesta a dieta sin gluten.", "0,5 y 45 L/h.", "Eye opening, verbal response, motor response."),
)


def test_questions_whose_options_speak_of_the_others_are_left_out(own) -> None:
    rows = [
        {"id": text, "question": f"Which is {n}?", "options": ["x", "y", text], "answer": "A"}
        for n, text in enumerate(REFERRING + ALONE)
    ]
    found = own(rows, "none_of_the_above")
    assert {*found.left_out} == {*REFERRING}
    assert [question.key for question in found.questions] == [*ALONE]
    assert "7 of the data set's 12 questions" in found.notes[0]
    with pytest.raises(DatasetError, match="none of the selected questions can be altered by none_of_the_above"):
        own(rows[:1], "none_of_the_above")


def test_further_right_options_are_not_shown_beside_none_of_the_others(own) -> None:
    rows = [{"question": "Which?", "options": ["a", "b", "c", "d", "e"], "answer": ["B", "A", "C"]}]
    found = own(rows, "none_of_the_above")
    (question,) = found.questions
    gold = found.golds[question.key]
    shown = {option.number: option.text for option in question.options}
    assert (len(shown), shown[gold.number], gold.others) == (3, "None of the other options.", ())
    assert {"d", "e"} < {*shown.values()}


@pytest.fixture
def in_other_words(tmp_path):
    """`in_other_words(rows)`: the sample asked in the words of these rows."""

    def load(rows):
        path = write_rows(tmp_path / "paraphrases.jsonl", rows)
        return load_exam_set(DatasetSpec.model_validate({"alter": {"how": "paraphrased", "table": path}}))

    return load


def _rows(data) -> list[dict]:
    return [
        {
            "id": each.key,
            "stem": f"In other words: {each.stem}",
            "options": [option.text.upper() for option in each.options],
            "answer": each.option_numbers.index(data.golds[each.key].number) + 1,
        }
        for each in data.questions
    ]


def test_paraphrases_are_asked_under_the_same_keys_and_golds(in_other_words) -> None:
    plain = load_exam_set(DatasetSpec())
    found = in_other_words(_rows(plain)[:50])
    assert dict(found.golds) == {each.key: plain.golds[each.key] for each in plain.questions[:50]}
    assert len(found.left_out) == 70
    assert found.notes[0].endswith("the file has no paraphrase of them")
    for now, before in zip(found.questions, plain.questions, strict=False):
        # A file of one's own is read without signs of no width, which the exam's own texts have.
        assert now.stem == f"In other words: {before.stem}".replace("\u200b", "")
        assert [option.text for option in now.options] == [
            option.text.upper().replace("\u200b", "") for option in before.options
        ]
        assert now.option_numbers == before.option_numbers
        assert (now.exam, now.image) == (before.exam, before.image)
    other = in_other_words([{**row, "stem": "Which?"} for row in _rows(plain)[:50]])
    assert (other.fingerprint, other.files_digest) != (found.fingerprint, found.files_digest)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "headqa-v1/2013/biology/0"}, "is not a key of the data set"),
        ({"options": ["a", "b"], "answer": 1}, r"has another number of options than the data set \(5\)"),
        ({"answer": 9}, "names none of its 5 options"),
        (None, "or another right one"),
    ],
)
def test_paraphrases_that_do_not_fit_are_refused(in_other_words, change, said) -> None:
    rows = _rows(load_exam_set(DatasetSpec()))
    with pytest.raises(DatasetError, match=said):
        in_other_words([{**rows[0], **(change or {"answer": rows[0]["answer"] % 5 + 1})}, *rows[1:]])


def test_what_an_alteration_does_not_take_is_refused(tmp_path) -> None:
    for settings, problem in (
        ({"how": "paraphrased"}, "dataset.alter: paraphrased: missing a required .* 'table'"),
        ({"how": "options_withheld", "seed": 3}, "options_withheld seed 3: got an unexpected keyword argument 'seed'"),
        ({"how": "options_replaced", "table": tmp_path / "x.csv"}, "x.csv: does not exist"),
    ):
        with pytest.raises(MedExamError, match=problem):
            _load(settings)
    with pytest.raises(ValueError, match=r"is none of none_of_the_above, .*: did you mean options_replaced"):
        _load("option_replaced")


def test_every_language_has_its_words(tmp_path) -> None:
    path = write_rows(tmp_path / "mine.jsonl", [{"question": "Which?", "options": ["a", "b"], "answer": "A"}])
    spec = {"kind": "choice", "path": path, "alter": "none_of_the_above"}
    found = [load_exam_set(DatasetSpec.model_validate({**spec, "language": each})) for each in get_args(Language)]
    assert len({data.questions[0].options[0].text for data in found}) == len(get_args(Language))
