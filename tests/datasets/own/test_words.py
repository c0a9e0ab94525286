"""Questions of one's own that are answered in words, or by a part of their context."""

import json

import pytest

from medexam.datasets import load_task_set
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec, validate
from table_cases import read_table, write_rows

CONTEXT = "The patient takes metformin 500 mg for type 2 diabetes."
SHORT = {
    "question": "Which drug?",
    "answers": ["metformin", "Metformin 500 mg"],
    "context": CONTEXT,
    "subject": "drugs",
}
SPAN = {"question": "Which drug?", "context": CONTEXT, "answer": "metformin"}


@pytest.fixture
def load(tmp_path):
    """`load(rows, "spans")`: the tasks of a file with these rows, or with this text."""

    def read(rows, kind="short_answer", name="mine.jsonl", **settings):
        path = write_rows(tmp_path / name, rows)
        return load_task_set(validate(DatasetSpec, {"kind": kind, "path": path, **settings}))

    return read


@pytest.mark.parametrize(*read_table("answers_in_words"))
def test_answers_are_texts_that_spans_find_in_their_context(load, kind, row, answers) -> None:
    tasks = load([row], kind)
    (task,) = tasks.questions
    assert tasks.golds[task.key].answers == tuple(answers)
    assert (task.question, task.context) == (row["question"], row.get("context", ""))
    assert task.group == row.get("subject", "all")


@pytest.mark.parametrize(*read_table("bad_spans"))
def test_a_bad_row_is_named_and_left_out_where_that_is_said(load, change, said) -> None:
    with pytest.raises(DatasetError, match=said):
        load([{**SPAN, **change}], "spans")
    tasks = load([SPAN, {**SPAN, **change}], "spans", skip_bad=0.5)
    assert (len(tasks.questions), len(tasks.notes)) == (1, 1)


def test_the_form_of_squad_is_known(load) -> None:
    question = {"id": "q1", "question": "Which?", "answers": [{"text": "metformin", "answer_start": 18}]}
    paragraphs = [{"context": CONTEXT, "qas": [question, question | {"id": "q3", "answers": []}]}]
    document = json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]})
    with pytest.raises(DatasetError, match="1 of 2 rows is bad: row 2, column answers: is empty"):
        load(document, "spans", "train.json")
    tasks = load(document, "spans", "train.json", skip_bad=0.7)
    assert ([task.key for task in tasks.questions], tasks.golds["q1"].answers) == (["q1"], ("metformin",))


def test_the_content_tells_one_set_from_another(load) -> None:
    first = load([SHORT])
    assert load([SHORT], name="other.jsonl", columns={"question": "question"}).fingerprint == first.fingerprint
    gold = load([{**SHORT, "answers": ["insulin"]}])
    assert (gold.fingerprint == first.fingerprint, gold.golds_fingerprint == first.golds_fingerprint) == (True, False)


def test_subjects_are_selected(load) -> None:
    rows = [{"question": f"{place}?", "answer": "x", "subject": "ab"[place % 2]} for place in range(6)]
    assert [task.question for task in load(rows, disciplines="a").questions] == ["0?", "2?", "4?"]
    assert len(load(rows, limit=4).questions) == 4
