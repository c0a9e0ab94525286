"""Self-consistency: every reply under a seed of its own, the commonest legal answer, and what is kept of the others."""

import math
from itertools import pairwise

import dspy
import pytest
from dspy.lm15 import Request, Response

from asked import requests_of
from medexam.dspy_requests import write_response
from medexam.errors import SpecError
from medexam.model_calls import Generation
from medexam.predictions import Reason, Status
from medexam.programs import ProgramContext, build_prediction, build_program, read_again
from medexam.retrievers import Hit, Passage
from medexam.serve import ScriptedEngine
from medexam.specs import ChainOfThoughtSpec, RetrieveThenAnswerSpec, ZeroShotSpec, build_cells
from recorded import recorded

HITS = [Hit(Passage("a", "", "Passage.", "test"), 1.0, 1)]


class Finder:
    def find(self, question):
        return HITS


def ask(spec, question, answers):
    """The prediction when the replies are `answers` in turn, and the requests."""
    engine = ScriptedEngine(lambda _: f"Because.\n\n{{Answer: {answers[len(engine.dialogues) - 1]}}}")
    program = build_program(spec, "en", ProgramContext(finder=Finder()))
    settings = {"temperature": 0.7, "seed": 5, "cache": False, "num_retries": 0}
    with dspy.context(lm=dspy.LM("medexam/scripted", **recorded(engine), **settings)):
        said = program(question=question)
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    return prediction, requests_of(engine), program


def test_the_commonest_answer_is_taken_and_every_reply_kept(question) -> None:
    spec = ZeroShotSpec(samples=5)
    prediction, requests, program = ask(spec, question, [2, 3, "x", 3, 1])
    assert (prediction.status, prediction.answer, prediction.votes) == (Status.ANSWERED, 3, (2, 3, None, 3, 1))
    assert [request.config.seed for request in requests] == [5, 6, 7, 8, 9]
    assert all(one.messages == other.messages for one, other in pairwise(requests))
    assert [reply.text for reply in prediction.generations][2] == "Because.\n\n{Answer: x}"
    assert prediction.reply == "Because.\n\n{Answer: 3}"
    assert prediction.option_probabilities == pytest.approx({1: 0.25, 2: 0.25, 3: 0.5, 4: 0, 5: 0}, abs=1e-8)
    assert (prediction.score_norm, prediction.tied) == ("votes", 1)
    assert (spec.label, program.calls_for(question)) == ("zero_shot-samples5", 5)
    assert read_again(program, question, prediction) == prediction


def test_of_equals_the_first_that_was_answered(question) -> None:
    assert ask(ZeroShotSpec(samples=4), question, [4, 1, 1, 4])[0].answer == 4
    prediction, *_ = ask(ZeroShotSpec(samples=3), question, ["x", "y", "z"])
    assert (prediction.answer, prediction.reason, prediction.votes) == (None, Reason.UNPARSED, (None,) * 3)
    assert prediction.option_scores is None


@pytest.mark.parametrize("answer_format", ["free", "guided"])
def test_reasoning_votes_too(question, answer_format) -> None:
    spec = ChainOfThoughtSpec(samples=3, answer_format=answer_format)
    each = 2 if answer_format == "guided" else 1
    prediction, requests, program = ask(spec, question, [n for n in (1, 2, 2) for _ in range(each)])
    assert (prediction.answer, prediction.votes, prediction.rationale) == (2, (1, 2, 2), "Because.")
    assert len(requests) == len(prediction.generations) == program.calls_for(question) == 3 * each
    assert [request.config.seed for request in requests] == [5 + n for n in range(3) for _ in range(each)]
    again = read_again(program, question, prediction)
    assert (again.answer, again.votes) == (2, (1, 2, 2))


def test_passages_stand_before_every_sample(question) -> None:
    prediction, requests, _ = ask(RetrieveThenAnswerSpec(samples=2), question, [1, 1])
    assert all(request.messages[-1].text.startswith("Passage.\n\n") for request in requests)
    assert [passage.id for passage in prediction.passages] == ["a"]


async def test_it_asks_asynchronously_too(question) -> None:
    engine = ScriptedEngine({"*": "{Answer: 2}"})
    program = build_program(ZeroShotSpec(samples=3), "en")
    with dspy.context(lm=dspy.LM("medexam/scripted", **recorded(engine), cache=False)):
        said = await program.acall(question=question)
    assert (said.answer, said.votes, said.scores.option_scores[2]) == (2, (2, 2, 2), math.log(1))


def test_one_reply_is_the_program_as_it_was() -> None:
    assert "samples" not in ZeroShotSpec().model_dump()
    assert ZeroShotSpec(samples=8).model_dump()["samples"] == 8
    document = {"name": "x", "program": {"kind": "zero_shot", "samples": 8}}
    with pytest.raises(SpecError, match=r"at temperature 0 all replies are equal: set model\.temperature"):
        build_cells(document, {})
    _, (cell,) = build_cells(document, {"model.temperature": 0.7, "model.top_p": 0.9})
    assert (cell.program.samples, cell.model.top_p) == (8, 0.9)
    with pytest.raises(SpecError, match="top_p, top_k and min_p change nothing at temperature 0"):
        build_cells({"name": "x"}, {"model.top_k": 20})


class Sharing:
    """An engine that brings several replies to a prompt: reply `i` of a request answers by its seed."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Response:
        self.requests.append(request)
        samples = (request.config.extensions or {}).get("samples", 1)
        replies = [self._reply(request.config.seed + later) for later in range(samples)]
        return write_response(replies)

    def _reply(self, seed: int) -> Generation:
        return Generation(f"Seed {seed}.\n\n{{Answer: {seed % 3 + 1}}}", "stop", "m", 10, 2)


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        (ZeroShotSpec(samples=4), [(5, 4)]),
        (RetrieveThenAnswerSpec(samples=4), [(5, 4)]),
        (ChainOfThoughtSpec(samples=3, answer_format="guided"), [(5, 3), (5, 1), (6, 1), (7, 1)]),
    ],
)
def test_what_is_asked_alike_is_asked_at_once(question, spec, asked) -> None:
    engine, program = Sharing(), build_program(spec, "en", ProgramContext(finder=Finder()))
    lm = dspy.LM("medexam/sharing", engine=engine, cache=False, temperature=0.7, seed=5)
    with dspy.context(lm=lm):
        apart = program(question=question)
        alone = [request.config.seed for request in engine.requests]
        lm.shares_prompts = True
        engine.requests.clear()
        said = program(question=question)
    requests = [(one.config.seed, (one.config.extensions or {}).get("samples", 1)) for one in engine.requests]
    assert requests == asked
    assert (said.answer, said.votes, said.scores) == (apart.answer, apart.votes, apart.scores)
    assert [one.reply for one in said.generations] == [one.reply for one in apart.generations]
    assert [one.seed for one in said.generations] == [one.seed for one in apart.generations] == alone
    kept = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    assert [reply.seed for reply in kept.generations] == alone
    assert kept.prompt_tokens == 10 * len(asked)
    again = read_again(program, question, kept)
    assert (again.answer, again.votes) == (kept.answer, kept.votes)
