"""Questions of one's own that are answered in words, or by a part of their context."""

import json

import pytest

from medexam.datasets import load_task_set
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec, validate

CONTEXT = "The patient takes metformin 500 mg for type 2 diabetes."
SHORT = {
    "question": "Which drug?",
    "answers": ["metformin", "Metformin 500 mg"],
    "context": CONTEXT,
    "subject": "drugs",
}
SPAN = {"question": "Which drug?", "context": CONTEXT, "answer": "metformin", "start": 18}


def _load(tmp_path, *rows, kind="short_answer", columns=None, name="mine.jsonl", **settings):
    content = rows[0] if isinstance(rows[0], str) else "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / name).write_text(content)
    tree = {"kind": kind, "path": tmp_path / name, "columns": columns or {}, **settings}
    return load_task_set(validate(DatasetSpec, tree))


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        (SHORT, ("metformin", "Metformin 500 mg")),
        ({"question": "How many?", "answer": 46}, ("46",)),
        ({"question": "Who?", "answer": '["Virchow", "Koch"]'}, ("Virchow", "Koch")),
    ],
)
def test_short_answers_are_one_text_or_several(tmp_path, row, answers) -> None:
    tasks = _load(tmp_path, row)
    (task,) = tasks.questions
    assert tasks.golds[task.key].answers == answers
    assert (task.question, task.context) == (row["question"], row.get("context", ""))
    assert task.group == row.get("subject", "all")


@pytest.mark.parametrize(
    "row",
    [
        SPAN,
        {key: value for key, value in SPAN.items() if key != "start"},
        {**SPAN, "answer": {"text": ["metformin"], "answer_start": [18]}},
        {**SPAN, "answer": [{"text": "metformin", "answer_start": 18}]},
    ],
)
def test_spans_stand_in_their_context(tmp_path, row) -> None:
    tasks = _load(tmp_path, row, kind="spans")
    (task,) = tasks.questions
    assert tasks.golds[task.key].answers == ("metformin",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": "insulin"}, "line 1, column answer: is 'insulin', which the context does not contain"),
        ({"start": 4}, "line 1, column start: is 4, where 'patient t' stands: 'metformin' is at 18"),
        ({"context": ""}, "column context: is empty"),
        ({"question": None}, "column question: is empty"),
        ({"answer": []}, "column answer: is empty"),
    ],
)
def test_a_bad_row_is_named(tmp_path, change, said) -> None:
    with pytest.raises(DatasetError, match=said):
        _load(tmp_path, {**SPAN, **change}, kind="spans")
    tasks = _load(tmp_path, SPAN, {**SPAN, **change}, kind="spans", skip_bad=0.5)
    assert (len(tasks.questions), len(tasks.notes)) == (1, 1)


def test_the_form_of_squad_is_known(tmp_path) -> None:
    question = {"id": "q1", "question": "Which?", "answers": [{"text": "metformin", "answer_start": 18}]}
    document = {"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": CONTEXT, "qas": [question]}]}]}
    tasks = _load(tmp_path, json.dumps(document), kind="spans", name="train.json")
    assert (tasks.questions[0].key, tasks.golds["q1"].answers) == ("q1", ("metformin",))


def test_the_content_tells_one_set_from_another(tmp_path) -> None:
    first = _load(tmp_path, SHORT)
    assert _load(tmp_path, SHORT, name="other.jsonl", columns={"question": "question"}).fingerprint == first.fingerprint
    gold = _load(tmp_path, {**SHORT, "answers": ["insulin"]})
    assert (gold.fingerprint == first.fingerprint, gold.golds_fingerprint == first.golds_fingerprint) == (True, False)


def test_subjects_are_selected(tmp_path) -> None:
    rows = [{"question": f"{place}?", "answer": "x", "subject": "ab"[place % 2]} for place in range(6)]
    assert {task.group for task in _load(tmp_path, *rows, disciplines="a").questions} == {"a"}
    assert len(_load(tmp_path, *rows, limit=4).questions) == 4
