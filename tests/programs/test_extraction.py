"""Extraction: an answer is always a literal part of its context, or there is none."""

import dspy
import pytest

from asked import requests_of
from medexam.errors import SpecError
from medexam.predictions import Prediction, Reason, Status
from medexam.programs import build_prediction, build_program
from medexam.questions import Task
from medexam.serve import ScriptedEngine
from medexam.specs.programs.tasks import ExtractExplanationSpec
from recorded import recorded

CONTEXT = "Asthma wheezes.  He has no fever. So a cold is likely!"
TASK = Task("casimedicos/test/0/CQ#E", "CQ#E", "en", "A man coughs. What is it?", context=CONTEXT)
FREE = ExtractExplanationSpec(kind="extract_explanation")
GUIDED = ExtractExplanationSpec(kind="extract_explanation", answer_format="guided")


def _ask(spec, reply, task=TASK):
    engine = ScriptedEngine(reply if callable(reply) else {"*": reply})
    program = build_program(spec, task.language)
    with dspy.context(lm=dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)):
        said = program(question=task)
    assert len(requests_of(engine)) <= program.calls_for(task)
    return build_prediction(task, said, program=spec.label, spec_digest="d", latency_s=0.1), requests_of(engine)


def _turns(request):
    return [(message.role, message.text) for message in request.messages]


@pytest.mark.parametrize(
    ("reply", "text", "alignment"),
    [
        ("He has no fever.", "He has no fever", "literal"),
        ("«He has no fever»", "He has no fever", "literal"),
        ("he has no FEVER, so a cold is likely", "He has no fever. So a cold is likely", "aligned"),
        ("<think>Asthma wheezes.</think>So a cold is likely!", "So a cold is likely!", "literal"),
    ],
)
def test_a_quotation_is_found_in_the_context(reply, text, alignment) -> None:
    prediction, (request,) = _ask(FREE, reply)
    assert (prediction.status, prediction.text, prediction.alignment) == (Status.ANSWERED, text, alignment)
    assert CONTEXT[slice(*prediction.span)] == text
    assert prediction.reply == reply
    assert (request.config.max_tokens, request.config.extensions) == (512, None)
    ((role, asked),) = _turns(request)
    assert role == "user"
    assert f"Text:\n{CONTEXT}\n" in asked
    assert f"Question:\n{TASK.question}\n" in asked


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("It is influenza, I believe.", Reason.NOT_IN_CONTEXT),
        ("", Reason.EMPTY),
        ({"text": "The physician argues that the", "finish_reason": "length"}, Reason.TRUNCATED),
    ],
)
def test_a_reply_that_quotes_nothing_is_no_answer(reply, reason) -> None:
    prediction, _ = _ask(FREE, reply)
    assert (prediction.status, prediction.reason) == (Status.UNANSWERED, reason)
    assert prediction.text is prediction.span is prediction.alignment is None


def test_a_quotation_that_was_cut_short_is_kept() -> None:
    prediction, _ = _ask(FREE, {"text": "He has no fever. So a co", "finish_reason": "length"})
    assert (prediction.status, prediction.text) == (Status.ANSWERED, "He has no fever. So a")


def test_guided_answers_are_whole_sentences() -> None:
    prediction, (first, last) = _ask(GUIDED, "[2 - 3")
    asked = _turns(first)[0][1]
    assert "[1] Asthma wheezes.\n[2] He has no fever.\n[3] So a cold is likely!\n" in asked
    assert "from 1 to 3." in asked
    assert _turns(first)[-1] == ("assistant", "[")
    assert first.config.extensions == {"choice": ["1", "2", "3"]}
    assert _turns(last)[-1] == ("assistant", "[2 - ")
    assert last.config.extensions == {"choice": ["2", "3"]}, "the last does not stand before the first"
    assert (prediction.text, prediction.alignment) == ("He has no fever. So a cold is likely!", "literal")
    assert CONTEXT[slice(*prediction.span)] == prediction.text
    assert prediction.reply == "[2 - 3"


def test_a_guided_context_of_one_sentence() -> None:
    task = Task("k", "CQ#E", "en", "Why?", context="It was hot.")
    prediction, (first, last) = _ask(GUIDED, "whatever", task)
    assert first.config.extensions == last.config.extensions == {"choice": ["1"]}
    assert prediction.text == "It was hot."


def test_a_guided_context_of_many_sentences() -> None:
    context = " ".join(f"Sentence {number}." for number in range(1, 13)).replace(" S", "\nS")
    prediction, (_, last) = _ask(GUIDED, "[11 - 12", Task("k", "CQ#E", "en", "Why?", context=context))
    assert prediction.text == "Sentence 11.\nSentence 12."
    assert last.config.extensions == {"choice": ["11", "12"]}


@pytest.mark.parametrize("spec", [FREE, GUIDED])
def test_an_empty_context_holds_no_answer(spec) -> None:
    prediction, _ = _ask(spec, "1", Task("k", "CQ#E", "en", "Why?", context=" "))
    assert (prediction.status, prediction.reason) == (Status.UNANSWERED, Reason.NOT_IN_CONTEXT)


@pytest.mark.parametrize("language", ["en", "es", "fr", "it"])
@pytest.mark.parametrize("spec", [FREE, GUIDED])
def test_each_language_has_its_words(spec, language) -> None:
    task = Task("k", "CQ#E", language, "¿?", context="Uno. Dos.")
    _, (request, *_) = _ask(spec, "1", task)
    assert "Dos." in _turns(request)[0][1]
    assert "$" not in request.system + _turns(request)[0][1]


def test_words_that_lack_a_way_of_asking_are_refused(tmp_path) -> None:
    (path := tmp_path / "words.yaml").write_text("en: {groups: {quote: '$context'}}")
    build_program(FREE.model_copy(update={"prompt": path}), "en")
    with pytest.raises(SpecError, match="has no prompt for sentences"):
        build_program(GUIDED.model_copy(update={"prompt": path}), "en")


def test_a_prediction_survives_its_line() -> None:
    prediction, _ = _ask(FREE, "He has no fever.")
    assert Prediction.model_validate(prediction.to_json()) == prediction
