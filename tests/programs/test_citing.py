"""Citations: how passages are numbered, what the reply may name, and what is made of it."""

import math

import dspy
import pytest
from pydantic import ValidationError

from asked import requests_of
from medexam.programs import ProgramContext, build_prediction, build_program, read_again
from medexam.programs.replay import replay
from medexam.retrievers import Hit, Passage
from medexam.serve import ScriptedEngine
from medexam.signatures import render_question
from medexam.signatures.citations import read_citation
from medexam.specs import RetrieveThenAnswerSpec
from recorded import recorded

HITS = [Hit(Passage(name, "", f"{name} " * 90 + "text.", "test"), 9.0 - n, n) for n, name in enumerate("abc", start=1)]
NOTE = "Behind your answer, write in square brackets the number of the passage"


class Finder:
    def find(self, question):
        return HITS


class Reader:
    def read_supports(self, question):
        return {"a": {3: math.log(0.9)}, "b": {3: math.log(0.25), 1: math.log(0.8)}}


def ask(question, reply, **fields):
    spec = RetrieveThenAnswerSpec(kind="retrieve_then_answer", k=3, cite=True, **fields)
    engine = ScriptedEngine(reply)
    program = build_program(spec, "en", ProgramContext(finder=Finder(), supports=Reader()))
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        said = program(question=question)
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    assert read_again(program, question, prediction) == prediction
    prompts, *_ = replay(program, question, [one.text for one in prediction.generations])
    assert prediction.passages_cut or [one[-1]["content"] for one in prompts] == [
        one.messages[-1].text for one in requests_of(engine)
    ]
    return prediction, requests_of(engine)


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
def test_a_free_reply_names_the_passage_behind_its_answer(question, reply, answer, cited) -> None:
    prediction, (request,) = ask(question, lambda _: reply)
    turn = [one.text for one in request.messages if one.role == "user"][-1]
    assert turn.startswith("[1] a a ")
    assert "\n\n[3] c c " in turn
    assert turn.endswith(render_question(question))
    assert NOTE in turn.removesuffix(render_question(question)).split("\n\n")[-2]
    assert (prediction.answer, prediction.cited, prediction.reply) == (answer, cited, reply)
    assert [one.id for one in prediction.passages] == ["a", "b", "c"]


@pytest.mark.parametrize("then", ["zero_shot", "chain_of_thought", "few_shot"])
def test_a_guided_citation_continues_the_guided_answer(question, then) -> None:
    prediction, requests = ask(question, lambda _: "Because.\n{Answer: 3} [2]", then=then, answer_format="guided")
    *_, asked, named = requests
    assert asked.config.extensions["choice"] == ["1", "2", "3", "4", "5"]
    assert named.config.extensions["choice"] == ["0", "1", "2", "3"]
    begun = asked.messages[-1].text
    assert named.messages[-1].text == f"{begun}{prediction.answer}}} ["
    assert [one.text for one in named.messages[:-1]] == [one.text for one in asked.messages[:-1]]
    assert prediction.reply == f"{begun}{prediction.answer}}} [{prediction.cited}]"
    assert prediction.cited in (0, 1, 2, 3)


def test_only_passages_that_are_shown_can_be_named(question) -> None:
    def small(turn: str):
        return {"error": "context"} if len(turn) > 620 else "{Answer: 3} [2]"

    prediction, requests = ask(question, small, answer_format="guided")
    assert requests[-1].config.extensions["choice"] == ["0", "1", "2"]
    assert prediction.passages_cut > 0


@pytest.mark.parametrize(
    ("reply", "support"), [("{Answer: 3} [1]", 0.9), ("{Answer: 3} [2]", 0.25), ("{Answer: 2} [2]", 0.0),
                           ("{Answer: 3} [3]", 0.0), ("{Answer: 3} [0]", None), ("[1]", None)],
)  # fmt: skip
def test_a_reader_scores_the_citation_by_the_answer(question, reply, support) -> None:
    prediction, _ = ask(question, lambda _: reply, reader="some/nli")
    assert prediction.cited_support == (None if support is None else pytest.approx(support))


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"reader": "x"}, "set cite to true"), ({"cite": True, "samples": 3}, "takes no samples"),
     ({"cite": True, "orders": "cyclic"}, "takes no samples")],
)  # fmt: skip
def test_what_cannot_be_cited_is_refused(fields, message) -> None:
    with pytest.raises(ValidationError, match=message):
        RetrieveThenAnswerSpec(kind="retrieve_then_answer", **fields)


def test_the_last_answer_is_the_one_that_cites() -> None:
    assert read_citation("{Answer: 1} [1] no, {Answer: 2} [2] [3]", 3) == 2
