"""Guided answers for any signature: each output is begun, and a choice has no value but a legal one."""

import pytest

GUIDED = {"kind": "signature", "answer_format": "guided"}


@pytest.mark.parametrize(
    ("kind", "choices"), [("Literal['a', 'b']", ("a", "b")), ("Literal[1, 2]", ("1", "2")), ("bool", ("True", "False"))]
)
def test_a_choice_is_attached_to_its_output_alone(ask, kind, choices) -> None:
    signature = f"question -> reason, chosen: {kind}, answer: int"
    asked = ask({**GUIDED, "signature": signature}, "Because [[ ## chosen ## ]] nonsense")
    free, chosen, answer = asked.dialogues
    assert (free.choices, chosen.choices, answer.choices) == (None, choices, ("1", "2", "3", "4", "5"))
    assert free.opening == "[[ ## reason ## ]]\n"
    assert chosen.opening == "[[ ## reason ## ]]\nBecause\n\n[[ ## chosen ## ]]\n"
    assert str(asked.said.outputs["chosen"]) == choices[0]
    assert asked.said.answer == 1


def test_an_enum_is_a_choice_and_an_int_without_options_is_free(own_guided) -> None:
    asked = own_guided("""
from enum import Enum

class Stage(Enum):
    EARLY = "early"
    LATE = "late"

class X(dspy.Module):
    def __init__(self):
        super().__init__()
        signature = dspy.Signature("question -> answer: int").append("stage", dspy.OutputField(), Stage)
        self.ask = dspy.Predict(signature.append("years", dspy.OutputField(), int))

    def forward(self, question: str):
        return self.ask(question=question)
""")
    assert [one.choices for one in asked.dialogues] == [("1", "2", "3", "4", "5"), ("early", "late"), None]
    assert (asked.said.answer, asked.said.outputs["years"]) == (2, 2)


@pytest.fixture
def own_guided(ask, tmp_path):
    """`own_guided(source)` -> what came of a question to a module that is guided."""

    def call(source):
        (tmp_path / "mine.py").write_text(f"import dspy\n{source}")
        return ask({"kind": f"{tmp_path / 'mine.py'}:X", "answer_format": "guided"}, "2")

    return call
