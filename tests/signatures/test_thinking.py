"""Thinking blocks, closed, cut off, or opened by the chat template."""

import pytest

from medexam.model_calls import join_thinking
from medexam.predictions import Reason
from medexam.signatures import split_thinking

END = "<|end|><|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("reply", "thinking", "said"),
    [
        ("{Answer: 1}", None, "{Answer: 1}"),
        ("<think>Is it 2?</think>{Answer: 1}", "Is it 2?", "{Answer: 1}"),
        ("<think>\nIs it {Answer: 2}?\n</think>\n\n{Answer: 1}", "Is it {Answer: 2}?", "{Answer: 1}"),
        ("Is it 2?</think>\n{Answer: 1}", "Is it 2?", "{Answer: 1}"),
        ("<think>cut off {Answer: 2}", "cut off {Answer: 2}", ""),
        ("<think></think>{Answer: 1}", None, "{Answer: 1}"),
        ("Is it 2?</think>No. <think>{Answer: 1}", "Is it 2?\n{Answer: 1}", "No. "),
        ("<think>1?</think>So: <think>2?</think>{Answer: 3}", "1?\n2?", "So: {Answer: 3}"),
        ("1?</think>2?</think>{Answer: 3}", "1?\n2?", "{Answer: 3}"),
        ("  <THINK>a</THINK> b", "a", "b"),
        ("<thinking>{Answer: 1}?</thinking>{Answer: 3}", "{Answer: 1}?", "{Answer: 3}"),
        ("[THINK]{Answer: 1}?[/THINK]{Answer: 3}", "{Answer: 1}?", "{Answer: 3}"),
        ("<unused94>thought\n{Answer: 1}?<unused95>{Answer: 3}", "{Answer: 1}?", "{Answer: 3}"),
        ("<|channel>thought\n{Answer: 1}?<channel|>{Answer: 3}", "{Answer: 1}?", "{Answer: 3}"),
        ("<unused94>thought\n{Answer: 1}", "{Answer: 1}", ""),
        ("<|channel|>analysis {Answer: 1}?", "{Answer: 1}?", ""),
        (f"<|channel|>analysis<|message|>Is it 2?{END}{{Answer: 1}}", "Is it 2?", "{Answer: 1}"),
        ("<|channel|>analysis<|message|>cut off", "cut off", ""),
        ("<|channel|>commentary<|message|>So: {Answer: 1}<|end|>", None, "So: {Answer: 1}"),
        (f"<|channel|>commentary<|message|>Not {{Answer: 2}}:{END} {{Answer: 1}}", "Not {Answer: 2}:", "{Answer: 1}"),
        ("<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>", None, ""),
    ],
)
def test_thinking_is_no_part_of_the_answer(reply: str, thinking: str | None, said: str) -> None:
    assert split_thinking(reply) == (thinking, said)


@pytest.mark.parametrize(
    ("reply", "finish_reason", "cut"),
    [
        ("<think>Is it", "length", True),
        ("<think>Is it</think>\n", "length", True),
        ("<think>Is it</think>{Ans", "length", False),
        ("<think>Is it", "stop", False),
        ("Is it", "length", False),
    ],
)
def test_a_reply_is_cut_in_its_thinking_or_later(ask, reply: str, finish_reason: str, cut: bool) -> None:
    said = ask("zero_shot", {"*": {"text": reply, "finish_reason": finish_reason}}).said
    assert (said.reason is Reason.TRUNCATED_THINKING) is cut


def test_join_is_the_inverse_of_split() -> None:
    assert split_thinking(join_thinking("because", "{Answer: 1}")) == ("because", "{Answer: 1}")
