"""Iterative retrieval: which queries are taken, what later calls see, what is kept, and what a call costs."""

import pytest

from medexam.errors import SpecError
from one_question import BY_QUERY, SHOWN

WRITTEN = [
    "1. what is an EPSP\n2. what is an IPSP",
    "- summation of potentials\n- what is an EPSP",
    "3) refractory period",
]
LOOKED_UP = [["what is an EPSP", "what is an IPSP"], ["summation of potentials"], ["refractory period"]]


@pytest.fixture
def search(ask, finder):
    def call(reply=None, **fields):
        written = iter(WRITTEN)

        def usual(turn):
            if "Write" in turn:
                return next(written)
            return "It is a potential." if turn.startswith("Passages:") else "{Answer: 3}"

        model = fields.pop("model", {})
        program = {"kind": "iterative_retrieval", "k": 2, "retriever": finder(BY_QUERY), **fields}
        return ask(program, reply or usual, model=model)

    return call


def test_each_round_sees_what_was_answered_before_and_all_is_kept(search) -> None:
    asked = search()
    said, first = asked.said, asked.said.rounds[0][0]
    assert [[one.query for one in done] for done in said.rounds] == LOOKED_UP
    assert [one.id for one in first.passages] == ["what is an EPSP/1", "what is an EPSP/2"]
    assert first.answer == "It is a potential."
    assert len(asked.turns) == len(said.calls) == 3 + 4 + 1
    notes = [f"Query: {query}\nAnswer: It is a potential." for done in LOOKED_UP for query in done]
    assert asked.turns[-1] == "\n\n".join([*notes, SHOWN])
    shown = "Passages:\nOn what is an EPSP, 1.\n\nOn what is an EPSP, 2.\n\nQuery:\nwhat is an EPSP"
    assert asked.turns[1].startswith(shown)
    assert (said.answer, said.reply, len(said.passages), said.passages_cut) == (3, "{Answer: 3}", 8, 0)


def test_passages_can_be_kept_instead_of_answers(search) -> None:
    asked = search(keep="passages", answer_format="guided")
    assert len(asked.turns) == 4
    assert all(one.answer is None for done in asked.said.rounds for one in done)
    assert asked.turns[-1].startswith("On what is an EPSP, 1.\n\nOn what is an EPSP, 2.\n\nOn what is an IPSP, 1.")
    assert asked.said.answer is not None


def test_notes_are_cut_where_they_do_not_fit_and_the_question_never(search) -> None:
    def small(turn):
        return {"error": "context"} if len(turn) > 520 else WRITTEN[0] if "Write" in turn else "{Answer: 3}"

    asked = search(small, keep="passages", k=9, rounds=1)
    assert asked.said.passages_cut > 0
    assert asked.turns[-1].endswith(SHOWN)


@pytest.mark.parametrize(
    ("written", "queries"),
    [
        ("1. aspirin dose\n2) aspirin toxicity\n3. third", ["aspirin dose", "aspirin toxicity"]),
        ('- "aspirin dose"\n\n* **aspirin toxicity**', ["aspirin dose", "aspirin toxicity"]),
        ("Query 1: aspirin dose\nAspirin Dose\nnew", ["aspirin dose", "new"]),
        ("", []),
        ("?!\n--", []),
        ("x" * 500, ["x" * 300]),
        ("5-HT receptor", ["5-HT receptor"]),
    ],
)
def test_queries_are_read_line_by_line(search, written, queries) -> None:
    asked = search(lambda turn: written if "Write" in turn else "{Answer: 2}", queries=2, rounds=1, keep="passages")
    assert [one.query for done in asked.said.rounds for one in done] == queries
    assert asked.said.answer == 2


def test_the_question_may_be_asked_several_times_at_the_end(search) -> None:
    asked = search(samples=3, model={"temperature": 0.7})
    assert len(asked.turns) == 3 + 4 + 3
    assert asked.said.votes == (3, 3, 3)
    with pytest.raises(SpecError, match="notes may name options by number"):
        search(orders="cyclic")
