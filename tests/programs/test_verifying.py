"""Retrieve and verify: which passages are shown, what is checked, and what is kept of the verdicts."""

import pytest

from medexam.predictions import Reason, Status
from one_question import SHOWN, STEM

FOUND = [(name, "", f"{name} text.", 9.0 - rank) for rank, name in enumerate("abc")]


def judging(*, supported: bool, helps: str = "ac", answer: str = "{Answer: 3}"):
    """Have the model find help in the passages that `helps` names."""

    def reply(turn: str) -> str:
        if turn.startswith("Passage:"):
            return "Yes" if any(f"{name} text." in turn for name in helps) else "No"
        return ("Yes" if supported else "No") if turn.startswith("Passages:") else answer

    return reply


@pytest.fixture
def verify(ask, finder):
    def call(reply, found=FOUND, **fields):
        return ask({"kind": "retrieve_verify", "k": 3, "retriever": finder(found), **fields}, reply)

    return call


@pytest.mark.parametrize("supported", [True, False])
def test_the_model_drops_passages_and_checks_its_answer(verify, supported) -> None:
    asked = verify(judging(supported=supported))
    said, verdict = asked.said, "Yes" if supported else "No"
    assert [one.choices for one in asked.dialogues] == [("Yes", "No")] * 3 + [None, ("Yes", "No")]
    assert asked.turns[3] == f"a text.\n\nc text.\n\n{SHOWN}"
    assert asked.turns[4].startswith(f"Passages:\na text.\n\nc text.\n\nQuestion:\n{STEM}")
    assert "Proposed answer: They can be added.\n" in asked.turns[4]
    assert [(one.id, one.kept) for one in said.passages] == [("a", True), ("b", False), ("c", True)]
    assert (said.answer, said.supported, said.reply) == (3, supported, "{Answer: 3}")
    assert [one.text for one in said.calls] == ["Yes", "No", "Yes", "{Answer: 3}", verdict]


def test_without_a_kept_passage_nothing_supports_the_answer(verify) -> None:
    asked = verify(judging(supported=True, helps=""))
    assert (len(asked.turns), asked.turns[3]) == (4, SHOWN)
    assert (asked.said.answer, asked.said.supported, asked.said.passages_cut) == (3, False, 0)
    asked = verify(judging(supported=True), found="[]")
    assert (len(asked.turns), asked.said.passages, asked.said.supported) == (1, (), False)


@pytest.mark.parametrize(("supported", "answer"), [(False, None), (True, 3)])
def test_an_answer_without_support_can_be_withdrawn(verify, supported, answer) -> None:
    said = verify(judging(supported=supported), unsupported="abstain").said
    assert (said.answer, said.reply) == (answer, "{Answer: 3}")
    if answer is None:
        assert (said.status, said.reason) == (Status.UNANSWERED, Reason.ABSTAINED)


def test_a_reply_without_an_answer_is_not_checked(verify) -> None:
    asked = verify(judging(supported=True, answer="none"))
    assert len(asked.turns) == 4
    assert (asked.said.reason, asked.said.supported) == (Reason.UNPARSED, None)
