"""Retrieve and verify: which passages are shown, what is checked, and what is kept of the verdicts."""

import math

import dspy
import pytest

from asked import requests_of
from medexam.datasets import load_task_set
from medexam.predictions import Reason, Status
from medexam.programs import ProgramContext, build_prediction, build_program, read_again
from medexam.programs.replay import replay
from medexam.retrievers import Hit, Passage
from medexam.serve import ScriptedEngine
from medexam.signatures import render_question
from medexam.specs import DatasetSpec
from medexam.specs.programs.behind_passages import RetrieveVerifySpec
from recorded import recorded
from task_data import write_cliniqlink

HITS = [Hit(Passage(name, "", f"{name} text.", "test"), 9.0 - rank, rank) for rank, name in enumerate("abc", start=1)]
SUPPORTS = {
    "a": {1: math.log(0.2), 2: math.log(0.7), 3: math.log(0.1)},
    "b": {1: math.log(0.3), 2: math.log(0.4)},
    "c": {3: math.log(0.6)},
}


class Finder:
    def __init__(self, hits=HITS) -> None:
        self.hits = hits

    def find(self, question):
        return self.hits


class Reader:
    def read_supports(self, question):
        return SUPPORTS


def ask(spec, question, reply, hits=HITS):
    engine = ScriptedEngine(reply)
    program = build_program(spec, "en", ProgramContext(finder=Finder(hits), supports=Reader()))
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        said = program(question=question)
    assert len(requests_of(engine)) <= program.calls_for(question)
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    return program, prediction, requests_of(engine)


def verify(**fields) -> RetrieveVerifySpec:
    return RetrieveVerifySpec(kind="retrieve_verify", k=3, **fields)


def judging(*, supported: bool, helps: str = "ac"):
    """A model that finds help in the passages that `helps` names, and answers 3."""

    def reply(turn: str) -> str:
        if turn.startswith("Passage:"):
            return "Yes" if any(f"{name} text." in turn for name in helps) else "No"
        if turn.startswith("Passages:"):
            return "Yes" if supported else "No"
        return "{Answer: 3}"

    return reply


def _turn(request) -> str:
    return [one.text for one in request.messages if one.role == "user"][-1]


@pytest.mark.parametrize("supported", [True, False])
def test_the_model_drops_passages_and_checks_its_answer(question, supported) -> None:
    program, prediction, requests = ask(verify(), question, judging(supported=supported))
    assert program.calls_for(question) == len(requests) == 5
    choices = [(one.config.extensions or {}).get("choice") for one in requests]
    assert choices == [["Yes", "No"]] * 3 + [None, ["Yes", "No"]]
    assert _turn(requests[3]) == f"a text.\n\nc text.\n\n{render_question(question)}"
    assert _turn(requests[4]).startswith(
        "Passages:\na text.\n\nc text.\n\nQuestion:\nExcitatory postsynaptic potentials:"
    )
    assert "Proposed answer: They can be added.\n" in _turn(requests[4])
    assert [(one.id, one.kept) for one in prediction.passages] == [("a", True), ("b", False), ("c", True)]
    assert (prediction.answer, prediction.supported, prediction.reply) == (3, supported, "{Answer: 3}")
    assert [one.text for one in prediction.generations] == [
        "Yes",
        "No",
        "Yes",
        "{Answer: 3}",
        "Yes" if supported else "No",
    ]


def test_without_a_kept_passage_nothing_supports_the_answer(question) -> None:
    _, prediction, requests = ask(verify(), question, judging(supported=True, helps=""))
    assert len(requests) == 4
    assert _turn(requests[3]) == render_question(question)
    assert (prediction.answer, prediction.supported, prediction.passages_cut) == (3, False, 0)
    _, prediction, requests = ask(verify(), question, judging(supported=True), hits=[])
    assert (len(requests), prediction.passages, prediction.supported) == (1, (), False)


