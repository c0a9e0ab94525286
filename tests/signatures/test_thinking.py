"""Thinking blocks, closed, cut off, or opened by the chat template."""

import pytest

from medexam.signatures import join_thinking, split_thinking


@pytest.mark.parametrize(
    ("reply", "thinking", "said"),
    [
        ("{Answer: 1}", None, "{Answer: 1}"),
        ("<think>Is it 2?</think>{Answer: 1}", "Is it 2?", "{Answer: 1}"),
        ("<think>\nIs it {Answer: 2}?\n</think>\n\n{Answer: 1}", "Is it {Answer: 2}?", "{Answer: 1}"),
        ("Is it 2?</think>\n{Answer: 1}", "Is it 2?", "{Answer: 1}"),
        ("<think>cut off {Answer: 2}", "cut off {Answer: 2}", ""),
        ("<think></think>{Answer: 1}", None, "{Answer: 1}"),
    ],
)
def test_thinking_is_no_part_of_the_answer(reply: str, thinking: str | None, said: str) -> None:
    assert split_thinking(reply) == (thinking, said)


def test_join_is_the_inverse_of_split() -> None:
    assert split_thinking(join_thinking("because", "{Answer: 1}")) == ("because", "{Answer: 1}")
