"""Choices of another harness's file whose options' texts are letters or numbers."""

import pytest

from medexam.companions.harnesses.imports.answers import ChoiceReader, possible_choices
from medexam.companions.harnesses.imports.samples import HarnessSample
from medexam.questions import Gold, Question

VITAMINS = Question.of("Which vitamin?", ["A", "C", "D", "E"], key="own/vitamin")
COUNTS = Question.of("How many chambers?", ["3", "4", "5", "6"], key="own/chambers")
NAMES = Question.of("Which drug?", ["Ivermectin", "Zinc", "Iron", "Insulin"], key="own/drug")


def _chosen(**by_question):
    questions = {"vitamins": VITAMINS, "counts": COUNTS, "names": NAMES}
    pairs = [(HarnessSample(choice=choice), questions[name], Gold(number=1)) for name, choice in by_question.items()]
    reader = ChoiceReader(pairs)
    return [reader.chosen(question) for _, question, _ in pairs]


@pytest.mark.parametrize("target", ["D", "(D)", "Answer: D"])
def test_a_letter_that_is_an_options_text_has_two_forms(target) -> None:
    expected = {"letter": 4, "text": 3} if "Answer" not in target else {"letter": 4}
    assert possible_choices(target, VITAMINS, VITAMINS.option_numbers) == expected


@pytest.mark.parametrize(
    ("others", "vitamin", "count"),
    [
        ({}, None, None),
        ({"names": "B"}, 4, None),
        ({"names": "2"}, None, 3),
        ({"names": "Zinc"}, 3, 1),
        ({"names": 1}, None, None),
    ],
)
def test_a_doubtful_choice_is_read_as_the_file_writes_the_others_or_not_at_all(others, vitamin, count) -> None:
    assert _chosen(vitamins="D", counts="3", **others)[:2] == [vitamin, count]


def test_a_choice_whose_forms_agree_is_no_doubt() -> None:
    assert _chosen(vitamins="A") == [1]
    assert _chosen(counts="4") == [None]
    assert _chosen(counts="5") == [3]


def test_what_is_right_and_what_is_chosen_may_be_written_in_two_ways() -> None:
    pairs = [
        (HarnessSample(choice="D", target="D"), VITAMINS, Gold(number=3)),
        (HarnessSample(choice="B", target="Zinc"), NAMES, Gold(number=2)),
    ]
    reader = ChoiceReader(pairs)
    assert (reader.chosen(VITAMINS), reader.target(VITAMINS)) == (4, 3)
