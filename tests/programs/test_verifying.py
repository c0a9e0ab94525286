"""Retrieve and verify: which passages are shown, what is checked, and what is kept of the verdicts."""

import pytest

from medexam.predictions import Reason, Status
from one_question import SHOWN, STEM
from task_data import CLINIQLINK, write_cliniqlink

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
    def call(reply, found=FOUND, more=None, **fields):
        program = {"kind": "retrieve_verify", "k": 3, "retriever": finder(found), **fields}
        return ask(program, reply, **(more or {}))

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
    assert [one.text for one in said.generations] == ["Yes", "No", "Yes", "{Answer: 3}", verdict]


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


def test_verdicts_are_asked_for_in_the_language_of_the_words(verify) -> None:
    asked = verify(lambda _: "Sí", more={"language": "es"})
    assert [one.kept for one in asked.said.passages] == [True] * 3
    assert asked.dialogues[0].choices == ("Sí", "No")


@pytest.mark.parametrize("form", ["free", "guided"])
@pytest.mark.parametrize("supported", [True, False])
def test_answers_in_words_of_every_format_are_judged(verify, tmp_path, form, supported) -> None:
    folder = write_cliniqlink(tmp_path / "cliniqlink")
    reply = judging(supported=supported, answer="True" if form == "free" else "")
    for item, *others in CLINIQLINK.values():
        name = {"short_answer": "short"}.get(item["type"], item["type"])
        more = {"dataset": {"name": "cliniqlink", "path": str(folder), "formats": [name], "limit": 1}}
        asked = verify(reply, more=more, then="by_format", answer_format=form, unsupported="abstain")
        check = asked.turns[-1]
        assert [one.kept for one in asked.said.passages] == [True, False, True]
        assert asked.turns[3].startswith("a text.\n\nc text.\n\nYou are a highly knowledgeable medical expert.")
        assert any(one["question"] in check for one in [item, *others])
        assert all(option in check for option in item.get("options", ()))
        assert ("This answer is wrong: " in check) is name.endswith("inverse")
        if form == "free":
            assert "Proposed answer: True\n" in check
            assert (asked.said.text, asked.said.supported) == ("True" if supported else None, supported)
            assert asked.said.reason == (None if supported else Reason.ABSTAINED)
