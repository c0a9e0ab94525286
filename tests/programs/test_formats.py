"""ClinIQLink's formats: the turns that are sent, the choices that are left, and what is made of replies."""

import os
import re
from pathlib import Path

import dspy
import pytest

from asked import requests_of
from medexam.datasets import load_task_set
from medexam.errors import SpecError
from medexam.predictions import Reason, Status
from medexam.programs import build_failure, build_prediction, build_program
from medexam.serve import ScriptedEngine
from medexam.specs import DatasetSpec
from medexam.specs.programs.tasks import ByFormatSpec
from recorded import recorded
from task_data import write_cliniqlink

FREE = ByFormatSpec(kind="by_format")
GUIDED = ByFormatSpec(kind="by_format", answer_format="guided")
TEMPLATES = {
    "true_false": "tf",
    "multiple_choice": "MC",
    "list": "list",
    "short": "short",
    "short_inverse": "short_inverse",
    "multi_hop": "multi_hop",
    "multi_hop_inverse": "multi_hop_inverse",
}


@pytest.fixture
def tasks(tmp_path):
    """Format -> a task of it."""
    data = load_task_set(DatasetSpec(name="cliniqlink", path=write_cliniqlink(tmp_path / "cliniqlink")))
    return {task.group: task for task in reversed(data.questions)}


def _lm(engine):
    return dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)


def _ask(spec, task, reply):
    engine = ScriptedEngine(reply if callable(reply) else {"*": reply})
    program = build_program(spec, "en")
    with dspy.context(lm=_lm(engine)):
        said = program(question=task)
    prediction = build_prediction(task, said, program=spec.label, spec_digest="d", latency_s=0.1)
    assert len(requests_of(engine)) <= program.calls_for(task)
    return prediction, requests_of(engine)


def _turns(request):
    return [(message.role, message.text) for message in request.messages]


def _choices(request):
    return (request.config.extensions or {}).get("choice")


# the words


@pytest.mark.data
@pytest.mark.parametrize("kind", TEMPLATES)
def test_each_prompt_is_the_published_template_filled_in(kind) -> None:
    data = os.environ.get("MEDEXAM_DATA")
    if not data:
        pytest.skip("needs MEDEXAM_DATA with the folder cliniqlink")
    template = (Path(data) / "cliniqlink" / "prompts" / f"{TEMPLATES[kind]}_template.prompt").read_text("utf-8")
    questions = load_task_set(DatasetSpec(name="cliniqlink", formats=[kind])).questions
    assert len(questions) == 5
    for task in questions:
        options = dict(zip(("options_A", "options_B", "options_C", "options_D"), task.options, strict=False))
        lettered = (f"{chr(65 + place)}: {option}" for place, option in enumerate(task.options))
        expected = template.format(
            question=task.question,
            options_joined="\n".join(lettered),
            answer=task.given_answer,
            false_answer=task.given_answer,
            reasoning=list(task.given_reasoning),
            **options,
        )
        _, (request,) = _ask(FREE, task, "x")
        assert _turns(request) == [("user", expected.strip())]
        assert request.system.startswith("You are a medical expert.")


def test_what_a_question_holds_is_put_in_as_it_is(tasks) -> None:
    task = tasks["short"]
    odd = type(task)(**{name: getattr(task, name) for name in task.__slots__} | {"question": "Why $5 of ${answer}?"})
    _, (request,) = _ask(FREE, odd, "x")
    assert "Question:\nWhy $5 of ${answer}?\n" in _turns(request)[0][1]


@pytest.mark.parametrize(
    ("kind", "tokens"),
    [("true_false", 1024), ("multiple_choice", 1024), ("list", 1024), ("short", 2048), ("multi_hop_inverse", 2048)],
)
def test_budgets_are_the_shared_tasks_unless_the_spec_has_one(tasks, kind, tokens) -> None:
    _, (request,) = _ask(FREE, tasks[kind], "x")
    assert request.config.max_tokens == tokens
    _, (request,) = _ask(FREE.model_copy(update={"max_tokens": 9}), tasks[kind], "x")
    assert request.config.max_tokens == 9


