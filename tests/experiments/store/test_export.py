"""`predictions.parquet` read back: the rows of the run, joined with what was right."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medexam.benchmarks import find_benchmark
from medexam.errors import RunFolderError
from medexam.experiments import RunFolder
from medexam.experiments.store.parquet import write_parquet
from medexam.experiments.store.run_folder import PARQUET
from medexam.metrics import ScoredRun
from medexam.specs import DatasetSpec
from stored_runs import made_up_exams


def test_rows_say_what_was_asked_answered_and_right(make_run, exam_questions) -> None:
    run = make_run({"kind": "zero_shot"}, "rwufm")
    table = pq.read_table(run.folder.path / PARQUET)
    assert table.schema.equals(pa.schema(find_benchmark(DatasetSpec(name="headqa_v1")).columns({})))
    rows = table.to_pylist()
    assert [row["question"] for row in rows] == [q.key for at, q in enumerate(exam_questions) if at % 5 != 4]
    assert [row["right"] for row in rows[:4]] == [True, False, False, None]
    told = [row["right"] for row in rows if row["right"] is not None]
    assert sum(told) / len(told) == run.metrics.accuracy
    assert [row["status"] for row in rows[:4]] == ["answered", "answered", "unanswered", "failed"]
    assert {row["gold"] for row in rows} == {1}
    assert rows[2]["reason"] == "unparsed"
    assert rows[3]["failure_kind"] == "LMTransportError"
    assert (rows[0]["discipline"], rows[0]["year"], rows[0]["option_count"]) == ("biology", 2013, 5)
    assert rows[0]["has_image"] is False


def test_a_folder_that_is_gone_is_one_clear_line(tmp_path, exam_questions, answer_key) -> None:
    exams = made_up_exams(exam_questions, answer_key)
    with pytest.raises(RunFolderError, match=r"predictions\.parquet"):
        write_parquet(RunFolder(tmp_path / "gone"), find_benchmark(DatasetSpec()), exams, {}, ScoredRun(None, {}))
