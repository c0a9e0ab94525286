"""Guided answers for any signature: each output is begun, and a choice has no value but a legal one."""

import math
from enum import Enum
from typing import Literal

import dspy
import pytest

from asked import requests_of
from medexam.programs import OptionProbabilities
from medexam.serve import ScriptedEngine
from medexam.signatures.guided import GuidedAdapter, asked_options
from recorded import recorded


class Stage(Enum):
    EARLY = "early"
    LATE = "late"


def _ask(signature, reply="whatever", numbers=(), **inputs):
    engine = ScriptedEngine({"*": reply})
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0, max_tokens=20)
    with dspy.context(lm=lm, adapter=GuidedAdapter()), asked_options(numbers):
        said = dspy.Predict(signature)(**(inputs or {"question": "Which?"}))
    return said, requests_of(engine)


@pytest.mark.parametrize(
    ("kind", "choices"),
    [
        (Literal["a", "b"], ["a", "b"]),
        (Literal[1, 2], ["1", "2"]),
        (Stage, ["early", "late"]),
        (bool, ["True", "False"]),
        (int, ["4", "5"]),
    ],
)
def test_a_choice_is_attached_to_its_output_alone(kind, choices) -> None:
    signature = dspy.Signature("question -> reason").append("answer", dspy.OutputField(), kind)
    said, requests = _ask(signature, "Because [[ ## answer ## ]] nonsense", numbers=(4, 5))
    free, chosen = requests
    assert said.reason == "Because"
    assert str(said.answer.value if isinstance(said.answer, Enum) else said.answer) in choices
    assert (free.config.extensions, chosen.config.extensions["choice"]) == (None, choices)
    assert free.messages[-1].text == "[[ ## reason ## ]]\n"
    assert chosen.messages[-1].text == "[[ ## reason ## ]]\nBecause\n\n[[ ## answer ## ]]\n"


def test_an_int_without_options_is_free_and_may_not_parse() -> None:
    with pytest.raises(dspy.utils.exceptions.AdapterParseError):
        _ask("question -> answer: int", "none")


def test_it_asks_once_for_each_output() -> None:
    said, requests = _ask("question -> a, b, c", "x")
    assert (said.a, said.b, said.c, len(requests)) == ("x", "x", "x", 3)


async def test_it_does_the_same_without_blocking() -> None:
    lm = dspy.LM("medexam/scripted", **recorded(ScriptedEngine({"*": "2"})), cache=False, num_retries=0)
    with dspy.context(lm=lm, adapter=GuidedAdapter()), asked_options((1, 2)):
        said = await dspy.Predict("question -> answer: int").acall(question="Which?")
    assert said.answer == 2


def test_choices_are_weighed_by_their_probabilities() -> None:
    engine = ScriptedEngine({"*": {"text": "x", "logprobs": [[-1.0], [-0.25], [-3.0]]}})
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm), asked_options((2, 5, 7)):
        said = OptionProbabilities("question -> answer: int")(question="Which?")
    weights = [math.exp(value) for value in (-1.0, -0.25, -3.0)]
    assert said.answer == 5
    assert said.probabilities["answer"] == pytest.approx(
        {str(number): weight / sum(weights) for number, weight in zip((2, 5, 7), weights, strict=True)}
    )
