"""Files of exams in which something is wrong: each is refused in one line that names it."""

import gzip

import pyarrow.parquet as pq
import pytest

from medexam.errors import DatasetError
from medexam.measures import find_benchmark
from medexam.specs import DatasetSpec
from table_cases import read_cases, write_rows


def _refusal(name: str, path) -> str:
    """What is said of a file that is refused."""
    spec = DatasetSpec(name=name, path=path)
    with pytest.raises(DatasetError) as caught:
        find_benchmark(spec).load(spec)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 600
    return said


@pytest.mark.parametrize("case", read_cases("broken_files"))
def test_what_is_wrong_is_named(tmp_path, document, first, records, case) -> None:
    path = tmp_path / case["file"]
    if "text" in case:
        path.write_bytes(case["text"].encode(case.get("encoding", "utf-8")))
    else:
        for record in (first, records[0]):
            record |= case["change"]
        rows = {"headqa_v1": document, "headqa_v2": records}
        write_rows(path, rows[case["dataset"]])
    said = _refusal(case["dataset"], path)
    assert all(word in said for word in [path.name, *case["said"]]), said


def test_a_question_that_stands_twice_is_refused(document, first, write_json) -> None:
    document["exams"]["Cuaderno_2013_1_B"]["data"].append(dict(first))
    assert "headqa-v1/2013/biology/8: stands 2 times" in _refusal("headqa_v1", write_json(document))


def test_several_problems_are_counted(document, write_json) -> None:
    for entry in document["exams"]["Cuaderno_2013_1_B"]["data"]:
        entry["ra"] = "8"
    assert "(and 3 more)" in _refusal("headqa_v1", write_json(document))


def test_a_row_without_a_gold_field_is_refused(records, write_jsonl) -> None:
    del records[0]["ra"]
    assert "has no field ra" in _refusal("headqa_v2", write_jsonl(records))


def test_torn_files_are_refused(tmp_path, records, write_parquet, write_jsonl) -> None:
    packed = tmp_path / "HEAD_EN.json.gz"
    packed.write_bytes(gzip.compress(b"{" * 9000))
    files = [("headqa_v2", write_parquet(records)), ("headqa_v2", write_jsonl(records)), ("headqa_v1", packed)]
    for name, path in files:
        path.write_bytes(path.read_bytes()[: -12 if path == packed else -100])
        assert any(word in _refusal(name, path) for word in ("is not JSON", "is not a complete"))


def test_missing_columns_are_named(records, write_parquet) -> None:
    path = write_parquet(records)
    pq.write_table(pq.read_table(path).drop_columns(["ra", "answers"]), path)
    assert "lacks the columns ra, answers: a table of exams needs name, year, " in _refusal("headqa_v2", path)
