"""Metrics of the user's own: where their scores stand, what a fault costs, and when their code is imported."""

import json
import sys

import pyarrow.parquet as pq
import pytest
import yaml

from medexam.benchmarks.measures import measure_values
from medexam.datasets import load_task_set
from medexam.errors import SpecError
from medexam.experiments import Runner, compare_runs, current_run, plan_experiment, run_report, verdicts
from medexam.experiments.report.current import scored_by
from medexam.experiments.report.own_tables import paired_tables
from medexam.experiments.report.page import write_page
from medexam.experiments.report.page.entries import build_entry, read_answers
from medexam.experiments.store import trust
from medexam.specs import DatasetSpec, build_cells
from stored_runs import write_run
from task_data import write_squad
from watching import Silent

METRICS = """
def right(question, gold, prediction):
    return None if prediction.answer is None else prediction.answer == gold.number

def shape(question, gold, prediction):
    return {"options": len(question.options), "reply": len(prediction.reply) if prediction.reply else None}

def broken(question, gold, prediction):
    raise ValueError("no guideline")

def halved(question, gold, prediction):
    return {"a \\ud800": 1}

def wordy(question, gold, prediction):
    return "much"
"""


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(METRICS)
    return path


@pytest.fixture
def run(tmp_path, code):
    """`run(*functions)` -> the stored runs of two controls, scored by these functions too."""

    def call(*names, program=("longest", "random"), **dataset):
        document = {
            "name": "own",
            "dataset": {"name": "headqa_sample", "limit": 12, **dataset},
            "metrics": [f"{code}:{name}" for name in names],
            "matrix": {"program": [{"kind": kind} for kind in program]},
        }
        runs, _ = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), Silent()).run()
        return runs

    return call


def test_half_a_surrogate_pair_in_a_name_stands_as_its_escape(run):
    found, _ = run("halved")
    assert list(found.folder.read_metrics()["own"]) == ["halved.a \\ud800"]


def test_scores_stand_in_metrics_parquet_report_page_and_mlflow(run, tmp_path):
    longest, _ = run("right", "shape")
    own = longest.folder.read_metrics()["own"]
    assert list(own) == ["right", "shape.options"], "an entry that no question has is left out"
    assert own["right"]["value"] == longest.metrics.accuracy
    assert own["right"]["n"] == 12
    low, high = own["right"]["interval"]
    assert low < own["right"]["value"] < high
    table = pq.read_table(longest.folder.path / "predictions.parquet").to_pydict()
    assert table["own_right"] == [float(right) for right in table["right"]]
    assert "| right | 12 | 0 |" in run_report(longest, {})
    write_page([longest], tmp_path / "page.html")
    assert "Own metrics" in (tmp_path / "page.html").read_text()
    assert measure_values(longest.metrics.own, "own.")["own.right"] == longest.metrics.accuracy


def test_a_question_without_a_score_is_skipped_and_counted(run):
    blind, _ = run("shape", "right", program=("random", "longest"))
    assert blind.metrics.own["right"].skipped == 0
    assert "shape.reply" not in blind.metrics.own


def test_without_metrics_the_file_has_no_such_key(run):
    assert "own" not in run()[0].folder.read_metrics()


def test_no_answer_depends_on_them(run):
    (before, _), (after, _) = run(), run("right")
    assert before.folder == after.folder
    assert after.metrics.own["right"].n == 12


def test_runs_are_compared_by_them_in_pairs(run):
    found = compare_runs([stored.folder for stored in run("right", "shape")])
    (pair,) = found.own
    assert pair["right"].difference.value == pytest.approx(found.statistics.paired[0].paired.accuracy.value)
    assert found.document()["pairs"][0]["own"]["shape.options"]["verdict"] == "not told apart"
    assert found.values()["own.right_p"] == pair["right"].p
    assert any("in right: " in sentence for sentence in verdicts(found))
    assert paired_tables(found)[0][0].rows[0][:2] == ("right", "12")


def test_a_fault_names_metric_question_and_exception_and_keeps_the_answers(run, tmp_path):
    with pytest.raises(SpecError, match=r"metric broken failed on question headqa-v1/.*: ValueError: no guideline;"):
        run("broken", program=("longest",))
    (lines,) = (tmp_path / "runs").glob("*/predictions.jsonl")
    assert len(lines.read_text().splitlines()) == 12
    with pytest.raises(SpecError, match=r"metric wordy returned 'much' for question"):
        run("wordy", program=("longest",))


