"""A data set is known by what its questions say, apart from its golds, however its files are written."""

import copy
import dataclasses
import json
import random

import pytest

from medexam.benchmarks import find_benchmark
from medexam.datasets.fingerprints import (
    fingerprint_golds,
    fingerprint_questions,
    fingerprint_task_golds,
    fingerprint_tasks,
)
from medexam.datasets.rows import Row, TaskReading, TaskRow
from medexam.questions import Component, Discipline, Exam, Option, Question, Task, TaskGold
from medexam.specs import DatasetSpec
from task_data import items_of, write_casimedicos, write_cliniqlink, write_squad


def _prints(name, path, **settings) -> tuple[str, str]:
    """Of the questions, and of the golds."""
    spec = DatasetSpec(name=name, path=path, **settings)
    found = find_benchmark(spec).load(spec)
    return found.fingerprint, found.golds_fingerprint


def _with_crlf(path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def _reordered(value):
    """The same JSON, the keys of its objects in the opposite order."""
    if isinstance(value, dict):
        return {key: _reordered(value[key]) for key in reversed(value)}
    return [_reordered(each) for each in value] if isinstance(value, list) else value


def test_headqa_v1_in_any_writing(document, write_json, tmp_path) -> None:
    first = _prints("headqa_v1", write_json(document))
    (tmp_path / "moved").mkdir()
    document["exams"] = dict(reversed(document["exams"].items()))
    moved = write_json(json.dumps(_reordered(document), indent=2, ensure_ascii=False), "moved/other.json")
    _with_crlf(moved)
    assert _prints("headqa_v1", moved) == first
    assert _prints("headqa_v1", moved, years=(2013,), limit=3) == first


def test_headqa_v2_in_any_writing(records, write_parquet, write_jsonl) -> None:
    first = _prints("headqa_v2", write_parquet(records))
    mixed = random.Random(0).sample(records, len(records))
    path = write_jsonl(_reordered(mixed), "elsewhere/other.jsonl")
    _with_crlf(path)
    assert _prints("headqa_v2", path) == _prints("headqa_v2", write_parquet(mixed, "again.parquet")) == first
    assert _prints("headqa_v2", write_jsonl(records[:-1]))[0] != first[0]


def _swap(record) -> None:
    one, two, *_ = record["answers"]
    one["atext"], two["atext"] = two["atext"], one["atext"]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda record: record.update(ra=record["ra"] % 4 + 1), (True, False)),
        (lambda record: record.update(ra=0), (True, False)),
        (lambda record: record.update(qtext=record["qtext"] + " "), (False, True)),
        (lambda record: record["answers"][0].update(atext=record["answers"][0]["atext"] + "x"), (False, True)),
        (_swap, (False, True)),
        (lambda record: record["answers"].reverse(), (False, True)),
        (lambda record: record.update(image="other.png"), (False, True)),
    ],
    ids=["gold corrected", "gold withdrawn", "stem", "option", "options swapped", "options reversed", "picture"],
)
def test_a_gold_is_told_from_a_text(records, write_jsonl, change, same) -> None:
    first = _prints("headqa_v2", write_jsonl(records))
    changed = copy.deepcopy(records)
    change(changed[7])
    second = _prints("headqa_v2", write_jsonl(changed))
    assert tuple(one == two for one, two in zip(first, second, strict=True)) == same


def test_casimedicos(tmp_path) -> None:
    first, other = (write_casimedicos(tmp_path / name, "en") for name in ("first", "other"))
    test = other / "EN" / "test.tsv"
    for path in (other / "EN").iterdir():
        _with_crlf(path)
    for name in ("casimedicos", "casimedicos_spans"):
        assert _prints(name, other) == _prints(name, first)
    plain, explained = _prints("casimedicos", other), _prints("casimedicos", other, explained=True)
    text = test.read_text()
    test.write_text(text.replace("He O", "She O").replace("He B-", "She B-"))
    assert _prints("casimedicos", other) == plain, "the explanation is not shown"
    assert _prints("casimedicos", other, explained=True)[0] != explained[0]
    test.write_text(text.replace("ANSWER: O\n2", "ANSWER: O\n1"))
    assert (_prints("casimedicos", other)[0], _prints("casimedicos", other)[1] != plain[1]) == (plain[0], True)
    spans = _prints("casimedicos_spans", first)
    test.write_text(text.replace("B-Premise", "B-Claim").replace("I-Premise", "I-Claim"))
    assert _prints("casimedicos_spans", other)[0] == spans[0]
    assert _prints("casimedicos_spans", other)[1] != spans[1]


