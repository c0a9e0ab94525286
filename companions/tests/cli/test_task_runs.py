"""Runs that answer in words, and exams without years, from the spec to reports and comparisons."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from task_data import write_casimedicos

HOSTILE = "</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>"
EXTRACT = {"kind": "extract_explanation"}
REPLIES = {
    "man of 74": "He has no fever.",
    "woman of 30": "it WAS hot, heat explains",
    "boy of 9": HOSTILE,
    "*": "So be it.",
}
"""By the case; the last two quote nothing."""


@pytest.fixture
def cases(spec, tmp_path):
    """`cases(program=...)` writes a spec of extraction over the small CasiMedicos, and its replies."""
    data = write_casimedicos(tmp_path / "casimedicos", "en", "es")
    dataset = {"name": "casimedicos_spans", "path": str(data), "language": "es", "split": "test"}
    dataset["variants"] = ["CQ#E", "CQP#E"]
    return lambda replies=REPLIES, **changes: spec(replies, **{"dataset": dataset, "program": EXTRACT, **changes})


@pytest.fixture
def exam(spec, tmp_path):
    """`exam(...)` writes a spec of CasiMedicos as an exam, whose files tell no year."""
    data = write_casimedicos(tmp_path / "casimedicos", "en", "es")
    dataset = {"name": "casimedicos", "path": str(data), "language": "es", "split": "test"}
    replies = {"man of 74": "{Answer: 3}", "*": "{Answer: 1}"}
    return lambda **changes: spec(replies, **{"name": "exam", "dataset": dataset, **changes})


def test_a_run_leaves_a_whole_folder(run, cases) -> None:
    (document,) = run(cases())
    metrics, folder = document["metrics"], Path(document["run_dir"])
    assert (metrics["right"], metrics["selected"], metrics["n"], metrics["unanswered"]) == (None, 6, 6, 2)
    (counts,) = metrics["tallies"].values()
    assert counts == {name: {"literal": 1, "aligned": 1, "not_in_context": 1} for name in ("CQ#E", "CQP#E")}
    components = metrics["measures"]["component_f1"]
    assert (components["n"], components["value"]) == (4, pytest.approx((1 + 10 / 11) / 2)), "the boy's case has none"
    assert json.loads((folder / "metrics.json").read_text()) == metrics
    report = (folder / "report.md").read_text()
    for said in ("# trial: ", "Complete: 6 questions scored.", "F1 and exact match are not scored"):
        assert said in report
    assert "| Component F1 |" in report
    assert "2 of 6 quotations that are not in the text" in report
    lines = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    assert not any("gold" in line or "score" in line for line in lines)


def test_every_answer_stands_in_the_table_with_its_scores(run, cases) -> None:
    (document,) = run(cases())
    rows = {row["question"]: row for row in pq.read_table(Path(document["run_dir"], "predictions.parquet")).to_pylist()}
    row = rows["casimedicos/test/1/CQ#E"]
    assert (row["text"], row["start"], row["end"]) == ("It was hot. Heat explains", 0, 25)
    assert (row["group"], row["language"], row["alignment"], row["gold"]) == ("CQ#E", "es", "aligned", [])
    assert row["score_component_precision"] == 1.0
    assert row["score_component_recall"] == pytest.approx(5 / 6)
    row = rows["casimedicos/test/2/CQP#E"]
    assert (row["status"], row["reason"], row["text"], row["start"]) == ("unanswered", "not_in_context", None, None)
    assert (row["reply"], row["score_component_f1"], row["score_quoted"]) == (HOSTILE, None, 0.0)
    mean = sum(row["score_quoted"] for row in rows.values()) / 6
    assert document["metrics"]["measures"]["quoted"]["value"] == pytest.approx(mean)


def test_reports_agree_with_the_run(run, medexam, cases, tmp_path) -> None:
    (document,) = run(cases())
    (again,) = json.loads(medexam("report", document["run_dir"], "--json")[1])
    assert again["metrics"] == document["metrics"], "to the last digit"
    code, out, err = medexam("report", document["run_dir"], "--markdown", "report.md", "--html", "page.html")
    assert (code, "wrote page.html (6 questions" in err) == (0, True), err
    assert (tmp_path / "report.md").read_text() == Path(document["run_dir"], "report.md").read_text()
    for words in ("Component F1", "By group", "CQP#E", "Warning: "):
        assert words in out
    (by_group,) = json.loads(medexam("report", "runs", "--by", "group", "--json")[1])
    groups = by_group["metrics"]["by"]["group"].values()
    first, whole = next(iter(document["metrics"]["measures"].items()))
    total = sum(group["measures"][first]["value"] * group["measures"][first]["n"] for group in groups)
    assert total == pytest.approx(whole["value"] * whole["n"])
    shutil.rmtree(tmp_path / "casimedicos")
    (Path(document["run_dir"]) / "metrics.json").unlink()
    (again,) = json.loads(medexam("report", document["run_dir"], "--json")[1])
    assert again["metrics"] == document["metrics"], "without the data set"


def test_exams_and_answers_in_words_share_a_terminal_and_no_file(run, medexam, refused, cases, exam) -> None:
    (words,) = run(cases())
    run(exam(program={"kind": "longest"}))
    code, out, err = medexam("report", "runs")
    assert (code, err) == (0, "")
    assert "Exam score" in out
    assert "Component F1" in out
    assert "report each of them separately" in refused("report", "runs", "--html", "report")
    assert "or use --html or --markdown" in refused("report", words["run_dir"], "--plots", "plots")
    assert "leave that run or --layout out" in refused("report", words["run_dir"], "--layout", "headqa-v1")
