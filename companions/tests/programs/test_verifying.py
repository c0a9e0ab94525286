"""Retrieve and verify: which passages are shown, what is checked, and what is kept of the verdicts."""

from types import SimpleNamespace

import pytest

from medexam.predictions import Reason
from medexam.retrievers import Hit, Passage

FOUND = [(name, "", f"{name} text.", 9.0 - rank) for rank, name in enumerate("abc")]


def judging(*, supported: bool, helps: str = "ac", answer: str = "{Answer: 3}"):
    """Have the model find help in the passages that `helps` names."""

    def reply(turn: str) -> str:
        if turn.startswith("Passage:"):
            return "Yes" if any(f"{name} text." in turn for name in helps) else "No"
        return ("Yes" if supported else "No") if turn.startswith("Passages:") else answer

    return reply


@pytest.mark.parametrize("form", ["free", "guided"])
@pytest.mark.parametrize("supported", [True, False])
def test_answers_in_words_of_every_format_are_judged(ask_task, tasks, form, supported) -> None:
    hits = [Hit(Passage(name, title, text, "test"), score, 1) for name, title, text, score in FOUND]
    program = {"kind": "retrieve_verify", "then": "by_format", "answer_format": form, "unsupported": "abstain", "k": 3}
    reply = judging(supported=supported, answer="True")
    assert len(tasks) == 7
    for task in tasks.values():
        asked = ask_task(program, task, reply, finder=SimpleNamespace(find=lambda _: hits))
        check = asked.turns[-1]
        assert [one.kept for one in asked.said.passages] == [True, False, True]
        assert asked.turns[3].startswith("a text.\n\nc text.\n\nYou are a highly knowledgeable medical expert.")
        assert all(text in check for text in (task.question, *task.options))
        assert ("This answer is wrong: " in check) is bool(task.given_answer)
        if form == "free":
            assert "Proposed answer: True\n" in check
            assert (asked.said.text, asked.said.supported) == ("True" if supported else None, supported)
            assert asked.said.reason == (None if supported else Reason.ABSTAINED)
