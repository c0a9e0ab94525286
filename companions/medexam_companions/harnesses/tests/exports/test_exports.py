"""Runs written for others, and read again: the same accuracy, questions and answers.

What inspect-ai, lm-eval, every-eval-ever and datasets read of these files is told in README.md of this room.
"""

import json
import random
import zipfile

import pyarrow.parquet as pq
import pytest
import yaml

from medexam.datasets import load_exam_set
from medexam.errors import SpecError
from medexam.experiments import current_run
from medexam.specs import DatasetSpec
from medexam_companions.harnesses import Importer, export_runs
from stored_runs import TIMES, write_run

MODEL = {"engine": "vllm", "name": "Qwen/Qwen2.5-1.5B-Instruct", "endpoints": ["http://127.0.0.1:1/v1"]}
FILES = {
    "lm-eval": ("*/samples_*.jsonl", {"exact_match", "acc"}),
    "inspect": ("*.eval", {"choice"}),
    "every-eval-ever": ("data/*/*/*/*_samples.jsonl", {"accuracy"}),
    "hub": ("data/*.parquet", {"answer"}),
}
"""Format -> where its files of answers lie, and the measures under which they are imported."""


@pytest.fixture(scope="module")
def exams():
    return load_exam_set(DatasetSpec(name="headqa_sample"))


@pytest.fixture(scope="module")
def runs(exams, tmp_path_factory):
    """A run that wrote replies, with every way not to answer, and one that scored options."""
    drawn, where = random.Random(7), tmp_path_factory.mktemp("runs")

    def replied(question, gold):
        place = exams.questions.index(question)
        if place == 5:
            return None
        if place == 6:
            return {"status": "failed", "failure": {"kind": "LMTransportError", "message": "gone"}}
        if place % 7 == 0:
            return {"status": "unanswered", "reason": "unparsed", "reply": "I cannot say | \ud83d"}
        number = gold if drawn.random() < 0.4 else drawn.choice(question.option_numbers)
        spent = {"prompt_tokens": 80, "completion_tokens": 7, "latency_s": 0.25, "finish_reason": "length"}
        return {"status": "answered", "answer": number, "reply": f"{{Answer: {number}}}", **spent}

    def scored(question, gold):
        scores = {number: -30 * drawn.random() for number in question.option_numbers}
        unit = {"option_scores": scores, "score_unit": "nats", "score_norm": "sum", "tied": 1}
        return {"status": "answered", "answer": max(scores, key=scores.get), **unit}

    same = {"model": MODEL, "environment": TIMES}
    folders = [
        write_run(where / "replied", exams, {"kind": "zero_shot"}, replied, **same),
        write_run(where / "scored", exams, {"kind": "likelihood", "norm": "sum"}, scored, **same),
    ]
    return [current_run(folder, print) for folder in folders]


@pytest.mark.parametrize("to", FILES)
def test_an_exported_run_that_is_imported_is_the_same(runs, tmp_path, to) -> None:
    export_runs(runs, to, tmp_path / "out")
    pattern, measures = FILES[to]
    importer = Importer(DatasetSpec(name="headqa_sample"), tmp_path / "runs")
    found = [one for path in (tmp_path / "out").glob(pattern) for one in importer.take(path, print)]
    assert {one.record.cell.program.measure for one in found} == measures
    imported = {tuple(_answers(one).items()): one for one in found}
    assert len(imported) == 2
    for run in runs:
        one = imported[tuple(_answers(run).items())]
        ours = {key: said for key, said in run.folder.read_predictions().items() if said.status != "failed"}
        predictions = one.folder.read_predictions()
        assert predictions.keys() == ours.keys()
        assert one.environment["imported"]["matched"] == one.environment["imported"]["by"]["key"] == len(ours)
        assert one.metrics.measure("accuracy").value == run.metrics.measure("accuracy").value
        assert one.metrics.measure("exam_score").value == run.metrics.measure("exam_score").value
        assert one.environment["imported"]["stated"] in (None, run.metrics.measure("accuracy").value)
        for key, said in ours.items():
            again = predictions[key]
            assert (again.status, again.answer) == (said.status, said.answer)
            assert said.reply in (None, again.reply)
        if to == "hub":
            assert one.model == MODEL["name"]
        if to == "lm-eval" and run is runs[1]:
            for key, said in ours.items():
                assert predictions[key].option_scores == said.option_scores, "to the last digit"
                assert (predictions[key].score_unit, predictions[key].tied) == ("nats", 1)


def _answers(run):
    return {key: said.answer for key, said in sorted(run.folder.read_predictions().items()) if said.status != "failed"}


def test_a_card_names_each_run_as_a_configuration(runs, tmp_path) -> None:
    written = export_runs(runs, "hub", tmp_path)
    _, head, body = (tmp_path / "README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(head)
    assert (card["license"], card["language"]) == ("mit", ["en"])
    for config, run, path in zip(card["configs"], runs, written, strict=False):
        assert config == {"config_name": run.folder.name, "data_files": f"data/{run.folder.name}.parquet"}
        table = pq.read_table(path)
        assert sum(table["right"].to_pylist()) / len(table) == run.metrics.measure("accuracy").value
        assert f"| `{run.folder.name}` | {run.program} | {MODEL['name']} |" in body
    assert "Vilares" in body


def test_an_inspect_log_has_the_members_of_one(runs, tmp_path) -> None:
    (path,) = export_runs(runs[:1], "inspect", tmp_path)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        values = [json.loads(archive.read(name))["scores"] for name in archive.namelist() if name.startswith("samples")]
        assert len(json.loads(archive.read("summaries.json"))) == header["results"]["completed_samples"] == 118
    assert {score["choice"]["value"] for score in values} == {"C", "I", "N"}
    assert all((score["choice"]["value"] == "N") == (score["choice"]["answer"] == "") for score in values)
    assert header["status"] == "cancelled"  # two questions are pending
    assert header["eval"]["metadata"]["program"]["kind"] == "zero_shot"


def test_a_reply_without_an_answer_is_invalid_as_filters_of_lm_eval_write_it(runs, tmp_path) -> None:
    samples, _ = export_runs(runs[:1], "lm-eval", tmp_path)
    lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    predictions = runs[0].folder.read_predictions()
    assert {line["filtered_resps"] == ["[invalid]"] for line in lines} == {True, False}
    for line in lines:
        said = predictions[line["doc"]["key"]]
        assert (line["filtered_resps"] == ["[invalid]"], line["resps"]) == (said.answer is None, [[said.reply]])


def test_a_run_without_answers_is_refused(exams, tmp_path) -> None:
    empty = write_run(tmp_path / "empty", exams, {"kind": "random"}, lambda *_: None)
    with pytest.raises(SpecError, match="nothing to export"):
        export_runs([current_run(empty, print)], "hub", tmp_path)
