"""The three rules of the selection, one by one."""

import pytest

from medexam.companions.translation.layout import QuestionText
from medexam.companions.translation.selecting import SelectionRule, select, similarity
from medexam.companions.translation.validity import TranslationCandidate, TranslationFault


def candidate(setup, stem, *faults):
    return TranslationCandidate(
        setup, QuestionText("q", stem, ((1, "A."), (2, "B."))), tuple(faults), same_as_source=False
    )


BAD = TranslationFault.EMPTY_TEXT


def test_the_only_valid_one_is_taken_and_none_is_discarded() -> None:
    found = select(
        {
            "a": [candidate("x", "one", BAD), candidate("y", "two"), candidate("z", "three", BAD)],
            "b": [candidate("x", "one", BAD), candidate("y", "two", BAD), candidate("z", "three", BAD)],
        }
    )

    assert found.choices["a"].candidate.setup == "y"
    assert found.choices["a"].rule is SelectionRule.ONLY_VALID
    assert found.discarded == ("b",)


def test_of_two_the_setup_with_fewer_errors_over_all_questions_is_taken() -> None:
    found = select(
        {
            "a": [candidate("x", "one"), candidate("y", "two", BAD), candidate("z", "three")],
            "b": [candidate("x", "one", BAD), candidate("y", "two"), candidate("z", "three")],
        }
    )

    assert {key: choice.candidate.setup for key, choice in found.choices.items()} == {"a": "z", "b": "z"}
    assert {choice.rule for choice in found.choices.values()} == {SelectionRule.FEWER_ERRORS}


def test_of_three_the_two_most_similar_are_left_and_of_these_the_setup_with_fewer_errors() -> None:
    found = select(
        {
            "a": [candidate("x", "nothing alike"), candidate("y", "Which drug?"), candidate("z", "Which drugs?")],
            "b": [candidate("x", "one"), candidate("y", "two", BAD), candidate("z", "three")],
        }
    )

    assert found.choices["a"].candidate.setup == "z"
    assert found.choices["a"].rule is SelectionRule.MOST_SIMILAR
    assert 0.5 < found.choices["a"].similarity < 1


def test_a_tie_goes_to_the_setup_that_was_named_first() -> None:
    found = select({"a": [candidate("x", "same"), candidate("y", "same"), candidate("z", "same")]})

    assert found.choices["a"].candidate.setup == "x"
    assert found.choices["a"].similarity == 1


@pytest.mark.parametrize(
    ("one", "other", "value"), [("abc", "abc", 1), ("ABC  d", "abc d", 1), ("abc", "xyz", 0), ("", "", 1)]
)
def test_similarity_runs_from_0_to_1(one, other, value) -> None:
    assert similarity(one, other) == pytest.approx(value)


def test_similarity_is_dice_of_trigrams() -> None:
    # " ab ": ' ab', 'ab '; " abc ": ' ab', 'abc', 'bc '; one in common.
    assert similarity("ab", "abc") == pytest.approx(2 * 1 / (2 + 3))
