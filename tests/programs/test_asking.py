"""The prompting programs: the turns they send, the choices they attach, and what they make of replies."""

import dspy
import pytest

from asked import requests_of
from medexam.predictions import Prediction, Reason, Status
from medexam.programs import (
    AsyncRecordingEngine,
    RecordingEngine,
    build_failure,
    build_prediction,
    build_program,
    read_again,
)
from medexam.serve import ScriptedEngine
from medexam.signatures import render_question
from medexam.specs import ChainOfThoughtSpec, FewShotSpec, ZeroShotSpec


def _lm(engine: ScriptedEngine) -> dspy.LM:
    recorders = {"engine": RecordingEngine(engine.sync), "async_engine": AsyncRecordingEngine(engine)}
    return dspy.LM("medexam/scripted", **recorders, cache=False, num_retries=0, temperature=0.0)


def _ask(spec, question, replies, language="en"):
    engine = ScriptedEngine(replies)
    program = build_program(spec, language)
    with dspy.context(lm=_lm(engine), trace=[]):
        said = program(question=question)
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    return prediction, requests_of(engine)


def _turns(request):
    return [(message.role, message.text) for message in request.messages]


def test_zero_shot_asks_once_and_within_its_budget(question) -> None:
    prediction, (request,) = _ask(ZeroShotSpec(kind="zero_shot"), question, {"*": "{Answer: 3}"})
    assert [part.text for part in request.system] == [""]
    assert [role for role, _ in _turns(request)] == ["user", "user"]
    assert _turns(request)[1] == ("user", render_question(question))
    assert request.config.max_tokens == 64
    assert request.config.temperature == 0.0
    assert request.config.extensions is None
    assert (prediction.status, prediction.answer, prediction.reply) == (Status.ANSWERED, 3, "{Answer: 3}")


def test_the_rendering_is_figure_5(question) -> None:
    assert render_question(question).splitlines()[:3] == [
        "Excitatory postsynaptic potentials:",
        "1. Are all-or-none.",
        "2. Are hyperpolarizing.",
    ]


def test_guided_begins_the_reply_and_offers_the_questions_own_options(question) -> None:
    four = question.model_copy(update={"options": question.options[:4]})
    spec = ZeroShotSpec(kind="zero_shot", answer_format="guided")
    prediction, (request,) = _ask(spec, four, {"*": "{Answer: 4}"})
    assert _turns(request)[-1] == ("assistant", "{Answer: ")
    assert request.config.extensions == {"choice": ["1", "2", "3", "4"]}
    assert (prediction.answer, prediction.reply) == (4, "{Answer: 4}")


def test_few_shot_shows_solved_questions_as_turns(question) -> None:
    _, (request,) = _ask(FewShotSpec(kind="few_shot"), question, {"*": "{Answer: 3}"})
    turns = _turns(request)
    assert [role for role, _ in turns] == ["user", "assistant"] * 3 + ["user"]
    assert [text for role, text in turns if role == "assistant"] == ["{Answer: 2}", "{Answer: 4}", "{Answer: 1}"]
    assert turns[0][1].startswith("Which neurotransmitter is primarily involved in mood regulation?\n1. Dopamine\n")
    assert turns[-1] == ("user", render_question(question))


def test_the_examples_are_parallel_in_both_languages(question) -> None:
    answers = []
    for language in ("en", "es"):
        program = build_program(FewShotSpec(kind="few_shot"), language)
        answers.append([(demo.answer, len(demo.question.options)) for demo in program.respond.demos])
    assert answers[0] == answers[1]


def test_chain_of_thought_keeps_the_reasoning(question) -> None:
    reply = "Option 1 is the action potential. {Answer: 1} is wrong, so {Answer: 3}"
    prediction, (request,) = _ask(ChainOfThoughtSpec(kind="chain_of_thought"), question, {"*": reply})
    assert "Think through each option briefly" in request.system
    assert request.config.max_tokens == 512
    assert prediction.answer == 3
    assert prediction.rationale == "Option 1 is the action potential. {Answer: 1} is wrong, so"


