"""Tables, Markdown, plots, Parquet and MLflow say what option scores tell; runs without them say nothing of it."""

import re

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from medexam.benchmarks.choice import benchmark as choice
from medexam.benchmarks.choice.tables import exam_values
from medexam.cli import app
from medexam.experiments import build_pictures, run_report, write_pictures
from medexam.experiments.store.run_folder import PARQUET
from medexam.predictions import evidence_tables
from medexam.predictions.evidence.kinds import evidence_headline
from stored_runs import made_up_exams
from terminal import draw

ZERO_SHOT = {"kind": "zero_shot"}
GUIDED = {"kind": "zero_shot", "answer_format": "guided"}


def _label_scores(question) -> dict:
    """The first option leads by more the later the question stands; every third one is tied."""
    tied = question.number % 3 == 0
    lead = 0.0 if tied else 0.4 * question.number
    return {
        "option_scores": {number: (lead if number == 1 else 0.0) - 2.0 for number in question.option_numbers},
        "score_unit": "nats",
        "score_norm": "sum",
        "tied": len(question.options) if tied else 1,
        "label_mass": 0.8,
        "read_by": "label",
    }


def _cyclic_scores(question) -> dict:
    """The place that is shown first leads in every order."""
    count = len(question.options)
    row = (1.0,) + (0.0,) * (count - 1)
    return _label_scores(question) | {"order_scores": (row,) * count}


def test_the_tables_of_a_run_that_was_shown_one_order(make_run) -> None:
    run = make_run(ZERO_SHOT, "r", extra=_label_scores)
    scores = run.metrics.option_scores
    (calibration, caption), (position, _), (abstention, _) = evidence_tables(run.metrics)
    assert [table.title for table in (calibration, position, abstention)] == ["Calibration", "Position", "Abstention"]
    assert sum(int(row[1]) for row in calibration.rows) == 20
    assert len(calibration.rows) == sum(part.n > 0 for part in scores.reliability)
    assert f"ECE {100 * scores.expected_calibration_error:.1f} %, Brier score {scores.brier_score:.3f}" in caption
    assert position.headers[0] == "Number"
    assert [row[:2] for row in position.rows] == [("1", "20"), ("2", "20"), ("3", "20"), ("4", "20"), ("5", "10")]
    assert len(abstention.rows) == 20
    assert abstention.rows[0] == ("0", "100.0", "20", "0", "100.0", "100.0")
    assert abstention.best == {(0, abstention.headers.index("Exam score"))}
    assert evidence_headline(run.metrics) == [("Label mass, %", "80.0", ""), ("Questions with tied options", "4", "")]


def test_the_tables_of_a_run_that_was_shown_every_order(make_run) -> None:
    run = make_run(ZERO_SHOT, "r", extra=_cyclic_scores)
    _, (position, caption), _ = evidence_tables(run.metrics)
    assert position.headers[0] == "Place shown"
    assert [row[3] for row in position.rows] == ["100.0", "0.0", "0.0", "0.0", "0.0"]
    assert "not the same in all orders: 100.0 %." in caption
    assert ("Flip rate over the orders, %", "100.0", "") in evidence_headline(run.metrics)


def test_the_tables_fit_adraw(make_run) -> None:
    run = make_run(ZERO_SHOT, "rw", extra=_label_scores)
    text = draw(*run.benchmark.details(run.metrics), width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "Brier score" in text
    assert "…" not in text


def test_the_report_of_one_run(make_run) -> None:
    run = make_run(ZERO_SHOT, "rwu", extra=_cyclic_scores)
    text = (run.folder.path / "report.md").read_text()
    for heading in ("Calibration", "Position", "Abstention"):
        assert f"\n## {heading}\n\n|" in text
    for row in (
        "| Label mass, % | 80.0 |",
        "| Flip rate over the orders, % | 100.0 |",
        "| Questions with tied options |",
    ):
        assert row in text
    assert re.search(r"\| \*\*\d+\.\d\*\* \|", text)
    tables = re.findall(r"(?m)(?:^\|.*\|$\n?)+", re.sub(r"(?s)(`{4,})text.*?\1", "", text))
    assert len(tables) == 9
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_a_run_without_option_scores_says_nothing_of_them(make_run) -> None:
    run = make_run(ZERO_SHOT, "rw")
    assert run.benchmark.details(run.metrics) == []
    report = run_report(run, {})
    assert "Calibration" not in report
    assert "tied" not in report
    assert not {"brier_score", "label_mass", "tied"} & set(exam_values(run.metrics))


def test_the_command_prints_the_tables(make_run, exam_questions, answer_key, monkeypatch) -> None:
    run = make_run(ZERO_SHOT, "rw", extra=_label_scores)
    exams = made_up_exams(exam_questions, answer_key)
    monkeypatch.setattr(choice, "load_exam_set", lambda spec: exams)
    printed = CliRunner().invoke(app, ["report", str(run.folder.path)])
    assert printed.exit_code == 0
    for title in ("By exam", "Calibration", "Position", "Abstention"):
        assert title in printed.output


def test_plots_of_option_scores_are_written_where_a_run_has_them(make_run, tmp_path) -> None:
    runs = [make_run(ZERO_SHOT, "rrw"), make_run(GUIDED, "rw", extra=_label_scores)]
    paths = write_pictures(build_pictures(runs), tmp_path / "plots", "--plots")
    assert [path.name for path in paths] == [
        "strategies.png",
        "accuracy_by_year.png",
        "accuracy_by_discipline.png",
        "reliability.png",
        "exam_score_by_threshold.png",
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_parquet_holds_the_scores_in_the_order_of_the_options(make_run) -> None:
    scored, plain = make_run(ZERO_SHOT, "r", extra=_label_scores), make_run(GUIDED, "r")
    rows = pq.read_table(scored.folder.path / PARQUET).to_pylist()
    assert rows[1]["option_scores"] == pytest.approx([-1.2, -2.0, -2.0, -2.0, -2.0])
    assert [rows[2][name] for name in ("score_unit", "score_norm", "label_mass", "tied", "read_by")] == [
        "nats",
        "sum",
        0.8,
        5,
        "label",
    ]
    unscored = pq.read_table(plain.folder.path / PARQUET).to_pylist()[0]
    assert [unscored[name] for name in ("option_scores", "score_unit", "tied", "read_by")] == [None] * 4


def test_mlflow_is_told(make_run) -> None:
    one_order = exam_values(make_run(ZERO_SHOT, "rw", extra=_label_scores).metrics)
    assert (one_order["label_mass"], one_order["tied"]) == (pytest.approx(0.8), 4.0)
    assert {"expected_calibration_error", "brier_score"} <= set(one_order)
    assert "flip_rate" not in one_order
    assert exam_values(make_run(GUIDED, "rw", extra=_cyclic_scores).metrics)["flip_rate"] == 1.0
