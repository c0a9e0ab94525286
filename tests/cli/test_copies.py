"""Every copy of a run's numbers says what its folder says: JSON, tables, pages, Parquet and MLflow.

The numbers that are expected are computed anew from the predictions and the data set. A folder goes through the states
that a run has: killed with failures, then widened and finished, then narrowed. Each process is killed before it scores,
so that the folder holds the files of an earlier state.
"""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medexam.benchmarks import find_benchmark
from medexam.datasets import load_exam_set
from medexam.experiments import RunFolder
from medexam.metrics import compute_metrics
from medexam.predictions import Failure, Reason, Status
from medexam.specs import DatasetSpec
from stored_runs import write_run
from table_cases import write_squad

REFUSED = {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="refused")}


@pytest.fixture
def show(medexam, tmp_path, uri, monkeypatch):
    """`show(folder, first)`: what each surface shows of a run, the one called `first` reading the stale folder."""
    monkeypatch.setenv("COLUMNS", "400")

    def call(folder: RunFolder, first: str) -> dict[str, str]:
        ways = {
            "track": ["track", folder.path, "--tracking-uri", uri],
            "json": ["report", folder.path, "--json"],
            "terminal": ["report", folder.path],
            "markdown": ["report", folder.path, "--markdown", tmp_path / "run.md"],
            "html": ["report", folder.path, "--html", tmp_path / "run.html"],
        }
        shown = {}
        for way in sorted(ways, key=lambda way: way != first):
            code, shown[way], said = medexam(*ways[way])
            assert code == 0, said
            assert ("again" in said) is (way == first), (way, said)
        shown["markdown"] = (tmp_path / "run.md").read_text(encoding="utf-8")
        shown["html"] = re.sub(r"<[^>]*>", " ", (tmp_path / "run.html").read_text(encoding="utf-8"))
        return shown

    return call


def check_texts(shown: dict[str, str], values: dict[str, float]) -> None:
    """Each share stands in each text, in percent."""
    for surface in ("terminal", "markdown", "html"):
        tokens = set(re.split(r"[\s\[\]|;/*]+", shown[surface].replace(",", "")))
        missing = {name for name, value in values.items() if f"{100 * value:.1f}" not in tokens}
        assert not missing, f"{surface} does not show {missing}"


def check_documents(shown: dict[str, str], folder: RunFolder, metrics: dict) -> dict[str, str]:
    """The report's JSON and the folder's file hold these metrics."""
    assert json.loads(shown["json"])[0]["metrics"] == metrics
    assert json.loads((folder.path / "metrics.json").read_text()) == metrics
    return shown


def check_mlflow(client, folder: RunFolder, metrics: dict, values: dict[str, float], *, complete: bool) -> None:
    """One run, with these numbers and the counts, once each; its status and files are the folder's."""
    values = values | {name: metrics[name] for name in ("n", "unanswered", "failed", "missing")}
    experiments = [each.experiment_id for each in client.search_experiments()]
    (run,) = client.search_runs(experiments, f"tags.`medexam.run_id` = '{folder.name}'")
    assert {name: run.data.metrics[name] for name in values} == pytest.approx(values)
    assert all(len(client.get_metric_history(run.info.run_id, name)) == 1 for name in values)
    assert run.data.tags["medexam.status"] == ("complete" if complete else "incomplete")
    assert (run.info.status == "FINISHED") is complete
    artifacts = Path(run.info.artifact_uri.removeprefix("file://"))
    held = {path.name: path.read_bytes() for path in folder.path.iterdir() if not path.name.startswith(".")}
    assert {path.name: path.read_bytes() for path in artifacts.iterdir()} == held


def _answer(question, gold):
    """Right, wrong or no answer, as the booklet's number has it."""
    if question.number % 5 == 0:
        return {"status": Status.UNANSWERED, "reason": Reason.UNPARSED}
    return {"status": Status.ANSWERED, "answer": gold if question.number % 3 else 1 + gold % 4, "prompt_tokens": 90}


def _cut_off(question, gold):
    """The answer, a failure, or nothing yet."""
    if question.number % 7 == 0:
        return REFUSED
    return None if question.number % 2 else _answer(question, gold)


