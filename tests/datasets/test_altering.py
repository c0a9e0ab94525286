"""Altered questions: what is shown, what stays, and what cannot be altered."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from medexam.datasets import load_exam_set
from medexam.datasets.altering.rows import alter_rows
from medexam.datasets.altering.words import refers_to_options
from medexam.datasets.rows import Row
from medexam.errors import DatasetError
from medexam.questions import ExamSet, Option, Question
from medexam.specs import DatasetSpec
from medexam.specs.dataset import Alteration, MadeAlteration
from medexam.text import is_negated


def _load(alter: Alteration | None = None, **more: object) -> dict[str, Question]:
    return {each.key: each for each in load_exam_set(DatasetSpec.model_validate({"alter": alter, **more})).questions}


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("how", get_args(MadeAlteration))
def test_the_right_options_number_stays(how: Alteration, language: str) -> None:
    plain = load_exam_set(DatasetSpec(language=language))
    found = load_exam_set(DatasetSpec(language=language, alter=how))
    assert {each.key: found.golds[each.key] for each in found.questions}.items() <= dict(plain.golds).items()
    assert {each.key for each in found.questions} | set(found.left_out) == {each.key for each in plain.questions}
    assert bool(found.left_out) == bool(found.notes)
    before = {each.key: each for each in plain.questions}
    assert all(each.option_numbers == before[each.key].option_numbers for each in found.questions)


def test_the_question_is_withheld() -> None:
    plain = _load()
    for key, question in _load("question_withheld").items():
        assert question.asked == "(The question is not shown.)"
        assert question.options == plain[key].options
        assert question.image is None


def test_the_options_are_withheld() -> None:
    plain = _load()
    for key, question in _load("options_withheld").items():
        assert question.stem == plain[key].stem
        assert {option.text for option in question.options} == {"(This option is not shown.)"}


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
        own = {option.text for option in plain[key].options}
        for option in question.options:
            assert (question.exam.discipline, option.text) in right
            assert (option.text in own) == (option.number == data.golds[key].number)
        assert max(Counter(option.text for option in question.options).values()) == 1


def test_a_question_is_continued_by_its_own_second_half_among_others_of_the_discipline() -> None:
    golds, plain = load_exam_set(DatasetSpec()).golds, _load()
    stems = {(each.exam.discipline, each.stem) for each in plain.values()}
    found = _load("question_continued")
    assert {key for key in plain if key not in found} == {k for k, each in plain.items() if len(each.stem.split()) < 8}
    for key, question in found.items():
        assert len(question.stem.split()) - len(plain[key].stem.split()) // 2 in {0, 1}
        for option in question.options:
            assert any(
                where == question.exam.discipline and " ".join(stem.split()).endswith(option.text)
                for where, stem in stems
            )
            whole = f"{question.stem} {option.text}" == " ".join(plain[key].stem.split())
            assert whole == (option.number == golds[key].number)


@pytest.mark.parametrize("how", ["options_replaced", "question_continued"])
def test_what_is_selected_and_in_which_order_changes_no_question(how: Alteration) -> None:
    everything = _load(how)
    some = _load(how, limit=30)
    assert some.items() <= everything.items()
    assert {*some} <= {*_load(limit=30)}
    assert _load(how, alter_seed=3) != everything
    rows = [Row(each, 1) for each in _load().values()]
    once = {row.question.key: row for row in alter_rows(rows, how, 17).rows}
    again = {row.question.key: row for row in alter_rows(rows[::-1], how, 17).rows}
    assert once == again


@pytest.mark.parametrize(
    ("text", "refers"),
    [
        ("All of the above.", True),
        ("None is correct.", True),
        ("Answers 2 and 3 are the correct ones.", True),
        ("1 and 3 are correct.", True),
        ("1,2 and 3.", True),
        ("Todas las respuestas anteriores son correctas.", True),
        ("Ninguna de las anteriores.", True),
        ("None, since the blockade produced by these drugs is irreversible.", False),
        ("1,4-dihydropyridines (nifedipine).", False),
        ("Evaluar la respuesta a dieta sin gluten.", False),
        ("0,5 y 45 L/h.", False),
        ("Eye opening, verbal response, motor response.", False),
    ],
)
def test_options_that_speak_of_the_others_are_known(text: str, refers: bool) -> None:
    assert refers_to_options(text) == refers


def test_a_negated_stem_is_one_whose_last_sentence_is() -> None:
    assert is_negated("A man of 30. Which is NOT a cause?")
    assert is_negated("Señale la respuesta INCORRECTA:")
    assert not is_negated("The fever does not rise. What is the diagnosis?")


def test_what_cannot_be_altered_is_left_out(question: Question) -> None:
    options = (*question.options[:4], Option(number=5, text="All of the above."))
    referring = Row(question.model_copy(update={"options": options}), 5)
    for how in ("none_of_the_above", "options_replaced"):
        found = alter_rows([referring], how, 17)
        assert (found.rows, found.unfit) == ((), (question.key,))
        assert "1 of the data set's 1 questions" in str(found.note)
    several = Row(question, 2, (1, 3))
    (row,) = alter_rows([several], "none_of_the_above", 17).rows
    assert row.others == ()
    assert row.question.option_numbers == (2, 4, 5)
    assert alter_rows([replace(several, gold=None)], "question_withheld", 17).rows == ()


def test_nothing_left_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("question,A,B,answer\nWhich is it?,All of them,None of the above,A\n", encoding="utf-8")
    spec = DatasetSpec.model_validate({"kind": "choice", "path": path, "columns": {"options": ["A", "B"]}})
    spec = spec.model_copy(update={"alter": "none_of_the_above"})
    with pytest.raises(DatasetError, match="none of the selected questions can be altered by none_of_the_above"):
        load_exam_set(spec)


@pytest.fixture
def in_other_words(tmp_path: Path):
    """`in_other_words(rows)` -> the sample asked in the words of these rows."""

    def load(rows: list[dict[str, object]]) -> ExamSet:
        path = tmp_path / "paraphrases.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return load_exam_set(DatasetSpec.model_validate({"alter": "paraphrased", "paraphrases": path}))

    return load


def _rows(data: ExamSet) -> list[dict[str, object]]:
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
        assert now.stem == f"In other words: {before.stem}"
        assert now.option_numbers == before.option_numbers
        assert (now.exam, now.image) == (before.exam, before.image)
    other = in_other_words([{**row, "stem": "Which?"} for row in _rows(plain)[:50]])
    assert (other.fingerprint, other.files_digest) != (found.fingerprint, found.files_digest)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "headqa-v1/2013/biology/0"}, "is not a key of the data set"),
        ({"options": ["a", "b"], "answer": 1}, "has 2 options, and the data set's question has 5"),
        ({"answer": 9}, "names none of its 5 options"),
    ],
)
def test_paraphrases_that_do_not_fit_are_refused(in_other_words, change, said) -> None:
    rows = _rows(load_exam_set(DatasetSpec()))
    with pytest.raises(DatasetError, match=said):
        in_other_words([{**rows[0], **change}, *rows[1:]])
    wrong = {**rows[0], "answer": rows[0]["answer"] % 5 + 1}
    with pytest.raises(DatasetError, match="has another right answer than the data set"):
        in_other_words([wrong, *rows[1:]])
