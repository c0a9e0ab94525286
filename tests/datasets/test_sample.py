"""The questions that ship in the package, and what every data set promises of its answers."""

import hashlib
from collections import Counter

import pytest

from medexam.datasets import load_exam_set, locate_files, make_exam_set
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec


@pytest.mark.parametrize("language", ["en", "es"])
def test_sample_holds_four_questions_of_each_exam(language) -> None:
    exam_set = load_exam_set(DatasetSpec(language=language))
    exams = Counter((question.exam.discipline, question.exam.year) for question in exam_set.questions)
    assert set(exams.values()) == {4}
    assert len(exams) == 30
    assert Counter(len(question.options) for question in exam_set.questions) == {4: 72, 5: 48}
    assert (exam_set.name, exam_set.language, exam_set.version) == ("headqa_sample", language, "1.0")
    assert (exam_set.left_out, exam_set.licence) == ((), "MIT")
    assert all(question.language == language and question.image is None for question in exam_set.questions)


def test_both_languages_ask_the_same_questions() -> None:
    english, spanish = (load_exam_set(DatasetSpec(language=language)) for language in ("en", "es"))
    assert [question.key for question in english.questions] == [question.key for question in spanish.questions]
    assert dict(english.golds) == dict(spanish.golds)
    assert english.fingerprint != spanish.fingerprint
    assert all(one.stem != two.stem for one, two in zip(english.questions, spanish.questions, strict=True))


def test_a_question_is_read_as_it_was_printed() -> None:
    question = load_exam_set(DatasetSpec()).questions[0]
    assert (question.key, question.number) == ("headqa-v1/2013/biology/8", 8)
    assert (question.exam.name, question.option_numbers) == ("Cuaderno_2013_1_B", (1, 2, 3, 4, 5))
    assert question.stem == "In the layer closest to the pigment epithelium of the retina are the cells:"


def test_the_answer_key_holds_the_golds_of_the_selection_only() -> None:
    exam_set = load_exam_set(DatasetSpec(disciplines=("nursing",), limit=5))
    assert set(exam_set.golds) == {question.key for question in exam_set.questions}
    assert all(exam_set.golds[question.key].number in question.option_numbers for question in exam_set.questions)
    with pytest.raises(DatasetError, match="headqa-v1/2013/biology/8"):
        exam_set.golds["headqa-v1/2013/biology/8"]


def test_questions_of_code_have_golds_among_their_options(question) -> None:
    exams = make_exam_set(DatasetSpec(), [(question, 3)], source="made by code", version="1")
    assert (exams.questions, exams.golds[question.key].number) == ((question,), 3)
    with pytest.raises(DatasetError, match="the right answer 6 is none of its options"):
        make_exam_set(DatasetSpec(), [(question, 6)], source="made by code", version="1")


def test_provenance_names_the_files_as_they_are() -> None:
    folder = locate_files("headqa_sample", "en")[0].parent
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for name in ("HEAD.json", "HEAD_EN.json"):
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() in readme
    assert "January 14th, 2019" in readme
