"""HEAD-QA v2's eight fields from Parquet and JSON Lines."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ra": 7}, ["headqa-v2/2013/biology/8", "gold answer 7", "[1, 2, 3, 4, 5]"]),
        ({"ra": -1}, ["gold answer -1"]),
        ({"ra": "b"}, ["headqa-v2/2013/biology/8", "ra is 'b'"]),
        ({"category": "podiatry"}, ["line 1", "'podiatry'", "nursing"]),
        ({"year": None}, ["line 1", "year is None"]),
        ({"name": None}, ["line 1", "name is None"]),
        ({"qid": "x"}, ["line 1", "qid is 'x'"]),
        ({"qtext": 5}, ["headqa-v2/2013/biology/8", "qtext is 5"]),
        ({"answers": {"aid": [1, 2], "atext": ["a", "b"]}}, ["not a list of options"]),
        ({"qid": 51}, ["headqa-v2/2013/biology/51", "stands 2 times"]),
    ],
)
def test_a_broken_row_is_refused_by_name(records, write_jsonl, change, words) -> None:
    records[0] |= change
    with pytest.raises(DatasetError) as caught:
        _load(write_jsonl(records))
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in [*words, "medexam data check headqa_v2"]), message


def test_a_row_without_a_gold_field_is_refused(records, write_jsonl) -> None:
    del records[0]["ra"]
    with pytest.raises(DatasetError, match="has no field ra"):
        _load(write_jsonl(records))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("en.jsonl", b"\n\n", ["holds no questions"]),
        ("en.jsonl", b"not json\nat all\n", ["is not JSON Lines", "line 1"]),
        ("en.jsonl", b"\xff\xfe\n", ["is not JSON Lines"]),
        ("en.jsonl", b"[1, 2]\n", ["line 1", "is [1, 2]"]),
        ("en.parquet", b"PAR1 and no more", ["is not a complete Parquet file", "fetch headqa_v2"]),
        ("en.csv", b"a,b", ["neither a .parquet nor a .jsonl file"]),
    ],
)
def test_a_broken_file_is_refused_in_one_line(tmp_path, name, content, words) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        _load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in [str(path), *words]), message


def test_truncated_files_and_missing_columns_are_refused(records, write_parquet, write_jsonl) -> None:
    path = write_parquet(records)
    whole = pq.read_table(path)
    for torn in (path, write_jsonl(records)):
        torn.write_bytes(torn.read_bytes()[:-100])
        with pytest.raises(DatasetError, match="truncated"):
            _load(torn)
    pq.write_table(whole.drop_columns(["ra", "answers"]), path)
    with pytest.raises(DatasetError, match="lacks the columns ra, answers: a table of exams needs name, year, "):
        _load(path)
