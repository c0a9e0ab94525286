"""Extractive questions in every layout that SQuAD's form is met in, and what is refused."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medexam.datasets import SpanAnswer, SpanItem, read_squad
from medexam.errors import DatasetError

CONTEXT = "La serología orienta. El diagnóstico se confirma con biopsia intestinal."
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
    questions = [
        {name: value for name, value in _row(item, as_lists=False).items() if name != "context"} for item in ITEMS
    ]
    paragraphs = [{"context": CONTEXT, "qas": [each]} for each in questions]
    return {"version": "1.1", "data": [{"title": "x", "paragraphs": paragraphs}]}


@pytest.fixture
def write(tmp_path):
    """`write(content, "spans.json")` -> the path of a file with text, bytes, or an object as JSON."""

    def make(content, name: str = "spans.json"):
        path = tmp_path / name
        text = content if isinstance(content, (str, bytes)) else json.dumps(content, ensure_ascii=False)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def _json_lines(rows) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (_nested(), "nested.json"),
        ([_row(item) for item in ITEMS], "rows.json"),
        ({"data": [_row(item) for item in ITEMS]}, "data.json"),
        ([_row(item, as_lists=False) for item in ITEMS], "pairs.json"),
        (_json_lines(map(_row, ITEMS)), "lines.jsonl"),
        ("\ufeff" + _json_lines(map(_row, ITEMS)).replace("\n", "\r\n\n"), "blank.jsonl"),
    ],
)
def test_every_layout_reads_alike(write, content, name) -> None:
    assert read_squad(write(content, name)) == ITEMS


def test_parquet(tmp_path) -> None:
    rows = [_row(item) for item in ITEMS]
    path = tmp_path / "spans.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    assert read_squad(path) == ITEMS
    assert ITEMS[0].references == (ANSWER, "biopsia intestinal")
    pq.write_table(pa.Table.from_pylist([_row(item, as_lists=False) for item in ITEMS]), path)
    assert read_squad(path) == ITEMS


@pytest.mark.parametrize(
    ("text", "start", "anomaly"),
    [
        (ANSWER, START, None),
        (ANSWER, str(START), None),
        (ANSWER, float(START), None),
        ("", 0, None),
        (
            "biopsia",
            START,
            f"answer 1 is 'biopsia', but at {START} the context reads 'se conf': it stands at {START + 16}",
        ),
        ("biopsia", -9, f"answer 1 is 'biopsia', but at -9 the context reads '': it stands at {START + 16}"),
        ("biopsia", 900, f"answer 1 is 'biopsia', but at 900 the context reads '': it stands at {START + 16}"),
        ("tos", 0, "answer 1 is 'tos', but at 0 the context reads 'La ': the context does not contain it"),
        (
            "Serología",
            3,
            "answer 1 is 'Serología', but at 3 the context reads 'serología': the context does not contain it",
        ),
    ],
)
@pytest.mark.parametrize("scalar", [False, True])
def test_an_answer_that_does_not_stand_at_its_offset_is_named(write, text, start, anomaly, scalar) -> None:
    answers = {"text": text, "answer_start": start} if scalar else {"text": [text], "answer_start": [start]}
    (item,) = read_squad(write([{**_row(ITEMS[1]), "answers": answers}]))
    assert item.anomalies == ((anomaly,) if anomaly else ())
    assert item.answers == (SpanAnswer(text, int(start)),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "row 1: id is None, not a text or a number"),
        ({"context": None}, "row 1: context of 'a' is None, not text"),
        ({"question": 3}, "row 1: question of 'a' is 3, not text"),
        ({"answers": None}, "answers is None, not a mapping of text and answer_start, or a list"),
        ({"answers": {"text": ["x", "y"], "answer_start": [0]}}, "answers has 2 values of text and 1 of answer_start"),
        ({"answers": {"text": ["x"], "answer_start": [None]}}, "an answer has text 'x' and answer_start None"),
        ({"answers": {"text": ["x"], "answer_start": [1.5]}}, "answer_start 1.5"),
    ],
)
def test_a_row_that_lacks_something_is_named(write, change, message) -> None:
    with pytest.raises(DatasetError) as raised:
        read_squad(write([{**_row(ITEMS[0]), **change}]))
    assert message in str(raised.value)
    assert "spans.json" in str(raised.value)


def test_numbers_are_keys_too(write) -> None:
    assert read_squad(write([{**_row(ITEMS[0]), "id": 7}]))[0].key == "7"


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ([_row(ITEMS[0]), _row(ITEMS[0])], "spans.json", "row 2: id 'a' occurs twice"),
        ([], "spans.json", "holds no question"),
        ({"data": 3}, "spans.json", "is not SQuAD's object with a list `data`"),
        ([3], "spans.json", "row 1: is 3, not an object with id, context, question and answers"),
        (
            {"data": [{"paragraphs": [{"context": "x"}]}]},
            "spans.json",
            "data 1, paragraph 1: is no object with a context",
        ),
        (
            {"data": [{"paragraphs": [{"context": "x", "qas": [3]}]}]},
            "spans.json",
            "data 1, paragraph 1, question 1: is 3, not an object",
        ),
        (_json_lines([_row(ITEMS[0])]) + '{"id": ', "spans.jsonl", "line 2: is not JSON"),
        (b"PAR1", "spans.parquet", "is not a complete Parquet file"),
        ("id,context", "spans.csv", "is not a .json, .jsonl or .parquet file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(write, content, name, message) -> None:
    with pytest.raises(DatasetError) as raised:
        read_squad(write(content, name))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_missing_files_and_columns_are_named(tmp_path) -> None:
    for name in ("no.json", "no.parquet"):
        with pytest.raises(DatasetError, match=name):
            read_squad(tmp_path / name)
    path = tmp_path / "spans.parquet"
    pq.write_table(pa.table({"id": ["a"], "context": ["x"]}), path)
    with pytest.raises(DatasetError, match="lacks the columns question, answers"):
        read_squad(path)