def test_own_words_are_asked_with(tasks, tmp_path) -> None:
    groups = "\n".join(f"    {kind}: '{kind}? $question'" for kind in TEMPLATES)
    (path := tmp_path / "words.yaml").write_text(f"en:\n  groups:\n{groups}\n")
    _, (request,) = _ask(FREE.model_copy(update={"prompt": path}), tasks["short"], "x")
    assert (request.system, _turns(request)) == (None, [("user", "short? What is BPH?")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("en: {groups: {short: 'Say $qestion'}}", "en.groups.short: only $question, $options"),
        ("en: {groups: {short: 'Costs 5$'}}", "en.groups.short: only $question"),
        ("en: {groups: {short: x}}", "has no prompt for true_false, multiple_choice"),
        ("es: {groups: {short: x}}", "has no words in 'en': set program.prompt_language to one that it has (es)"),
        ("en: {group: {short: x}}", "en.group"),
        ("en: [", "not YAML"),
    ],
)
def test_words_that_cannot_be_used_are_refused_in_one_line(tmp_path, text, said) -> None:
    (path := tmp_path / "words.yaml").write_text(text)
    with pytest.raises(SpecError) as raised:
        build_program(FREE.model_copy(update={"prompt": path}), "en")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_words_that_are_not_there_name_the_shipped_ones() -> None:
    with pytest.raises(SpecError, match=r"nowhere.*cliniqlink, extraction"):
        build_program(FREE.model_copy(update={"prompt": "nowhere"}), "en")


# free replies


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_free_reply_is_the_answer(tasks, kind) -> None:
    prediction, (request,) = _ask(FREE, tasks[kind], "  Final Answer: so it is.\n")
    assert (prediction.status, prediction.text) == (Status.ANSWERED, "Final Answer: so it is.")
    assert (prediction.reply, prediction.answer, prediction.span) == ("  Final Answer: so it is.\n", None, None)
    assert _choices(request) is None


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", Reason.EMPTY),
        ("  \n", Reason.EMPTY),
        ({"text": "", "finish_reason": "length"}, Reason.TRUNCATED),
    ],
)
def test_a_reply_that_says_nothing_is_no_answer(tasks, reply, reason) -> None:
    prediction, _ = _ask(FREE, tasks["short"], reply)
    assert (prediction.status, prediction.reason, prediction.text) == (Status.UNANSWERED, reason, None)


def test_a_reply_that_was_cut_short_is_kept(tasks) -> None:
    prediction, _ = _ask(FREE, tasks["multi_hop"], {"text": "Final Answer: res", "finish_reason": "length"})
    assert (prediction.status, prediction.text) == (Status.ANSWERED, "Final Answer: res")
    assert prediction.finish_reason == "length"


def test_thinking_that_was_cut_short_is_the_answer(tasks) -> None:
    prediction, _ = _ask(FREE, tasks["short"], {"text": "<think>Perhaps", "finish_reason": "length"})
    assert (prediction.status, prediction.text) == (Status.ANSWERED, "<think>Perhaps")


def test_thinking_is_no_part_of_the_answer(tasks) -> None:
    prediction, _ = _ask(FREE, tasks["true_false"], "<think>False?</think>True")
    assert prediction.text == "True"
    assert prediction.reply == "<think>False?</think>True"


@pytest.mark.parametrize(("error", "status"), [("transport", Status.FAILED), ("context", Status.UNANSWERED)])
def test_faults_are_attributed_once(tasks, error, status) -> None:
    with pytest.raises(Exception, match="scripted") as caught:
        _ask(FREE, tasks["short"], {"error": error})
    assert build_failure(tasks["short"], caught.value, program="by_format", spec_digest="d").status is status


# guided replies


@pytest.mark.parametrize("reply", ["False", "False, since the moon is none.", "true"])
def test_guided_true_or_false(tasks, reply) -> None:
    prediction, (request,) = _ask(GUIDED, tasks["true_false"], reply)
    assert _choices(request) == ["True", "False"]
    assert prediction.text == ("True" if reply == "true" else "False")


def test_guided_multiple_choice_is_the_text_of_an_option(tasks) -> None:
    prediction, (request,) = _ask(GUIDED, tasks["multiple_choice"], "Gold")
    assert _choices(request) == ["Aspirin", "Gold", "Sugar", "Salt"]
    assert (prediction.text, prediction.reply) == ("Gold", "Gold")


def _change(task, **fields):
    return type(task)(**{name: getattr(task, name) for name in task.__slots__} | fields)


def test_options_that_are_equal_are_one_choice(tasks) -> None:
    task = _change(tasks["multiple_choice"], options=("Gold", "Salt", "Gold"))
    _, (request,) = _ask(GUIDED, task, "Gold")
    assert _choices(request) == ["Gold", "Salt"]


LISTED = {"A": "Heart", "B": "Liver", "C": "Spleen"}


