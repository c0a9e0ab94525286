"""Questions are frozen, hashable and light, and are read and written as pydantic's models are."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest
from pydantic import ValidationError

from medexam.questions import Question


def test_a_question_goes_into_json_and_back(question) -> None:
    fields = question.model_dump(mode="json")
    assert fields["exam"] == {
        "name": "Cuaderno_2013_1_B",
        "year": 2013,
        "discipline": "biology",
        "split": None,
        "independent": False,
    }
    assert fields["options"][0]["number"] == 1
    assert Question.model_validate(fields) == question
    assert Question.model_validate(question) is question


def test_a_question_is_a_value(question) -> None:
    for same in (question.model_copy(), copy.deepcopy(question), pickle.loads(pickle.dumps(question))):
        assert same == question
        assert hash(same) == hash(question)
    assert question.model_copy(update={"stem": "Another?"}).stem == "Another?"
    with pytest.raises(FrozenInstanceError):
        question.stem = "Another?"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"options": [{"number": 1, "text": "a"}]}, "at least two options, this one has 1"),
        ({"options": [{"number": 1, "text": "a"}] * 2}, r"same number: \[1, 1\]"),
        ({"gold": 1}, "Unexpected keyword argument"),
        ({"language": "nl"}, "Input should be 'ca'"),
        ({"number": "seventeen"}, "valid integer"),
    ],
)
def test_what_is_no_question_is_refused(question, change, words) -> None:
    with pytest.raises(ValidationError, match=words):
        Question.model_validate(question.model_dump() | change)
