"""Iterative retrieval: which queries are taken, what later calls see, what is kept, and what a call costs."""

import asyncio

import dspy
import pytest
from pydantic import ValidationError

from asked import requests_of
from medexam.programs import ProgramContext, build_prediction, build_program, read_again
from medexam.programs.replay import replay
from medexam.programs.steps.asides import read_queries
from medexam.retrievers import Hit, Passage
from medexam.serve import ScriptedEngine
from medexam.signatures import render_question
from medexam.specs.programs.behind_passages import IterativeRetrievalSpec
from recorded import recorded

WRITTEN = [
    "1. what is an EPSP\n2. what is an IPSP",
    "- summation of potentials\n- what is an EPSP",
    "3) refractory period",
]


class Search:
    """Finds two passages that are named after the query."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def search(self, queries, k):
        self.asked.append(list(queries))
        return [
            [
                Hit(Passage(f"{query}/{rank}", "", f"On {query}, {rank}.", "test"), 1 / rank, rank)
                for rank in range(1, k + 1)
            ]
            for query in queries
        ]

    async def asearch(self, queries, k):
        return self.search(queries, k)


def reply(turn: str) -> str:
    if "{Answer: [number]}" in turn or turn.startswith("Query: "):
        return "{Answer: 3}"
    if "Write 2 short queries" in turn:
        return (
            WRITTEN[0]
            if "Known so far" not in turn
            else WRITTEN[1 if "IPSP" in turn and "summation" not in turn else 2]
        )
    return "It is a potential."


def ask(spec, question, *, wait: bool = True):
    engine, search = ScriptedEngine(reply), Search()
    program = build_program(spec, "en", ProgramContext(search=search))
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        said = program(question=question) if wait else asyncio.run(program.acall(question=question))
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    turns = [[one.text for one in request.messages if one.role == "user"][-1] for request in requests_of(engine)]
    return program, prediction, turns, search


def iterative(**fields) -> IterativeRetrievalSpec:
    return IterativeRetrievalSpec(kind="iterative_retrieval", **fields)


@pytest.mark.parametrize("wait", [True, False])
def test_each_round_sees_what_was_answered_before_and_all_is_kept(question, wait) -> None:
    program, prediction, turns, search = ask(iterative(), question, wait=wait)
    assert search.asked == [["what is an EPSP", "what is an IPSP"], ["summation of potentials"], ["refractory period"]]
    assert [[one.query for one in done] for done in prediction.rounds] == search.asked
    first = prediction.rounds[0][0]
    assert [one.id for one in first.passages] == ["what is an EPSP/1", "what is an EPSP/2"]
    assert first.answer == "It is a potential."
    assert len(turns) == len(prediction.generations) == 3 + 4 + 1 <= program.calls_for(question) == 10
    notes = [f"Query: {query}\nAnswer: It is a potential." for done in search.asked for query in done]
    assert turns[-1] == "\n\n".join([*notes, render_question(question)])
    assert turns[1].startswith("Passages:\nOn what is an EPSP, 1.\n\nOn what is an EPSP, 2.\n\nQuery:\nwhat is an EPSP")
    assert (prediction.answer, prediction.reply) == (3, "{Answer: 3}")
    assert len(prediction.passages) == 8
    assert prediction.passages_cut == 0


def test_passages_can_be_kept_instead_of_answers(question) -> None:
    program, prediction, turns, _ = ask(iterative(keep="passages", answer_format="guided"), question)
    assert program.calls_for(question) == 4
    assert all(one.answer is None for done in prediction.rounds for one in done)
    assert turns[-1].startswith("On what is an EPSP, 1.\n\nOn what is an EPSP, 2.\n\nOn what is an IPSP, 1.")
    assert prediction.answer is not None


def test_a_model_without_queries_answers_without_passages(question) -> None:
    spec = iterative()
    engine, search = ScriptedEngine(lambda turn: "{Answer: 2}" if "Write" not in turn else "...\n\n-"), Search()
    program = build_program(spec, "en", ProgramContext(search=search))
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        said = program(question=question)
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    assert (prediction.rounds, prediction.passages, prediction.answer, search.asked) == ((), (), 2, [])


def test_notes_are_cut_where_they_do_not_fit_and_the_question_never(question) -> None:
    def small(turn: str):
        return {"error": "context"} if len(turn) > 520 else reply(turn)

    engine, search = ScriptedEngine(small), Search()
    program = build_program(iterative(keep="passages", k=9, rounds=1), "en", ProgramContext(search=search))
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        said = program(question=question)
    assert said.passages_cut > 0
    assert requests_of(engine)[-1].messages[-1].text.endswith(render_question(question))


def test_prompts_are_known_again_from_the_stored_replies(question) -> None:
    spec = iterative(then="chain_of_thought", answer_format="guided")
    program, prediction, turns, _ = ask(spec, question)
    prompts, said, _ = replay(program, question, [one.text for one in prediction.generations])
    assert [[turn["content"] for turn in one if turn["role"] == "user"][-1] for one in prompts] == turns
    assert said.answer == prediction.answer
    assert read_again(program, question, prediction) == prediction


@pytest.mark.parametrize(
    ("written", "queries"),
    [
        ("1. aspirin dose\n2) aspirin toxicity\n3. third", ["aspirin dose", "aspirin toxicity"]),
        ('- "aspirin dose"\n\n* **aspirin toxicity**', ["aspirin dose", "aspirin toxicity"]),
        ("Query 1: aspirin dose\nAspirin Dose\nnew", ["aspirin dose", "new"]),
        ("known", []),
        ("", []),
        ("?!\n--", []),
        ("x" * 500, ["x" * 300]),
        ("5-HT receptor", ["5-HT receptor"]),
    ],
)
def test_queries_are_read_line_by_line(written, queries) -> None:
    assert read_queries(written, 2, ["Known"]) == queries


@pytest.mark.parametrize("fields", [{"samples": 3}, {"orders": "cyclic"}, {"load": "folder"}])
def test_what_asks_several_times_is_refused(fields) -> None:
    with pytest.raises(ValidationError, match="takes no samples, orders or load"):
        iterative(**fields)
