"""What is shown while a run goes on: figures from real predictions, on a clock of the test's own."""

import pytest
import yaml

from medexam.cli.progress.pace import Pace
from medexam.cli.progress.run import TerminalProgress
from medexam.experiments import Runner, plan_experiment
from medexam.predictions import Failure, Prediction, Status
from medexam.specs import ModelSpec

OUTCOMES = {
    "r": {"status": Status.ANSWERED, "answer": 1, "prompt_tokens": 90, "completion_tokens": 10},
    "w": {"status": Status.ANSWERED, "answer": 2, "prompt_tokens": 90, "completion_tokens": 10},
    "f": {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="refused")},
}


def _is_right(prediction: Prediction) -> bool:
    return prediction.answer == 1


@pytest.fixture
def pace() -> Pace:
    """Twenty questions, ten of which an earlier invocation answered, five of them right."""
    return Pace(_is_right, total=20, progress=10, right=5)


def _answer(pace: Pace, outcomes: str) -> None:
    for number, outcome in enumerate(outcomes):
        pace.asked()
        pace.answered(Prediction(question=str(number), program="p", spec_digest="d", **OUTCOMES[outcome]))


def test_the_figures(pace) -> None:
    assert pace.describe(100.0) == "0 in flight · accuracy 50.0 % [23.7, 76.3]"
    _answer(pace, "rrwwf")
    pace.asked()
    assert pace.describe(102.0, time_left=True) == (
        "2.5 questions/s · 200 tokens/s · 1 in flight · 1 failed · 0:00:02 left · accuracy 50.0 % [26.8, 73.2]"
    )


def test_the_time_left_is_told_when_the_first_wave_is_done(pace) -> None:
    pace.progress = pace.right = 0
    pace.describe(0.0)
    for _ in range(10):
        pace.asked()
    _answer(pace, "r")
    assert "left" not in pace.describe(1.0, time_left=True)
    _answer(pace, "r" * 9)
    assert "0:00:02 left" in pace.describe(2.0, time_left=True)


def test_rates_are_recent(pace) -> None:
    pace.describe(0.0)
    _answer(pace, "rr")
    for now in range(1, 10):
        pace.describe(float(now))
    assert pace.describe(10.0).startswith("0.2 questions/s")
    _answer(pace, "rrr")
    assert pace.describe(20.0).startswith("0.3 questions/s · 30 tokens/s")
    assert pace.describe(40.0) == "0 in flight · accuracy 66.7 % [41.7, 84.8]"


def test_a_run_of_which_nothing_is_scored_has_no_accuracy() -> None:
    pace = Pace(_is_right, total=1, progress=0, right=0)
    assert pace.describe(0.0) == "0 in flight"


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    document = {
        "name": "shown",
        "dataset": {"name": "headqa_sample", "limit": 12},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": {"kind": "zero_shot"},
    }
    return plan_experiment(document, {}, runs_dir=tmp_path / "runs")


def test_without_a_terminal_a_long_run_says_now_and_then_how_it_goes(plan, monkeypatch, capsys) -> None:
    with TerminalProgress() as progress:
        Runner(plan, progress).run()
    _, first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "zero_shot en: asking 12 of 12 questions ..."
    assert last.endswith(": 12 of 12 questions")
    monkeypatch.setattr("medexam.cli.progress.run.REPEAT_S", 0.0)
    (planned,) = plan.cells
    with TerminalProgress() as progress:
        progress.cell_starts(planned)
        for prediction in planned.folder.read_predictions().values():
            progress.answered(prediction)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("zero_shot en: 12 of 12 questions · ")
    assert " elapsed · " in last
    assert "questions/s" in last
    assert "accuracy" in last


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        (ModelSpec(), "Preparing SmolLM2-135M-Instruct (embedded) ..."),
        (ModelSpec(engine="vllm"), "Preparing engine vllm ..."),
        (
            ModelSpec(engine="vllm", endpoints=("http://gpu:8000/v1",)),
            "Preparing engine vllm at http://gpu:8000/v1 ...",
        ),
        (ModelSpec(engine="vllm", name="me/tiny"), "Preparing tiny (vllm) ..."),
    ],
)
def test_what_is_prepared(model, shown, capsys) -> None:
    with TerminalProgress() as progress:
        progress.engine_starts(model)
    assert capsys.readouterr().err == f"{shown}\n"


def test_on_a_terminal_the_figures_stand_below_the_bar(plan, monkeypatch, capsys) -> None:
    monkeypatch.setattr("medexam.cli.progress.run.REDRAW_S", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    (planned,) = plan.cells
    with TerminalProgress() as progress:
        progress.cell_starts(planned)
        progress.asked()
    shown = capsys.readouterr().err
    assert "zero_shot en" in shown
    assert "1 in flight" in shown
    assert "0:00:00 elapsed" in shown