STATES = [
    ("partial", {"limit": 90}, _cut_off, "track"),
    ("widened", {"limit": 120}, _answer, "json"),
    ("narrowed", {"limit": 60, "disciplines": ["medicine", "nursing"]}, lambda question, gold: None, "html"),
]


def test_the_numbers_of_an_exam_are_the_folders_everywhere(show, client, tmp_path) -> None:
    for state, selection, answer, first in STATES:
        exams = load_exam_set(DatasetSpec(name="headqa_sample", **selection))
        folder = write_run(tmp_path / "run", exams, {"kind": "zero_shot"}, answer, dataset=selection, scored=False)
        computed = compute_metrics(exams.questions, exams.golds, folder.read_predictions())
        metrics = computed.model_dump(mode="json")
        assert (computed.failed > 0) == (computed.missing > 0) == (state == "partial")
        shown = check_documents(show(folder, first), folder, metrics)
        values = {name: metrics[name] for name in ("accuracy", "exam_score", "unanswered_ratio")}
        values |= {f"accuracy.{group}": found["accuracy"] for group, found in metrics["by"]["discipline"].items()}
        low, high = metrics["measures"]["accuracy"]["interval"]
        check_texts(shown, values | {"low": low, "high": high})
        check_mlflow(client, folder, metrics, values, complete=state != "partial")
        rows = pq.read_table(folder.path / "predictions.parquet").to_pylist()
        scored = [row for row in rows if row["status"] != "failed"]
        assert (len(scored), len(rows) - len(scored)) == (metrics["n"], metrics["failed"])
        for group, found in metrics["by"]["discipline"].items():
            right = sum(row["answer"] == row["gold"] for row in scored if row["discipline"] == group)
            assert right == found["right"]


def _quote(task, gold):
    """The whole answer, its first word, or nothing that stands in the text."""
    number = int(task.key.rsplit("-", 1)[-1])
    if number % 5 == 4:
        return {"status": Status.UNANSWERED, "reason": Reason.NOT_IN_CONTEXT, "reply": "So be it."}
    text = gold.answers[0] if number % 2 else gold.answers[0].split()[0]
    begins = task.context.find(text)
    span = {"text": text, "span": (begins, begins + len(text)), "alignment": "literal"}
    return {**span, "status": Status.ANSWERED, "reply": text}


def _quote_cut_off(task, gold):
    number = int(task.key.rsplit("-", 1)[-1])
    if number % 7 == 0:
        return REFUSED
    return None if number % 3 else _quote(task, gold)


TASK_STATES = [
    ("partial", 25, _quote_cut_off, "terminal"),
    ("widened", 30, _quote, "track"),
]


def test_the_numbers_of_answers_in_words_are_the_folders_everywhere(show, client, tmp_path) -> None:
    text = "Case {}: it was hot and dry, for heat expands."
    rows = [(f"es-{number}", text.format(number), "Why?", "heat expands") for number in range(40)]
    path = str(write_squad(tmp_path / "es.jsonl", rows))
    for state, limit, answer, first in TASK_STATES:
        dataset = {"kind": "spans", "name": "mine", "language": "es", "path": path, "limit": limit}
        spec = DatasetSpec.model_validate(dataset)
        tasks = find_benchmark(spec).load(spec)
        program = {"kind": "quote"}
        folder = write_run(tmp_path / "run", tasks, program, answer, dataset=dataset, scored=False)
        scores = find_benchmark(spec).score(tasks, folder.read_predictions())
        metrics = scores.metrics.model_dump(mode="json")
        shown = check_documents(show(folder, first), folder, metrics)
        values = {name: measure["value"] for name, measure in metrics["measures"].items()}
        check_texts(shown, values)
        check_mlflow(client, folder, metrics, values, complete=state != "partial")
        rows = pq.read_table(folder.path / "predictions.parquet").to_pylist()
        for name, measure in metrics["measures"].items():
            found = [row[f"score_{name}"] for row in rows if row[f"score_{name}"] is not None]
            assert (len(found), sum(found) / len(found)) == pytest.approx((measure["n"], measure["value"]))
