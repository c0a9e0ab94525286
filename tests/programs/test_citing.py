"""Citations: how passages are numbered, what the reply may name, and what is made of it."""

import pytest

from medexam.errors import SpecError
from one_question import SHOWN

FOUND = [(name, "", f"{name} " * 90 + "text.", 9.0 - n) for n, name in enumerate("abc", start=1)]
CITE = {"kind": "retrieve_then_answer", "k": 3, "cite": True}


@pytest.fixture
def cite(ask, finder):
    return lambda replies, **fields: ask({**CITE, "retriever": finder(FOUND), **fields}, replies)


@pytest.mark.parametrize(
    ("reply", "answer", "cited"),
    [
        ("{Answer: 3} [2]", 3, 2),
        ("{Answer: 3}\n\n[ 1 ].", 3, 1),
        ("{Answer: 3} [0]", 3, 0),
        ("{Answer: 3} [4]", 3, None),
        ("[2] says so. {Answer: 3}", 3, None),
        ("{Answer: 3}", 3, None),
        ("none [2]", None, None),
    ],
)
def test_a_free_reply_names_the_passage_behind_its_answer(cite, reply, answer, cited) -> None:
    asked = cite(reply)
    (turn,) = asked.turns
    assert turn.startswith("[1] a a ")
    assert "\n\n[3] c c " in turn
    assert turn.endswith(SHOWN)
    assert "Behind your answer, write in square brackets the number of the passage" in turn.split("\n\n")[-2]
    assert (asked.said.answer, asked.said.cited, asked.said.reply) == (answer, cited, reply)


def test_the_last_answer_is_the_one_that_cites(cite) -> None:
    said = cite("{Answer: 1} [1] no, {Answer: 2} [2] [3]", then="chain_of_thought").said
    assert (said.answer, said.cited) == (2, 2)


@pytest.mark.parametrize("then", ["zero_shot", "chain_of_thought", "few_shot"])
def test_a_guided_citation_continues_the_guided_answer(cite, then) -> None:
    asked = cite("Because.\n{Answer: 3} [2]", then=then, answer_format="guided")
    *_, answering, naming = asked.dialogues
    assert (answering.choices, naming.choices) == (("1", "2", "3", "4", "5"), ("0", "1", "2", "3"))
    assert naming.messages == answering.messages
    assert naming.opening == f"{answering.opening}{asked.said.answer}}} ["
    assert asked.said.reply == f"{naming.opening}{asked.said.cited}"


def test_only_passages_that_are_shown_can_be_named(cite) -> None:
    small = lambda turn: {"error": "context"} if len(turn) > 620 else "{Answer: 3} [2]"  # noqa: E731
    asked = cite(small, answer_format="guided")
    assert asked.dialogues[-1].choices == ("0", "1", "2")
    assert asked.said.passages_cut > 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cite": False, "retrieval_prompt": "x"}, "retrieval_prompt changes nothing"),
        ({"samples": 3}, "takes no samples"),
        ({"orders": "cyclic"}, "takes no samples"),
    ],
)
def test_what_cannot_be_cited_is_refused(cite, fields, message) -> None:
    with pytest.raises(SpecError, match=message):
        cite("x", **fields)