@pytest.mark.parametrize(
    ("wanted", "calls"), [("B", 2), ("CA", 3), ("ABC", 3), ("AAA", 3)], ids=["one", "two", "all", "one again and again"]
)
def test_a_guided_list_is_chosen_by_letters(tasks, wanted, calls) -> None:
    prediction, requests = _ask(GUIDED, tasks["list"], ", ".join(f"{each}: {LISTED[each]}" for each in wanted) + ".")
    assert len(requests) == calls
    assert _choices(requests[0]) == ["A", "B", "C"]
    assert _turns(requests[1])[-1] == ("assistant", f"{wanted[0]}: {LISTED[wanted[0]]}")
    for request in requests[1:]:
        written = re.findall(r"\b([A-C]): ", _turns(request)[-1][1])
        *offered, end = _choices(request)
        assert sorted([*written, *(each.removeprefix(", ") for each in offered)]) == ["A", "B", "C"]
        assert end == "."
    named = prediction.text.split(", ")
    assert len(set(named)) == len(named), "no option stands twice"
    if wanted != "AAA":
        assert named == [LISTED[each] for each in wanted]


def test_a_guided_list_of_one_option_is_that_option(tasks) -> None:
    prediction, (request,) = _ask(GUIDED, _change(tasks["list"], options=("Liver",)), "whatever")
    assert (prediction.text, _choices(request)) == ("Liver", ["A"])


def test_options_that_hold_commas_and_begin_alike(tasks) -> None:
    task = _change(tasks["list"], options=("Apo B", "Apo B, C", "Apo B, C and D"))
    prediction, requests = _ask(GUIDED, task, "B: Apo B, C.")
    assert prediction.text == "Apo B, C"
    assert len(requests) == 2


def test_options_beyond_z_have_letters_too(tasks) -> None:
    options = tuple(f"Option {number}" for number in range(1, 29))
    prediction, requests = _ask(GUIDED, _change(tasks["list"], options=options), "\\: Option 28.")
    assert _choices(requests[0])[-3:] == ["Z", "[", "\\"]
    assert (prediction.text, len(requests)) == ("Option 28", 2)


def test_what_a_guided_list_costs_is_counted_over_all_calls(tasks) -> None:
    prediction, requests = _ask(GUIDED, tasks["list"], "B: Liver, C: Spleen.")
    assert prediction.prompt_tokens == sum(
        len(request.system.split()) + sum(len(message.text.split()) for message in request.messages)
        for request in requests
    )


def test_a_guided_wrong_step_is_a_number_and_its_explanation(tasks) -> None:
    reply = "Incorrect Reasoning Step: 2\nIncorrect Reasoning Explanation: there is no link."
    prediction, (number, why) = _ask(GUIDED, tasks["multi_hop_inverse"], reply)
    assert _choices(number) == ["1", "2", "3"]
    assert _turns(number)[-1] == ("assistant", "Incorrect Reasoning Step: ")
    assert _choices(why) is None
    assert _turns(why)[-1][1] == "Incorrect Reasoning Step: 2\nIncorrect Reasoning Explanation:"
    assert prediction.text == prediction.reply == reply


def test_a_wrong_step_without_steps_stays_free(tasks) -> None:
    prediction, (request,) = _ask(GUIDED, _change(tasks["multi_hop_inverse"], given_reasoning=()), "Step 1")
    assert (prediction.text, _choices(request)) == ("Step 1", None)


def test_a_guided_explanation_begins_as_its_format_asks(tasks) -> None:
    prediction, (request,) = _ask(GUIDED, tasks["short_inverse"], " the dose is 0.3 units")
    assert _turns(request)[-1] == ("assistant", "Incorrect Explanation:")
    assert prediction.text == "Incorrect Explanation: the dose is 0.3 units"


@pytest.mark.parametrize("kind", ["short", "multi_hop"])
def test_prose_stays_free_where_answers_are_guided(tasks, kind) -> None:
    prediction, (request,) = _ask(GUIDED, tasks[kind], "Final Answer: so.")
    assert (prediction.text, _choices(request), len(request.messages)) == ("Final Answer: so.", None, 1)


async def test_sync_and_async_are_the_same_program(tasks) -> None:
    engine = ScriptedEngine({"*": "B: Liver, C: Spleen."})
    program = build_program(GUIDED, "en")
    with dspy.context(lm=_lm(engine)):
        said = await program.acall(question=tasks["list"])
        again = program(question=tasks["list"])
    assert (said.text, said.generations) == (again.text, again.generations)
