"""Programs that ask once or twice: the calls they make, and what they make of replies, faults and thinking."""

import dspy
import pytest

import medexam
from medexam.errors import SpecError
from medexam.predictions import Reason, Status
from medexam.specs import build_cells

GUIDED = {"answer_format": "guided"}
CUT = "<think>\nIt may be 2, or"


def test_chain_of_thought_keeps_the_reasoning(ask) -> None:
    reply = "Option 1 is the action potential. {Answer: 1} is wrong, so {Answer: 3}"
    asked = ask("chain_of_thought", reply)
    assert asked.dialogues[0].sampling["max_tokens"] == 512
    assert asked.said.answer == 3
    assert asked.said.rationale == "Option 1 is the action potential. {Answer: 1} is wrong, so"


def test_guided_chain_of_thought_reasons_then_chooses(ask) -> None:
    asked = ask({"kind": "chain_of_thought", **GUIDED, "max_tokens": 100}, "They add up. {Answer: 2}")
    reason, choose = asked.dialogues
    assert (reason.sampling["stop"], reason.sampling["max_tokens"], reason.choices) == (["{Answer"], 100, None)
    assert (choose.opening, choose.choices) == ("They add up.\n\n{Answer: ", ("1", "2", "3", "4", "5"))
    assert (asked.said.rationale, asked.said.reply) == ("They add up.", "They add up.\n\n{Answer: 1")
    words = [sum(len(turn["content"].split()) for turn in one.turns_with_opening) for one in asked.dialogues]
    assert asked.said.prompt_tokens == sum(words)


@pytest.mark.parametrize(
    "reasoning",
    [
        "They add up. So the answer is not",
        "Please answer in the form",
        "It may be two:\nUser: which one?",
        "They add up.<|im_end|>",
        "<think>They add up.",
    ],
)
def test_what_is_chosen_is_the_answer_whatever_was_reasoned_before(ask, reasoning) -> None:
    said = ask({"kind": "chain_of_thought", **GUIDED}, reasoning).said
    assert (said.answer, said.status) == (1, Status.ANSWERED)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I am not sure.", Reason.UNPARSED),
        ("", Reason.EMPTY),
        ("{Answer: 6}", Reason.UNPARSED),
        ({"text": "Well, the first option", "finish_reason": "length"}, Reason.TRUNCATED),
        ({"text": "<think>hm", "finish_reason": "length"}, Reason.TRUNCATED_THINKING),
        ({"text": "<think>2</think>\n{Ans", "finish_reason": "length"}, Reason.TRUNCATED),
        ({"error": "context"}, Reason.CONTEXT_OVERFLOW),
    ],
)
def test_a_reply_without_a_legal_option_leaves_the_question_unanswered(ask, reply, reason) -> None:
    asked = ask("zero_shot", {"*": reply})
    assert (asked.said.status, asked.said.reason, asked.said.answer) == (Status.UNANSWERED, reason, None)
    assert (asked.said.failure, len(asked.dialogues)) == (None, 1)


def test_thinking_is_no_part_of_the_answer(ask) -> None:
    assert ask("zero_shot", "<think>Perhaps {Answer: 2}?</think>{Answer: 3}").said.answer == 3


def think(choice="2"):
    """Think past the budget, then choose."""
    made = []

    def reply(_):
        made.append(1)
        return {"text": CUT, "finish_reason": "length"} if len(made) % 2 else f"{CUT}\n</think>\n\n{{Answer: {choice}}}"

    return reply


@pytest.mark.parametrize("kind", ["zero_shot", "few_shot", "chain_of_thought"])
def test_thinking_is_closed_and_the_answer_chosen(ask, kind) -> None:
    asked = ask({"kind": kind, "answer_after_budget": True}, think())
    free, closing = asked.dialogues
    assert (asked.said.status, asked.said.answer, asked.said.finish_reason) == (Status.ANSWERED, 2, "stop")
    assert asked.said.reply == f"{CUT}\n</think>\n\n{{Answer: 2"
    assert closing.messages == free.messages
    assert closing.opening == f"{CUT}\n</think>\n\n{{Answer: "
    assert closing.choices == ("1", "2", "3", "4", "5")
    assert asked.run.program.endswith("-closed")


def test_only_thinking_is_closed_and_each_of_several_replies(ask) -> None:
    closing = {"kind": "zero_shot", "answer_after_budget": True}
    for reply in ("It may be 2, or", "<think>2</think>\n{Ans"):
        asked = ask(closing, {"*": {"text": reply, "finish_reason": "length"}})
        assert (asked.said.reason, len(asked.dialogues)) == (Reason.TRUNCATED, 1)
    asked = ask({**closing, "samples": 3}, think(), model={"temperature": 0.7})
    assert (asked.said.votes, len(asked.dialogues), len(asked.said.calls)) == ((2, 2, 2), 6, 6)
    with pytest.raises(SpecError, match="answer_after_budget closes free replies, and guided ones end in a choice"):
        build_cells({"program": {**closing, **GUIDED}}, {})


@pytest.fixture
def model(tmp_path):
    """A scripted model that DSPy asks."""
    (tmp_path / "replies.yaml").write_text("'*': '{Answer: 3}'\n")
    return medexam.lm("scripted", path=tmp_path / "replies.yaml")


async def test_a_program_is_awaited_saved_and_loaded_without_pickle(model, question, tmp_path) -> None:
    program = medexam.build_program("few_shot")
    program.save(str(tmp_path / "program.json"))
    other = medexam.build_program("few_shot", language="es")
    other.load(str(tmp_path / "program.json"))
    with dspy.context(lm=model):
        said = [program(question=question), await program.acall(question=question), other(question=question)]
    assert [one.answer for one in said] == [3, 3, 3]
    first, *others = [(one.messages, one.sampling) for one in model.live_engine.dialogues]
    assert others == [first, first]
