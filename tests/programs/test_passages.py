"""Programs that see passages: where these stand in a prompt, and what happens where they do not fit."""

import pytest

from medexam.errors import SpecError
from medexam.predictions import Reason, Status
from one_question import OPTIONS, SHOWN, STEM

LONG = "word " * 200 + "end."
FOUND = [("a", "Potentials", LONG, 5.0), ("b", "", "Short.", 4.0)]
BEFORE = f"Potentials\n{LONG}\n\nShort.\n\n"
RAG = {"kind": "retrieve_then_answer"}


@pytest.fixture
def behind(ask, finder):
    """`behind(program, replies)` -> what came of a question behind two passages."""
    return lambda program, replies, **more: ask({**program, "retriever": finder(FOUND)}, replies, **more)


def test_passages_stand_before_the_question(behind) -> None:
    asked = behind(RAG, "{Answer: 2}")
    assert asked.turns == [BEFORE + SHOWN]
    assert (asked.said.answer, asked.said.passages_cut) == (2, 0)
    assert [(one.id, one.source, one.score) for one in asked.said.passages] == [("a", "test", 5.0), ("b", "test", 4.0)]


@pytest.mark.parametrize("form", ["free", "guided"])
def test_reasoning_sees_the_passages_in_every_call(behind, form) -> None:
    asked = behind({**RAG, "then": "chain_of_thought", "answer_format": form}, "It adds up. {Answer: 3}")
    assert len(asked.turns) == (2 if form == "guided" else 1)
    assert all(turn.startswith("Potentials\n") for turn in asked.turns)
    assert asked.said.rationale == "It adds up."


def test_solved_examples_stand_before_the_passages(ask, behind) -> None:
    (shown,) = behind({**RAG, "then": "few_shot"}, "{Answer: 2}").dialogues
    (alone,) = ask("few_shot", "{Answer: 2}").dialogues
    assert len(alone.messages) > 3
    assert shown.messages[:-1] == alone.messages[:-1]
    assert shown.messages[-1]["content"] == BEFORE + alone.messages[-1]["content"]
    with pytest.raises(SpecError, match="examples belongs to few_shot"):
        behind({**RAG, "examples": "mine.yaml"}, "x")


@pytest.mark.parametrize(
    ("query", "looked_up"),
    [
        ("stem", [STEM]),
        ("stem_and_options", ["\n".join([STEM, *OPTIONS])]),
        ("per_option", [f"{STEM} {option}" for option in OPTIONS]),
    ],
)
def test_a_question_is_looked_up_by_its_own_text(ask, finder, query, looked_up) -> None:
    by_query = "[Hit(Passage(query, '', query, 'test'), 1.0, 1)]"
    asked = ask({**RAG, "query": query, "k": 5, "retriever": finder(by_query)}, "{Answer: 1}")
    assert [one.id for one in asked.said.passages] == looked_up


def test_option_texts_are_read_behind_the_passages(behind) -> None:
    rows = [[-1.0] * len(text.split()) for text in OPTIONS]
    rows[0][0] = -0.5
    asked = behind({"kind": "likelihood", "context": "retrieved"}, {"*": {"logprobs": rows}})
    assert asked.turns == [BEFORE + STEM]
    assert (asked.said.answer, len(asked.said.passages)) == (1, 2)


def test_passages_are_cut_and_the_question_never(behind) -> None:
    asked = behind(RAG, lambda turn: {"error": "context"} if len(turn) > 700 else "{Answer: 2}")
    assert len(asked.turns) > 1
    assert all(turn.endswith(SHOWN) for turn in asked.turns)
    assert asked.said.answer == 2
    assert asked.said.passages_cut == len(BEFORE + SHOWN) - len(asked.turns[-1]) > 0
    never = behind(RAG, {"*": {"error": "context"}}).said
    assert (never.status, never.reason) == (Status.UNANSWERED, Reason.CONTEXT_OVERFLOW)


def test_relevance_takes_the_first_of_the_best(ask, finder) -> None:
    best = "Hit(Passage('a', '', 'A.', 'test'), 2.0 if 'added' in query or 'spread' in query else 1.0, 1)"
    found = f"[{best}, Hit(Passage('b', '', 'B.', 'test'), 0.9 if 'added' in query else 0.95, 2)]"
    said = ask({"kind": "relevance", "retriever": finder(found)}, "x").said
    assert (said.answer, [one.id for one in said.passages]) == (3, ["a"])
