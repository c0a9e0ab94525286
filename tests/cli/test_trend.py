"""A score over dated runs."""

import json
from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.distributions import rate_interval
from medexam.errors import SpecError
from medexam.experiments import current_run
from medexam.experiments.report.plots.pictures import render_plot
from medexam.experiments.report.plots.trend import trend_plot
from medexam.experiments.report.trend import find_trend
from medexam.specs import DatasetSpec
from stored_runs import write_run


@pytest.fixture
def history(tmp_path):
    """Three dated runs of one strategy, the last on half of the questions, and one of another strategy."""

    def run(name, program, day, right, questions=120):
        ended = f"2026-11-{day:02}T10:00:00+00:00"
        environment = {"started_at": ended, "ended_at": ended, "git_commit": f"{day:040x}"}
        dataset = {"limit": questions} if questions < 120 else {}
        chosen = load_exam_set(DatasetSpec(name="headqa_sample", **dataset))

        def answer(question, gold):
            wrong = next(number for number in question.option_numbers if number != gold)
            return {"status": "answered", "answer": gold if chosen.questions.index(question) < right else wrong}

        return write_run(tmp_path / name, chosen, {"kind": program}, answer, environment=environment, dataset=dataset)

    return [
        run("b", "zero_shot", 20, 60),
        run("a", "zero_shot", 2, 48),
        run("c", "zero_shot", 21, 30, questions=60),
        run("d", "random", 5, 24),
    ]


def test_runs_of_one_strategy_are_a_line_in_the_order_of_their_dates(history) -> None:
    found = find_trend([current_run(folder, print) for folder in history])
    lines = {line.name.partition(" · ")[0]: line for line in found.lines}
    assert [point.run_id for point in lines["zero_shot"].points] == ["a", "b", "c"]
    assert lines["zero_shot"].steps == [None, pytest.approx(0.1), None]  # the last was asked other questions
    assert [point.value for point in lines["random"].points] == [0.2]
    for line in found.lines:
        for point in line.points:
            assert point.interval == pytest.approx(rate_interval(round(point.value * point.n), point.n))
    (table, _), _ = found.blocks()
    assert [(row[0], row[3], row[5]) for row in table.rows] == [
        ("2026-11-02 10:00", "120", "-"),
        ("2026-11-20 10:00", "120", "+10.0"),
        ("2026-11-21 10:00", "60", "-"),
    ]
    picture = render_plot(trend_plot(found))
    assert picture.png.startswith(b"\x89PNG")


def test_the_command_shows_all_runs_of_the_directory(history, medexam, tmp_path) -> None:
    code, out, err = medexam(
        "trend", "--runs-dir", tmp_path, "--json", "--measure", "exam_score", "--plots", "pictures"
    )
    assert (code, err) == (0, "medexam: wrote pictures/trend.png\n")
    document = json.loads(out)
    assert document["measure"] == "exam_score"
    assert [len(line["points"]) for line in document["lines"]] == [3, 1]
    assert Path("pictures/trend.png").exists()
    code, out, _ = medexam("trend", history[0].path, history[1].path)
    assert code == 0
    assert "+10.0" in out
    code, _, err = medexam("trend", history[0].path, "--measure", "luck")
    assert (code, err.count("\n")) == (2, 1)
    assert "no run has it; the runs have accuracy" in err


def test_runs_without_scores_have_no_trend(tmp_path) -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_sample"))
    folder = write_run(tmp_path / "empty", exams, {"kind": "random"}, lambda *_: None)
    with pytest.raises(SpecError, match="no run has scored a question"):
        find_trend([current_run(folder, print)])