def test_a_name_without_code_is_refused_before_anything_is_asked(run, tmp_path):
    with pytest.raises(SpecError, match="has no 'missing'"):
        run("missing")
    assert not (tmp_path / "runs").exists()
    with pytest.raises(SpecError, match=r"'accurate' names no code; your own is package.module:Name"):
        build_cells({"name": "x", "metrics": ["accurate"]}, {})
    with pytest.raises(SpecError, match="two metrics are called f: rename one"):
        build_cells({"name": "x", "metrics": ["a.py:f", "b.py:f"]}, {})


def test_a_stored_run_is_scored_by_another_metric(run, code):
    folder = run("right", program=("longest",))[0].folder
    again = scored_by(folder, [f"{code}:shape"], lambda _: None)
    assert set(again.metrics.own) == {"right", "shape.options"}
    with pytest.raises(SpecError, match="no guideline"):
        scored_by(folder, [f"{code}:broken"], lambda _: None)
    assert set(current_run(folder, pytest.fail).metrics.own) == {"right", "shape.options"}


def test_edited_code_scores_again(run, code):
    folder = run("right", program=("longest",))[0].folder
    code.write_text("def right(question, gold, prediction):\n    return 0.5\n")
    said = []
    # The interpreter keeps a module; a command of its own reads the file as it is.
    for name in [name for name, module in sys.modules.items() if getattr(module, "__file__", None) == str(code)]:
        del sys.modules[name]
    assert current_run(folder, said.append).metrics.own["right"].value == 0.5
    assert "the code of metric right changed" in said[0]


def test_scores_outlive_their_code(run, code):
    folder = run("right", program=("longest",))[0].folder
    before = folder.read_metrics()
    code.unlink()
    run_now = current_run(folder, pytest.fail)
    assert run_now.metrics.own["right"].n == 12
    assert "metric right is shown as it was scored" in run_now.warnings[-1]
    (folder.path / "report.md").unlink()
    made = current_run(folder, lambda _: None)
    assert folder.read_metrics() == before
    assert "there is no file" in made.warnings[-1]


def test_code_that_a_run_from_elsewhere_names_is_imported_only_if_trusted(run, code, monkeypatch):
    folder = run("right", program=("longest",))[0].folder
    code.write_text("raise SystemExit('imported')\n")
    (folder.path / "report.md").unlink()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.path.parent / "of another installation"))
    (warning,) = current_run(folder, lambda _: None).warnings
    assert "is not executed, because another installation made run" in warning
    assert "give --trust" in warning
    assert json.loads((folder.path / "metrics.json").read_text())["own"]["right"]["n"] == 12
    token = trust.TRUST.set(True)
    trust.check_trusted(folder.path, "metric right")
    trust.TRUST.reset(token)


def test_words_are_scored_by_the_same_code(tmp_path, code):
    rows = [(f"{n}_CQ#E", "It is the heart. It beats.", "What?", "the heart") for n in (1, 2, 3)]
    path = write_squad(tmp_path / "en.jsonl", rows)
    tasks = load_task_set(DatasetSpec(name="casimedicos_spans", path=path))
    answers = iter(["the heart", "It", "the heart"])
    folder = write_run(
        tmp_path / "runs" / "words",
        tasks,
        {"kind": "extract_explanation"},
        lambda task, gold: {"status": "answered", "text": next(answers), "reply": "x"},
        dataset={"path": str(path)},
    )
    code.write_text("def quoted(task, gold, prediction):\n    return prediction.text in gold.answers\n")
    again = scored_by(folder, [f"{code}:quoted"], lambda _: None)
    assert again.metrics.own["quoted"].value == again.metrics.measures["exact_match"].value == pytest.approx(2 / 3)


def test_specs_name_files_beside_them(tmp_path, code):
    from medexam.specs import load_document

    (tmp_path / "spec.yaml").write_text(yaml.safe_dump({"name": "x", "metrics": ["./mine.py:right"]}))
    _, (cell,) = build_cells(load_document(tmp_path / "spec.yaml"), {})
    assert cell.metrics == (f"{code}:right",)


def test_the_page_shows_the_scores_of_each_question(run) -> None:
    longest, _ = run("right", "shape")
    (answers,) = read_answers([longest])
    key, question = next((key, asked) for key, asked in answers.questions.items())
    shown = dict(build_entry(key, [answers], 1000)["answers"][0]["measures"])
    right = longest.folder.read_predictions()[key].answer == question.gold
    assert shown == {"right": "1" if right else "0", "shape.options": str(len(question.wording["options"]))}