def test_guided_chain_of_thought_reasons_then_chooses(question) -> None:
    spec = ChainOfThoughtSpec(kind="chain_of_thought", answer_format="guided", max_tokens=100)
    prediction, (reason, respond) = _ask(spec, question, {"*": "They add up. {Answer: 2}"})
    assert reason.config.stop == ("{Answer",)
    assert reason.config.max_tokens == 100
    assert reason.config.extensions is None
    assert _turns(respond)[-1] == ("assistant", "They add up.\n\n{Answer: ")
    assert respond.config.extensions == {"choice": ["1", "2", "3", "4", "5"]}
    assert prediction.rationale == "They add up."
    assert prediction.reply == "They add up.\n\n{Answer: 1}"
    assert prediction.prompt_tokens == sum(_words(r) for r in (reason, respond))


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
def test_what_is_chosen_is_the_answer_whatever_was_reasoned_before(question, reasoning: str) -> None:
    spec = ChainOfThoughtSpec(kind="chain_of_thought", answer_format="guided")
    prediction, _ = _ask(spec, question, {"*": reasoning})
    assert (prediction.answer, prediction.status) == (1, Status.ANSWERED)
    assert read_again(build_program(spec, "en"), question, prediction) == prediction


def _words(request) -> int:
    return len(request.system.split()) + sum(len(m.text.split()) for m in request.messages)


def test_thinking_is_kept_apart(question) -> None:
    prediction, _ = _ask(
        ZeroShotSpec(kind="zero_shot"), question, {"*": "<think>Perhaps {Answer: 2}?</think>{Answer: 3}"}
    )
    assert prediction.answer == 3


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I am not sure.", Reason.UNPARSED),
        ("", Reason.EMPTY),
        ("{Answer: 6}", Reason.UNPARSED),
        ({"text": "Well, the first option", "finish_reason": "length"}, Reason.TRUNCATED),
        ({"text": "<think>hm", "finish_reason": "length"}, Reason.TRUNCATED_THINKING),
    ],
)
def test_a_reply_without_a_legal_option_leaves_the_question_unanswered(question, reply, reason) -> None:
    prediction, requests = _ask(ZeroShotSpec(kind="zero_shot"), question, {"*": reply})
    assert (prediction.status, prediction.reason, prediction.answer) == (Status.UNANSWERED, reason, None)
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        ("transport", Status.FAILED, None),
        ("server", Status.FAILED, None),
        ("context", Status.UNANSWERED, "context_overflow"),
    ],
)
def test_faults_are_attributed_once(question, error, status, reason) -> None:
    with pytest.raises(Exception, match="scripted") as caught:
        _ask(ZeroShotSpec(kind="zero_shot"), question, {"*": {"error": error}})
    prediction = build_failure(question, caught.value, program="zero_shot", spec_digest="d")
    assert (prediction.status, prediction.reason) == (status, reason)
    assert (prediction.failure is not None) == (status is Status.FAILED)


async def test_sync_and_async_are_the_same_program(question) -> None:
    engine = ScriptedEngine({"*": "They add up. {Answer: 3}"})
    program = build_program(ChainOfThoughtSpec(kind="chain_of_thought", answer_format="guided"), "en")
    with dspy.context(lm=_lm(engine), trace=[]):
        said = await program.acall(question=question)
        again = program(question=question)
    assert (said.answer, said.rationale, said.generations) == (again.answer, again.rationale, again.generations)


def test_a_program_saves_and_loads_without_pickle(question, tmp_path) -> None:
    program = build_program(FewShotSpec(kind="few_shot"), "en")
    program.save(str(tmp_path / "program.json"))
    other = build_program(FewShotSpec(kind="few_shot"), "es")
    other.load(str(tmp_path / "program.json"))
    engine = ScriptedEngine({"*": "{Answer: 3}"})
    with dspy.context(lm=_lm(engine), trace=[]):
        program(question=question)
        other(question=question)
    assert _turns(requests_of(engine)[0]) == _turns(requests_of(engine)[1])
    assert requests_of(engine)[0].system == requests_of(engine)[1].system


def test_dspy_can_bootstrap_demonstrations(question) -> None:
    engine = ScriptedEngine({"*": "{Answer: 3}"})
    program = build_program(ZeroShotSpec(kind="zero_shot"), "en")
    examples = [dspy.Example(question=question, answer=3).with_inputs("question")]
    with dspy.context(lm=_lm(engine), trace=[]):
        optimizer = dspy.BootstrapFewShot(metric=lambda e, p, trace=None: e.answer == p.answer, max_labeled_demos=0)
        taught = optimizer.compile(program, trainset=examples)
        taught(question=question)
    assert _turns(requests_of(engine)[-1])[1:3] == [("user", render_question(question)), ("assistant", "{Answer: 3}")]


def test_a_prediction_survives_its_line(question) -> None:
    prediction, _ = _ask(ZeroShotSpec(kind="zero_shot"), question, {"*": "{Answer: 3}"})
    assert prediction.to_json()["schema"] == 1
    assert Prediction.model_validate(prediction.to_json()) == prediction
