"""Extractive questions in every layout that SQuAD's form is met in."""

import json
from pathlib import Path

import pytest

from medexam.errors import DatasetError
from medexam_companions.casimedicos import SpanAnswer, SpanItem, read_squad
from table_cases import read_cases, write_rows

CONTEXT = "La serología orienta. El diagnóstico se confirma con biopsia intestinal. <b>p</b> &lt; 0,05"
ANSWER = "se confirma con biopsia intestinal"
START = CONTEXT.index(ANSWER)

ITEMS = (
    SpanItem("a", CONTEXT, "¿Qué prueba?", (SpanAnswer(ANSWER, START), SpanAnswer("biopsia intestinal", START + 16))),
    SpanItem("b", CONTEXT, "¿Y si no?", ()),
)


def _row(item: SpanItem, *, as_lists: bool = True) -> dict:
    texts, starts = [each.text for each in item.answers], [each.start for each in item.answers]
    answers = {"text": texts, "answer_start": starts}
    if not as_lists:
        answers = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    return {"id": item.key, "title": "t", "context": item.context, "question": item.question, "answers": answers}


def _nested() -> dict:
    questions = [_row(item, as_lists=False) for item in ITEMS]
    paragraphs = [{"context": each.pop("context"), "qas": [each]} for each in questions]
    return {"version": "1.1", "data": [{"title": "x", "paragraphs": paragraphs}]}


ROWS, PAIRS = [_row(item) for item in ITEMS], [_row(item, as_lists=False) for item in ITEMS]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (_nested(), "nested.json"),
        (ROWS, "rows.json"),
        ({"data": ROWS}, "data.json"),
        (PAIRS, "pairs.json"),
        (LINES, "lines.json"),
        ("\ufeff" + LINES.replace("\n", "\r\n\n"), "blank.jsonl"),
        (ROWS, "rows.parquet"),
        (PAIRS, "pairs.parquet"),
    ],
)
def test_every_layout_reads_alike(tmp_path, content, name) -> None:
    read = read_squad(write_rows(tmp_path / name, content))
    assert read == ITEMS
    assert read[0].references == (ANSWER, "biopsia intestinal")


@pytest.mark.parametrize("case", read_cases("placed_spans", Path(__file__).parent))
@pytest.mark.parametrize("scalar", [False, True])
def test_an_answer_that_does_not_stand_at_its_offset_is_told(tmp_path, case, scalar) -> None:
    text, start = case["text"], case["start"]
    answers = {"text": text, "answer_start": start} if scalar else {"text": [text], "answer_start": [start]}
    (item,) = read_squad(write_rows(tmp_path / "spans.json", [{**ROWS[1], "id": 7, "answers": answers}]))
    assert (item.key, item.is_misplaced, item.answers) == ("7", case["misplaced"], (SpanAnswer(text, int(start)),))


SPAN = {"id": "a", "context": "It was hot.", "question": "Why?", "answers": {"text": ["hot"], "answer_start": [7]}}


@pytest.mark.parametrize("case", read_cases("broken_spans", Path(__file__).parent))
def test_what_is_wrong_is_named(tmp_path, case) -> None:
    path = write_rows(tmp_path / case["file"], case["text"] if "text" in case else [SPAN | case["change"]])
    with pytest.raises(DatasetError) as caught:
        read_squad(path)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in [path.name, *case["said"]])
