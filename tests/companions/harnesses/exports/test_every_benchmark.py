"""`export --to hub` of runs of each kind of benchmark, read back with `datasets`' own format."""

import json
from pathlib import Path

import dspy
import pyarrow.parquet as pq
import pytest
from dspy.utils.dummies import DummyLM

import medexam
from medexam.companions.harnesses.exports.writing import export_runs
from medexam.experiments import RunFolder, current_run
from task_data import write_casimedicos

OWN = """
from medexam.benchmarks.words.benchmark import WordsBenchmark
from medexam.questions import TaskSet
from medexam.metrics import ScoredRun, TaskMetrics
from medexam.metrics.tasks import count_tasks, mean_measure, scored_tasks
from medexam.questions import Task, TaskGold

TASKS = tuple(Task(f"mine/{n}", "colours", "en", f"Colour {n}?") for n in (1, 2))


class Mine(WordsBenchmark):
    def load(self, spec):
        golds = {task.key: TaskGold(answers=("red",)) for task in TASKS}
        return TaskSet("mine", "en", "1", "code", "0" * 64, "0" * 64, questions=TASKS, golds=golds)

    def score(self, items, predictions):
        tasks = scored_tasks(items.questions, predictions)
        scores = {task.key: float(predictions[task.key].text == "red") for task in tasks}
        counts = count_tasks(items.questions, predictions)
        metrics = TaskMetrics(**counts, measures={"f1": mean_measure(scores)}, by_group={}, own={})
        return ScoredRun(metrics, {"f1": scores})
"""


def _export(run_dir, tmp_path) -> list[dict]:
    run = current_run(RunFolder(Path(run_dir)), print)
    table, card = export_runs([run], "hub", tmp_path / "out")
    assert run.folder.name in Path(card).read_text()
    return pq.read_table(table).to_pylist()


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """`ask(dataset, program)`: the rows of the exported run whose every reply is `red`, or what the first text says."""

    def call(dataset, program, reply="red") -> list[dict]:
        monkeypatch.chdir(tmp_path)
        Path("replies.json").write_text(json.dumps({"*": reply}))
        model = {"engine": "scripted", "path": "replies.json"}
        document = {"name": "x", "dataset": dataset, "model": model, "program": program}
        (run,) = medexam.run(document, runs_dir=tmp_path / "runs", track=False, progress=False)
        return _export(run.folder, tmp_path)

    return call


def test_spans_keep_their_place_and_components(ask, tmp_path) -> None:
    data = write_casimedicos(tmp_path / "casimedicos", "en", "es")
    dataset = {"name": "casimedicos_spans", "path": str(data), "language": "es", "variants": ["CQ#E"]}
    rows = ask(dataset, "extract_explanation", "He has no fever.")
    quoted = [row for row in rows if row["text"]]
    assert quoted
    assert all(row["context"][row["start"] : row["end"]] == row["text"] for row in quoted)
    components = [component for row in rows for component in row["gold_components"]]
    assert {component["label"] for component in components} <= {"premise", "claim"}
    assert components


def test_an_exam_without_options(ask) -> None:
    rows = ask({"name": "headqa_sample_open", "limit": 2}, "short_answer")
    assert [(row["text"], row["options"], len(row["gold"])) for row in rows] == [("red", [], 1)] * 2
    assert {name for name, _ in rows[0]["scores"]} == {"f1", "exact_match", "bleu"}


def test_a_benchmark_of_ones_own_in_words(ask, tmp_path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    rows = ask({"name": "./mine.py:Mine"}, "short_answer")
    assert [(row["gold"], dict(row["scores"])) for row in rows] == [(["red"], {"f1": 1.0})] * 2


def test_examples_of_an_evaluation(tmp_path) -> None:
    devset = [dspy.Example(question=f"q{n}", answer="red").with_inputs("question") for n in range(2)]
    evaluate = medexam.Evaluate(
        devset=devset,
        metric=lambda example, said, trace=None: example.answer == said.answer,
        runs_dir=tmp_path / "runs",
    )
    with dspy.context(lm=DummyLM([{"answer": "red"}] * 2)):
        evaluate(dspy.Predict("question -> answer"))
    (folder,) = [path.parent for path in (tmp_path / "runs").glob("*/spec.json")]
    rows = _export(folder, tmp_path)
    assert [json.loads(row["outputs"])["answer"] for row in rows] == ["red"] * 2
