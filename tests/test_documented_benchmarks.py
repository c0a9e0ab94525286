"""Benchmarks of one's own as the pages write them: they run as they stand, in at most 25 lines."""

import json
import re
from pathlib import Path

import pytest

import medexam as package
from command_line import _untracked, medexam
from medexam.measures import WordsBenchmark
from medexam.predictions import Prediction, Reason, Status
from medexam.questions import Task, TaskGold
from task_sets import score_tasks

__all__ = ["_untracked", "medexam"]
DOCS = Path(package.__file__).parents[1] / "docs"


@pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are not here")
def test_a_class_with_its_own_load_is_asked_scored_and_shown(medexam, tmp_path, monkeypatch) -> None:
    page = (DOCS / "your-own-parts.md").read_text(encoding="utf-8").split("## A benchmark")[1]
    code, spec = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("python", "yaml"))
    assert len((code + spec).splitlines()) <= 25
    monkeypatch.chdir(tmp_path)
    Path("my_benchmark.py").write_text(code, encoding="utf-8")
    Path("sums.yaml").write_text(f"name: sums\n{spec}program: longest\n", encoding="utf-8")
    status, out, errors = medexam("run", "sums.yaml", "--runs-dir", "runs", "--json")
    assert status == 0, errors
    metrics = json.loads(out)[0]["metrics"]
    assert (metrics["n"], metrics["right"] + metrics["wrong"]) == (8, 8)
    assert "8 questions" in medexam("report", "runs")[1]


@pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are not here")
def test_answers_in_words_are_scored_by_one_method() -> None:
    page = (DOCS / "adding-a-benchmark.md").read_text(encoding="utf-8")
    names: dict[str, type[WordsBenchmark]] = {}
    code = re.search(r"((?:    .*\n)*    class MyBenchmark(?:.*\n)(?:    .*\n)*)", page)[1]
    exec(re.sub("^    ", "", code, flags=re.MULTILINE), {"WordsBenchmark": WordsBenchmark}, names)
    tasks = [Task(key, "all", "en", "Which?") for key in "ab"]
    golds = {key: TaskGold(answers=("insulin",)) for key in "ab"}
    same = {"program": "p", "spec_digest": "d"}
    answers = {
        "a": Prediction(question="a", status=Status.ANSWERED, text="insulin", **same),
        "b": Prediction(question="b", status=Status.UNANSWERED, reason=Reason.UNPARSED, **same),
    }
    measure = score_tasks(names["MyBenchmark"], tasks, golds, answers).metrics.measures["equal"]
    assert (measure.value, measure.n) == (0.5, 2)
