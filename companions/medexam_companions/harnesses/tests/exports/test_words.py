"""Runs that answer in words as files of lm-evaluation-harness and for the hub: hand-made answers, read back."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medexam.datasets import load_task_set
from medexam.errors import SpecError
from medexam.experiments import current_run
from medexam.specs import DatasetSpec
from medexam_companions.harnesses import Importer, export_runs
from stored_runs import write_run

FAILED = {"status": "failed", "failure": {"kind": "LMTransportError", "message": "gone"}}
OPEN = DatasetSpec(name="headqa_sample_open", limit=4)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four open questions: one answered rightly, one wrongly, one with an empty reply, one that failed."""
    tasks = load_task_set(OPEN)
    right, wrong, empty, failed = (task.key for task in tasks.questions)

    def said(task, gold):
        return {
            right: {"status": "answered", "text": gold.answers[0], "reply": f"It is {gold.answers[0]}"},
            wrong: {"status": "answered", "text": "red", "reply": "red"},
            empty: {"status": "unanswered", "reason": "empty", "reply": ""},
            failed: FAILED,
        }[task.key]

    path = tmp_path_factory.mktemp("runs") / "open"
    return current_run(write_run(path, tasks, {"kind": "short_answer"}, said, dataset={"limit": 4}), print)


def test_answers_in_words_are_read_back_as_they_were_and_failures_are_none(run, tmp_path) -> None:
    samples, results = export_runs([run], "lm-eval", tmp_path / "out")
    assert results.is_file()
    importer = Importer(DatasetSpec(name="headqa_sample_open"), tmp_path / "runs", most_unmatched=0.0)
    (again,) = importer.take(samples, print, "f1")
    asked = run.folder.read_predictions()
    read = again.folder.read_predictions()
    kept = {key: one.text or None for key, one in asked.items() if one.status != "failed"}
    assert again.environment["imported"]["by"] == {"key": len(kept)} == {"key": 3}
    assert {key: one.text or None for key, one in read.items()} == kept
    assert again.metrics.measures["f1"].value == run.metrics.measures["f1"].value


def test_the_hub_gets_texts_golds_and_scores_and_no_failed_answer(run, tmp_path) -> None:
    table, card = export_runs([run], "hub", tmp_path / "out")
    rows = pq.read_table(table).to_pylist()
    right, wrong, empty = rows
    assert [row["status"] for row in rows] == ["answered", "answered", "unanswered"]
    assert (right["gold"], right["options"]) == ([right["text"]], [])
    assert (dict(right["scores"])["exact_match"], dict(wrong["scores"])["exact_match"]) == (1.0, 0.0)
    assert (wrong["text"], empty["reply"]) == ("red", "")
    assert "`scores` maps each measure" in Path(card).read_text()


def test_a_format_of_numbered_options_is_refused(run, tmp_path) -> None:
    with pytest.raises(SpecError, match="choose --to lm-eval or hub"):
        export_runs([run], "inspect", tmp_path / "out")