@pytest.mark.parametrize(
    ("file", "field", "value", "same"),
    [
        ("TF", "answer", "False", (True, False)),
        ("short_inverse", "incorrect_explanation", "the dose is 0.4 units", (True, False)),
        ("multi_hop_inverse", "incorrect_reasoning_step", ["- Step 2"], (True, False)),
        ("TF", "question", "Is the liver an organ", (False, True)),
        ("MC", "options", ["Gold", "Aspirin", "Sugar", "Salt"], (False, True)),
        ("short_inverse", "false_answer", "0.06 units", (False, True)),
    ],
)
def test_cliniqlink(tmp_path, file, field, value, same) -> None:
    first = _prints("cliniqlink", write_cliniqlink(tmp_path / "first"))
    again = write_cliniqlink(tmp_path / "again", TF=json.dumps(_reordered(items_of("TF")), indent=1))
    _with_crlf(again / "TF.json")
    assert _prints("cliniqlink", again) == _prints("cliniqlink", again, limit=2) == first
    items = items_of(file)
    items[0][field] = value
    changed = _prints("cliniqlink", write_cliniqlink(tmp_path / "changed", **{file: items}))
    assert tuple(one == two for one, two in zip(first, changed, strict=True)) == same


def test_spans(tmp_path) -> None:
    rows = [("a", "It is a cold, for he coughs.", "Why?", "he coughs"), ("b", "Heat it was.", "Why?", "Heat")]
    first = _prints("casimedicos_spans", write_squad(tmp_path / "a.jsonl", rows))
    turned = write_squad(tmp_path / "b.jsonl", rows[::-1])
    _with_crlf(turned)
    assert _prints("casimedicos_spans", turned) == first
    gold = _prints("casimedicos_spans", write_squad(turned, [rows[0], (*rows[1][:3], "was")]))
    assert (gold[0] == first[0], gold[1] == first[1]) == (True, False)
    text = _prints("casimedicos_spans", write_squad(turned, [rows[0], ("b", "Heat it was!", "Why?", "Heat")]))
    assert (text[0] == first[0], text[1] == first[1]) == (False, True)


def test_every_field_of_a_question_counts_once() -> None:
    """A field that is added must be put into one of the two fingerprints.

    The language is in the identity beside them, and so is the picture where it is shown.
    """
    question = Question(
        key="k", exam=Exam("e", 2013, Discipline.BIOLOGY), number=1, language="en", stem="s",
        options=(Option(1, "a"), Option(2, "b")),
    )  # fmt: skip
    other = {
        "key": "l", "exam": Exam("f", 2013, Discipline.BIOLOGY), "number": 2, "language": "es", "stem": "t",
        "options": (Option(2, "b"), Option(1, "a")), "image": "i.png", "context": "c",
    }  # fmt: skip
    assert other.keys() == {field.name for field in dataclasses.fields(Question)} - {"picture"}
    seen = {
        name
        for name, value in other.items()
        for kind in (fingerprint_questions, fingerprint_golds)
        if kind([Row(question.model_copy(update={name: value}), 1)]) != kind([Row(question, 1)])
    }
    assert seen == other.keys() - {"language", "number"}, "the number is part of the key"


def test_every_field_of_a_task_counts_once() -> None:
    task, gold = Task("k", "g", "en", "q"), TaskGold()
    shown = {
        "key": "l", "group": "h", "language": "es", "question": "r", "context": "c", "options": ("o",),
        "given_answer": "a", "given_reasoning": ("r",),
    }  # fmt: skip
    expected = {
        "answers": ("a",), "incorrect_explanation": "e", "incorrect_step": ("s",), "paragraph": "p",
        "components": (Component("premise", 0, 1),), "repeats_training": True,
    }  # fmt: skip
    assert shown.keys() == {field.name for field in dataclasses.fields(Task)}
    assert expected.keys() == {field.name for field in dataclasses.fields(TaskGold)}

    def prints(task: Task, gold: TaskGold, *references: str) -> tuple[str, str]:
        rows = (TaskRow(task, gold, split=None),)
        reading = TaskReading(source="", version="", rows=rows, references=references)
        return fingerprint_tasks(rows), fingerprint_task_golds(reading)

    first = prints(task, gold)
    changed = {name: prints(dataclasses.replace(task, **{name: value}), gold) for name, value in shown.items()}
    assert {name for name, found in changed.items() if found[0] == first[0]} == {"language"}
    changed = {name: prints(task, dataclasses.replace(gold, **{name: value})) for name, value in expected.items()}
    assert all(found[0] == first[0] and found[1] != first[1] for found in changed.values())
    assert prints(task, gold, "r")[1] != first[1]
