"""Metrics of the user's own: where their scores stand, what a fault costs, and when their code is imported."""

import json

import pyarrow.parquet as pq
import pytest

import medexam
from medexam.errors import SpecError
from medexam.measures import find_benchmark
from medexam.specs import DatasetSpec
from stored_runs import write_run
from table_cases import write_squad

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

def sometimes(question, gold, prediction):
    return 1.0 if prediction.answer == 1 else None
"""


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(METRICS)
    return path


@pytest.fixture
def run(ask, spec, code):
    """`run(*functions)` -> the runs of two controls, scored by these functions too."""

    def call(*names, program=("longest", "random")):
        return ask(spec | {"metrics": [f"{code}:{name}" for name in names]}, program=list(program))

    return call


def own_of(run):
    return json.loads((run.folder / "metrics.json").read_text()).get("own")


def test_scores_stand_in_metrics_table_report_and_page_and_ask_nothing_again(run, tmp_path) -> None:
    before, _ = run()
    assert own_of(before) == {}
    longest, _ = run("right", "shape", "sometimes", "halved")
    assert longest.id == before.id, "no answer depends on them"
    own = own_of(longest)
    assert list(own) == ["right", "shape.options", "sometimes", "halved.a \\ud800"], "what no question has is left out"
    assert (own["right"]["value"], own["right"]["n"]) == (longest.accuracy, 12)
    low, high = own["right"]["interval"]
    assert low < own["right"]["value"] < high
    first = sum(one.answer == 1 for one in longest.predictions.values())
    assert (own["sometimes"]["n"], own["sometimes"]["skipped"], own["sometimes"]["value"]) == (first, 12 - first, 1.0)
    table = pq.read_table(longest.folder / "predictions.parquet").to_pydict()
    assert table["own_right"] == [float(right) for right in table["right"]]
    assert "| right | longest | 12 | 0 |" in (longest.folder / "report.md").read_text()
    medexam.report(longest, html=tmp_path / "page.html")
    assert "Own metrics" in (tmp_path / "page.html").read_text()


def test_runs_are_compared_by_them_in_pairs(run) -> None:
    compared = medexam.compare(*run("right", "shape"))
    (pair,) = compared.document()["pairs"]
    assert pair["own"]["right"]["difference"]["value"] == pytest.approx(
        pair["measures"]["accuracy"]["difference"]["value"]
    )
    assert pair["own"]["shape.options"]["verdict"] == "not told apart"
    assert "in right: " in " ".join(repr(compared).split())


def test_a_fault_names_metric_question_and_exception_and_keeps_the_answers(run, tmp_path) -> None:
    with pytest.raises(SpecError, match=r"metric broken failed on question headqa-v1/.*: ValueError: no guideline;"):
        run("broken", program=("longest",))
    (lines,) = (tmp_path / "runs").glob("*/predictions.jsonl")
    assert len(lines.read_text().splitlines()) == 12
    with pytest.raises(SpecError, match=r"metric wordy returned 'much' for question"):
        run("wordy", program=("longest",))


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (["{code}:missing"], "has no 'missing'"),
        (["accurate"], r"'accurate' names no code; your own is package.module:Name"),
        (["a.py:f", "b.py:f"], "two metrics are called f: rename one"),
    ],
)
def test_a_name_without_code_is_refused_before_anything_is_asked(ask, spec, code, tmp_path, metrics, said) -> None:
    with pytest.raises(SpecError, match=said):
        ask(spec | {"metrics": [name.format(code=code) for name in metrics]})
    assert not (tmp_path / "runs").exists()


def test_a_stored_run_is_scored_by_another_metric(run, code) -> None:
    folder = run("right", program=("longest",))[0].folder
    for name in ("shape", "broken"):
        if name == "broken":
            with pytest.raises(SpecError, match="no guideline"):
                medexam.load_run(folder, metrics=[f"{code}:broken"])
        else:
            medexam.load_run(folder, metrics=[f"{code}:shape"])
        assert set(own_of(medexam.load_run(folder))) == {"right", "shape.options"}


def test_a_score_stays_as_it_was_made_until_its_code_is_run_or_the_answers_change(run, code, capsys) -> None:
    (found,) = run("right", program=("longest",))
    before = own_of(found)["right"]["value"]
    code.write_text("def right(question, gold, prediction):\n    return 0.5\n")
    (found.folder / "report.md").unlink()
    assert own_of(medexam.load_run(found.folder))["right"]["value"] == before
    assert own_of(medexam.load_run(found.folder, metrics=[f"{code}:right"]))["right"]["value"] == 0.5
    code.unlink()
    log = found.folder / "predictions.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:9]))
    for name in ("metrics.json", "predictions.parquet"):
        (found.folder / name).unlink()
    assert own_of(medexam.load_run(found.folder)) == {}
    said = (found.folder / "report.md").read_text()
    assert "metric right is not scored: `medexam report --rescore" in said


def test_words_are_scored_by_the_same_code(tmp_path, code) -> None:
    rows = [(f"{n}_CQ#E", "It is the heart. It beats.", "What?", "the heart") for n in (1, 2, 3)]
    path = write_squad(tmp_path / "en.jsonl", rows)
    spec = DatasetSpec(kind="spans", name="mine", path=path)
    tasks = find_benchmark(spec).load(spec)
    answers = iter(["the heart", "It", "the heart"])
    folder = write_run(
        tmp_path / "runs" / "words",
        tasks,
        {"kind": "quote"},
        lambda task, gold: {"status": "answered", "text": next(answers), "reply": "x"},
        dataset={"kind": "spans", "name": "mine", "path": str(path)},
    )
    code.write_text("def quoted(task, gold, prediction):\n    return prediction.text in gold.answers\n")
    metrics = medexam.load_run(folder.path, metrics=[f"{code}:quoted"]).metrics
    assert metrics.own["quoted"].value == metrics.measures["exact_match"].value == pytest.approx(2 / 3)
