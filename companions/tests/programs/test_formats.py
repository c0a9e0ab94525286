"""ClinIQLink's formats: the turns that are sent, the choices that are left, and what is made of replies."""

import hashlib
import json
from dataclasses import replace

import pytest

import medexam
from medexam.datasets import load_task_set
from medexam.errors import SpecError
from medexam.predictions import Reason, Status
from medexam.questions import Task
from medexam.specs import DatasetSpec

FREE = {"kind": "by_format"}
GUIDED = {"kind": "by_format", "answer_format": "guided"}
TEMPLATES = {"true_false": "tf", "multiple_choice": "MC"} | {
    name: name for name in ("list", "short", "short_inverse", "multi_hop", "multi_hop_inverse")
}


@pytest.mark.data
@pytest.mark.parametrize("kind", TEMPLATES)
def test_each_prompt_is_the_published_template_filled_in(ask_task, full_data, kind) -> None:
    template = (full_data / "cliniqlink" / "prompts" / f"{TEMPLATES[kind]}_template.prompt").read_text("utf-8")
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
        system, asked = ask_task(FREE, task, "x").dialogues[0].messages
        assert asked["content"] == expected.strip()
        assert system["content"].startswith("You are a medical expert.")


def test_what_a_question_holds_is_put_in_as_it_is(ask_task, tasks) -> None:
    asked = ask_task(FREE, replace(tasks["short"], question="Why $5 of ${answer}?"), "x")
    assert "Question:\nWhy $5 of ${answer}?\n" in asked.turns[0]


@pytest.mark.parametrize(("program", "seal"), [(FREE, "b67809ae8d71"), (GUIDED, "613aa8edbfe1")])
def test_the_formats_are_asked_as_they_are_sealed(ask_task, program, seal) -> None:
    """Where a seal breaks, the code asks otherwise, and digests change."""
    parts = []
    for name in TEMPLATES:
        task = Task(f"c/{name}", name, "en", "Q?", "", ("x", "y"), "g", ("a", "b"))
        for dialogue in ask_task(program, task, "Because.\n{Answer: 2}").dialogues:
            settings = [dialogue.sampling.get("max_tokens"), dialogue.sampling.get("stop", []), dialogue.choices]
            parts.append([dialogue.turns_with_opening, *settings])
    asked = json.dumps(parts, ensure_ascii=False, sort_keys=True)
    assert hashlib.sha256(asked.encode()).hexdigest()[:12] == seal


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("en: {groups: {short: 'Say $qestion'}}", "en.groups.short: only $question, $options"),
        ("en: {groups: {short: 'Costs 5$'}}", "en.groups.short: only $question"),
        ("en: {groups: {short: x}}", "has no prompt for true_false, multiple_choice"),
        ("es: {groups: {short: x}}", "has no words in 'en': set program.prompt_language to one that it has (es)"),
        ("en: [", "not YAML"),
    ],
)
def test_words_that_cannot_be_used_are_refused_in_one_line(tmp_path, text, said) -> None:
    (path := tmp_path / "words.yaml").write_text(text)
    with pytest.raises(SpecError) as raised:
        medexam.build_program({**FREE, "prompt": str(path)})
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_free_reply_is_the_answer(ask_task, tasks, kind) -> None:
    asked = ask_task(FREE, tasks[kind], "  Final Answer: so it is.\n")
    assert (asked.said.status, asked.said.text) == (Status.ANSWERED, "Final Answer: so it is.")
    assert (asked.said.reply, asked.said.answer) == ("  Final Answer: so it is.\n", None)
    assert [one.choices for one in asked.dialogues] == [None]


@pytest.mark.parametrize(
    ("reply", "text", "reason"),
    [
        ("  \n", None, Reason.EMPTY),
        ({"text": "", "finish_reason": "length"}, None, Reason.TRUNCATED),
        ({"text": "Final Answer: res", "finish_reason": "length"}, "Final Answer: res", None),
        ({"text": "<think>Perhaps", "finish_reason": "length"}, "<think>Perhaps", None),
        ("<think>False?</think>True", "True", None),
    ],
)
def test_what_is_written_is_kept_and_nothing_is_no_answer(ask_task, tasks, reply, text, reason) -> None:
    said = ask_task(FREE, tasks["short"], reply).said
    assert (said.text, said.reason) == (text, reason)


@pytest.mark.parametrize(
    ("kind", "reply", "choices", "text"),
    [
        ("true_false", "False, since the moon is none.", ("True", "False"), "False"),
        ("true_false", "true", ("True", "False"), "True"),
        ("multiple_choice", "Gold", ("Aspirin", "Gold", "Sugar", "Salt"), "Gold"),
        ("short", "Final Answer: so.", None, "Final Answer: so."),
        ("multi_hop", "Final Answer: so.", None, "Final Answer: so."),
        ("list", "Liver, Spleen", None, "Liver, Spleen"),
    ],
)
def test_guided_answers_are_chosen_where_there_is_a_choice(ask_task, tasks, kind, reply, choices, text) -> None:
    asked = ask_task(GUIDED, tasks[kind], reply)
    assert ([one.choices for one in asked.dialogues], asked.said.text) == ([choices], text)


def test_options_that_are_equal_are_one_choice(ask_task, tasks) -> None:
    task = replace(tasks["multiple_choice"], options=("Gold", "Salt", "Gold"))
    assert ask_task(GUIDED, task, "Gold").dialogues[0].choices == ("Gold", "Salt")
