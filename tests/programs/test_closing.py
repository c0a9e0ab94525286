"""Thinking that is cut off: named so, counted apart, and closed with a choice where the program says so."""

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, Usage

from medexam.dspy_requests import CHOICE
from medexam.predictions import Prediction, Reason, Status
from medexam.programs import build_prediction, build_program, read_again
from medexam.specs import ChainOfThoughtSpec, FewShotSpec, ZeroShotSpec, build_cells

CUT = "<think>\nIt may be 2, or"


class Thinker:
    """Thinks past its budget, then chooses the second option."""

    def __init__(self, reply: str = CUT) -> None:
        self.reply = reply
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Response:
        self.requests.append(request)
        choices = (request.config.extensions or {}).get(CHOICE)
        usage = Usage(input_tokens=100, output_tokens=1 if choices else 64, reasoning_tokens=None if choices else 62)
        text, finish = (choices[1], "stop") if choices else (self.reply, "length")
        return Response(id=None, model="m", message=Message.assistant(text), finish_reason=finish, usage=usage)


def ask(spec, question, reply=CUT) -> tuple[Prediction, list[Request], dspy.Module]:
    engine, program = Thinker(reply), build_program(spec, "en")
    with dspy.context(lm=dspy.LM("medexam/thinker", engine=engine, cache=False, temperature=0.7, seed=5)):
        said = program(question=question)
    return (
        build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1),
        engine.requests,
        program,
    )


def test_a_reply_cut_in_its_thinking_is_named_and_counted(question) -> None:
    prediction, requests, program = ask(ZeroShotSpec(), question)
    assert (prediction.status, prediction.reason) == (Status.UNANSWERED, Reason.TRUNCATED_THINKING)
    assert (prediction.completion_tokens, prediction.thinking_tokens, len(requests)) == (64, 62, 1)
    assert Prediction.model_validate(prediction.to_json()) == prediction
    assert read_again(program, question, prediction) == prediction
    earlier = prediction.model_copy(update={"reason": Reason.TRUNCATED})
    assert read_again(program, question, earlier) == prediction, "stored replies are read so too"
    later, *_ = ask(ZeroShotSpec(), question, "<think>2</think>\n{Ans")
    assert later.reason is Reason.TRUNCATED


@pytest.mark.parametrize("kind", [ZeroShotSpec, FewShotSpec, ChainOfThoughtSpec])
def test_thinking_is_closed_and_the_answer_chosen(question, kind) -> None:
    spec = kind(answer_after_budget=True)
    prediction, (free, closing), program = ask(spec, question)
    assert (prediction.status, prediction.answer, prediction.finish_reason) == (Status.ANSWERED, 2, "stop")
    assert prediction.reply == f"{CUT}\n</think>\n\n{{Answer: 2}}"
    assert closing.messages[:-1] == free.messages
    assert closing.messages[-1].text == f"{CUT}\n</think>\n\n{{Answer: "
    assert closing.config.extensions[CHOICE] == ["1", "2", "3", "4", "5"]
    assert (prediction.prompt_tokens, prediction.completion_tokens, prediction.thinking_tokens) == (200, 65, 62)
    assert program.calls_for(question) == 2
    assert spec.label.endswith("-closed")
    assert read_again(program, question, prediction) == prediction


def test_only_thinking_is_closed(question) -> None:
    for reply in ("It may be 2, or", "<think>2</think>\n{Ans"):
        prediction, requests, _ = ask(ZeroShotSpec(answer_after_budget=True), question, reply)
        assert (prediction.reason, len(requests)) == (Reason.TRUNCATED, 1)


def test_each_of_several_replies_is_closed(question) -> None:
    spec = ZeroShotSpec(answer_after_budget=True, samples=3)
    prediction, requests, program = ask(spec, question)
    assert (prediction.votes, len(requests), len(prediction.generations)) == ((2, 2, 2), 6, 3)
    assert (prediction.completion_tokens, prediction.thinking_tokens) == (195, 186)
    assert read_again(program, question, prediction) == prediction


def test_it_is_a_key_of_programs_that_write_freely() -> None:
    assert "answer_after_budget" not in ZeroShotSpec().model_dump()
    with pytest.raises(Exception, match="answer_after_budget closes free replies, and guided ones end in a choice"):
        build_cells({"program": {"kind": "zero_shot", "answer_after_budget": True, "answer_format": "guided"}}, {})
    needs = ZeroShotSpec(answer_after_budget=True).engine_needs
    assert (needs.guided, needs.closes, ZeroShotSpec().engine_needs.closes) == (True, True, False)