def test_an_answer_without_support_can_be_withdrawn_and_stays_so(question) -> None:
    spec = verify(unsupported="abstain")
    program, prediction, _ = ask(spec, question, judging(supported=False))
    assert (prediction.status, prediction.reason, prediction.answer) == (Status.UNANSWERED, Reason.ABSTAINED, None)
    assert prediction.reply == "{Answer: 3}"
    assert read_again(program, question, prediction) == prediction
    program, prediction, _ = ask(spec, question, judging(supported=True))
    assert prediction.answer == 3
    assert read_again(program, question, prediction) == prediction


def test_a_reply_without_an_answer_is_not_checked(question) -> None:
    _, prediction, requests = ask(verify(), question, lambda turn: "Yes" if turn.startswith("Passage:") else "none")
    assert len(requests) == 4
    assert (prediction.reason, prediction.supported) == (Reason.UNPARSED, None)


@pytest.mark.parametrize(
    ("least", "kept", "supported"), [(0.5, "ac", True), (0.65, "a", False), (0.35, "abc", True), (0.9, "", False)]
)
def test_a_reader_judges_by_the_probability_of_entailment(question, least, kept, supported) -> None:
    spec = verify(reader="some/nli", least=least)
    program, prediction, requests = ask(spec, question, lambda _: "{Answer: 3}")
    assert len(requests) == program.calls_for(question) == 1
    assert not spec.engine_needs.guided
    assert spec.side_words is None
    assert "".join(one.id for one in prediction.passages if one.kept) == kept
    assert [round(one.support, 9) for one in prediction.passages] == [0.7, 0.4, 0.6]
    assert prediction.supported is supported


def test_prompts_are_known_again_from_the_stored_replies(question) -> None:
    program, prediction, requests = ask(verify(answer_format="guided"), question, judging(supported=True))
    prompts, *_ = replay(program, question, [one.text for one in prediction.generations])
    assert [[turn["content"] for turn in one if turn["role"] == "user"][-1] for one in prompts] == list(
        map(_turn, requests)
    )


def test_verdicts_are_asked_for_in_the_language_of_the_words(question) -> None:
    engine = ScriptedEngine(lambda _: "Sí")
    program = build_program(verify(), "es", ProgramContext(finder=Finder()))
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        said = program(question=question)
    assert [one.kept for one in said.verdicts] == [True] * 3
    assert requests_of(engine)[0].config.extensions["choice"] == ["Sí", "No"]


# answers in words


@pytest.mark.parametrize("answer_format", ["free", "guided"])
@pytest.mark.parametrize("supported", [True, False])
def test_answers_in_words_of_every_format_are_judged(tmp_path, answer_format, supported) -> None:
    spec = verify(then="by_format", answer_format=answer_format, unsupported="abstain")
    tasks = load_task_set(DatasetSpec(name="cliniqlink", path=write_cliniqlink(tmp_path / "cliniqlink"))).questions
    assert len({task.group for task in tasks}) == 7

    def reply(turn: str) -> str:
        if turn.startswith("Passage"):
            return judging(supported=supported)(turn)
        return "True" if answer_format == "free" else ""

    for task in tasks:
        program, prediction, requests = ask(spec, task, reply)
        assert [one.kept for one in prediction.passages] == [True, False, True]
        asked_turn, check = _turn(requests[3]), _turn(requests[-1])
        assert asked_turn.startswith("a text.\n\nc text.\n\nYou are a highly knowledgeable medical expert.")
        assert task.question in check
        assert ("This answer is wrong: " in check) is bool(task.given_answer)
        assert all(option in check for option in task.options)
        if answer_format == "free":
            assert (prediction.text, prediction.supported) == ("True" if supported else None, supported)
            assert "Proposed answer: True\n" in check
            assert prediction.reason == (None if supported else Reason.ABSTAINED)
        assert read_again(program, task, prediction) == prediction
