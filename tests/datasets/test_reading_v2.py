"""HEAD-QA v2's eight fields from Parquet and JSON Lines."""

import pyarrow as pa
import pytest

from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec

PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def _load(path, **more):
    return load_exam_set(DatasetSpec(name="headqa_v2", path=path, **more))


def test_parquet_and_json_lines_ask_the_same_as_v1(records, write_parquet, write_jsonl) -> None:
    v1 = load_exam_set(DatasetSpec())
    text = [row | {name: str(row[name]) for name in ("year", "qid", "ra")} for row in records]
    for path in (write_parquet(records), write_jsonl(records), write_jsonl(text, "en/text.jsonl")):
        v2 = _load(path)
        assert [q.key for q in v2.questions] == [q.key.replace("headqa-v1", "headqa-v2") for q in v1.questions]
        assert [(q.stem, q.options, q.exam) for q in v2.questions] == [
            (q.stem, q.options, q.exam) for q in v1.questions
        ]
        assert list(v2.golds.values()) == list(v1.golds.values())
        assert (v2.version, v2.left_out, v2.source) == ("2.0", (), str(path))


def test_the_parts_of_a_folder_are_read_in_order(records, write_parquet) -> None:
    whole = _load(write_parquet(records))
    for number, start in enumerate(range(0, 120, 50)):
        path = write_parquet(records[start : start + 50], f"parts/en/train-{number:05}-of-00003.parquet")
    parts = _load(path.parent.parent)
    assert parts.questions == whole.questions
    assert parts.source.count(".parquet") == 3


def test_line_separators_inside_text_do_not_split_a_line(records, write_jsonl) -> None:
    records[0]["qtext"] = "one\u2028two\x85three"
    assert _load(write_jsonl(records)).questions[0].stem == records[0]["qtext"]


@pytest.mark.parametrize("gold", [0, None])
def test_rows_without_an_official_answer_are_left_out_and_named(records, write_parquet, gold) -> None:
    records[0]["ra"] = gold
    exam_set = _load(write_parquet(records))
    assert exam_set.left_out == ("headqa-v2/2013/biology/8",)
    assert len(exam_set.questions) == 119


def test_pictures_of_the_hub_leave_their_names(records, write_parquet) -> None:
    held = [{"bytes": b"x", "path": "1.png"}, {"bytes": b"x", "path": None}, {"bytes": b"x", "path": ""}, None]
    rows = [row | {"image": image} for row, image in zip(records, held, strict=False)]
    path = write_parquet(rows, image=PICTURE)
    assert [question.image for question in _load(path).questions] == ["1.png", "embedded", "embedded", None]
    assert len(_load(path, images="with").questions) == 3
    named = [row | {"image": image} for row, image in zip(records, ("a/b.png", "", None), strict=False)]
    assert [question.image for question in _load(write_parquet(named)).questions] == ["a/b.png", None, None]


def test_two_booklets_of_an_exam_have_keys_of_their_own(records, write_jsonl) -> None:
    other = records[0] | {"name": "Cuaderno_2013_0_B"}
    keys = [question.key for question in _load(write_jsonl([*records, other])).questions]
    assert len(set(keys)) == 121
    assert keys[0] == "headqa-v2/2013/biology/Cuaderno_2013_1_B/8"
    assert keys[-1] == "headqa-v2/2013/biology/Cuaderno_2013_0_B/8"
    assert "headqa-v2/2013/chemistry/18" in keys
    backwards = _load(write_jsonl([other, *reversed(records)]))
    assert {question.key for question in backwards.questions} == set(keys)
