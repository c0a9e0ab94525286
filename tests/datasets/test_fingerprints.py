"""A data set is known by what its questions say, apart from its golds, however its files are written."""

import copy
import json
import random

import pytest

from fingerprint_cases import are_same, end_lines_with_crlf, prints_of, reordered
from table_cases import write_rows


def test_headqa_v1_in_any_writing(document, write_json) -> None:
    first = prints_of("headqa_v1", write_json(document))
    document["exams"] = dict(reversed(document["exams"].items()))
    moved = write_json(json.dumps(reordered(document), indent=2, ensure_ascii=False), "moved/other.json")
    end_lines_with_crlf(moved)
    assert prints_of("headqa_v1", moved) == first
    assert prints_of("headqa_v1", moved, years=(2013,), limit=3) == first


def test_headqa_v2_in_any_writing(records, write_parquet, write_jsonl) -> None:
    first = prints_of("headqa_v2", write_parquet(records))
    mixed = random.Random(0).sample(records, len(records))
    path = write_jsonl(reordered(mixed), "elsewhere/other.jsonl")
    end_lines_with_crlf(path)
    assert prints_of("headqa_v2", path) == prints_of("headqa_v2", write_parquet(mixed, "again.parquet")) == first
    assert prints_of("headqa_v2", write_jsonl(records[:-1]))[0] != first[0]


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
    first = prints_of("headqa_v2", write_jsonl(records))
    changed = copy.deepcopy(records)
    change(changed[7])
    assert are_same(first, prints_of("headqa_v2", write_jsonl(changed))) == same


QUESTION = {"id": "k", "exam": "e", "year": 2013, "subject": "biology", "split": "train"}
QUESTION |= {"stem": "Which?", "context": "c", "image": "i.png", "options": ["Yes", "No"], "answer": "A"}
TASK = {"id": "k", "subject": "s", "question": "Which?", "context": "c", "answers": ["a"]}
ASKED, SCORED = (False, True), (True, False)
"""Which of the two fingerprints stays."""


@pytest.mark.parametrize(
    ("kind", "row", "field", "value", "same"),
    [
        *(("choice", QUESTION, field, "other", ASKED) for field in ("stem", "context", "image")),
        ("choice", QUESTION, "options", ["No", "Yes"], ASKED),
        *(("choice", QUESTION, field, "other", SCORED) for field in ("exam", "subject")),
        ("choice", QUESTION, "year", 2014, SCORED),
        ("choice", QUESTION, "split", "test", SCORED),
        ("choice", QUESTION, "answer", "B", SCORED),
        ("choice", QUESTION, "answer", ["A", "B"], SCORED),
        *(("short_answer", TASK, field, "other", ASKED) for field in ("subject", "question", "context")),
        ("short_answer", TASK, "answers", ["b"], SCORED),
        ("short_answer", TASK, "answers", ["a", "b"], SCORED),
    ],
)
def test_every_column_counts_once(tmp_path, kind, row, field, value, same) -> None:
    def prints(row) -> tuple[str, str]:
        return prints_of("mine", write_rows(tmp_path / "mine.jsonl", [row]), kind=kind)

    assert are_same(prints(row), prints({**row, field: value})) == same
    assert prints(row)[0] != prints({**row, "id": "l"})[0]
