"""Thinking in chat replies, told apart by the server or left in the text, and its tokens."""

import pytest
from dspy.lm15 import Message, Response, TextPart, ThinkingPart, Usage

from medexam.dspy_requests import read_generation
from medexam.serve.engines.thinking_count import count_thinking
from medexam.serve.thinking import append, is_open


class Words:
    """A tokenizer whose tokens are words."""

    async def tokens(self, text: str, *, special: bool = False) -> list[int]:
        return [len(word) for word in text.split()]


def reply(text: str, *, thinking: str = "", counted: int | None = None, finish: str = "stop") -> Response:
    parts = [*([ThinkingPart(thinking)] if thinking else []), TextPart(text)]
    usage = Usage(input_tokens=9, output_tokens=8, reasoning_tokens=counted)
    return Response(id=None, model="m", message=Message.assistant(parts), finish_reason=finish, usage=usage)


@pytest.mark.parametrize(
    ("response", "opened", "whole", "tokens"),
    [
        (reply("{Answer: 1}"), False, "{Answer: 1}", None),
        (reply("{Answer: 1}", thinking="it is 2", counted=5), False, "<think>\nit is 2\n</think>\n\n{Answer: 1}", 5),
        (reply("{Answer: 1}", thinking="it is 2", counted=0), True, "<think>\nit is 2\n</think>\n\n{Answer: 1}", 3),
        (reply("<think>it is</think>{Answer: 1}"), False, "<think>it is</think>{Answer: 1}", 2),
        (reply("it is</think>{Answer: 1}"), True, "<think>it is</think>{Answer: 1}", 2),
        (reply("it is", finish="length"), True, "<think>it is", 2),
        (reply("{Answer: 1}"), True, "{Answer: 1}", None),
    ],
)
async def test_thinking_is_found_and_counted(response: Response, opened: bool, whole: str, tokens: int | None) -> None:
    found = await count_thinking(read_generation(response), Words(), opened=opened)
    assert (found.reply, found.thinking_tokens, found.completion_tokens) == (whole, tokens, 8)


def test_a_block_that_both_open_is_opened_once() -> None:
    assert append("<a><think>\n", "<think>\nit is\n</think>\n\n{") == "<a><think>\nit is\n</think>\n\n{"
    assert append("<a>", "<think>\nit is") == "<a><think>\nit is"
    assert append("<a><think>\n", "{Answer: ") == "<a><think>\n{Answer: "
    assert [is_open(text) for text in ("<a><think>\n", "<a>", "<think>\n\n</think>\n\n")] == [True, False, False]


def test_no_choice_is_put_inside_a_block() -> None:
    closed = "<a><think>\n\n</think>\n\n{"
    assert append("<a><think>\n", "{", choosing=True) == closed
    assert append("<a><think>\n", "<think>\nit is\n</think>\n\n{", choosing=True) == "<a><think>\nit is\n</think>\n\n{"
    assert append("<a><think>\n", "it is\n</think>\n\n{", choosing=True) == "<a><think>\nit is\n</think>\n\n{"
    assert append("<a>", "{", choosing=True) == "<a>{"
    assert not is_open(closed.removesuffix("{"))
