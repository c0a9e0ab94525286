"""A cell asked by vLLM's own `run-batch`, against the same cell asked of the same model's server."""

import os

import pytest

from medexam.experiments import Runner, plan_experiment
from watching import Silent

pytestmark = [
    pytest.mark.vllm_env,
    pytest.mark.skipif("MEDEXAM_VLLM_PYTHON" not in os.environ, reason="MEDEXAM_VLLM_PYTHON names no Python with vLLM"),
]
QUESTIONS = 8


@pytest.fixture
def carry_out(tmp_path):
    def run(program, **model):
        document = {
            "name": "batched",
            "dataset": {"name": "headqa_sample", "limit": QUESTIONS},
            "model": {"profile": "smollm2-cpu", "max_tokens": 8, **model},
            "program": program,
        }
        plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
        (found,), stop = Runner(plan, Silent()).run()
        assert stop is None
        return found

    return run


def test_run_batch_answers_a_program_of_two_calls_and_repeats_nothing(carry_out) -> None:
    program = {"kind": "chain_of_thought", "answer_format": "guided", "max_tokens": 8}
    run = carry_out(program, engine="batch")
    assert run.complete
    assert run.metrics.unanswered == 0
    assert run.metrics.n == QUESTIONS
    batches = run.folder.path / "batches"
    waves = sorted(path.name for path in batches.glob("*.results.jsonl"))
    assert waves == ["1.results.jsonl", "2.results.jsonl"]
    assert all((batches / wave).read_bytes().count(b"\n") == QUESTIONS for wave in waves)
    assert not list(batches.glob("*.part"))
    # Every answer is made again from what is on disk: no vLLM starts.
    logs = {path: path.stat().st_mtime_ns for path in batches.glob("*.log")}
    (run.folder.path / "predictions.jsonl").unlink()
    again = carry_out(program, engine="batch")
    assert again.complete
    assert {path: path.stat().st_mtime_ns for path in batches.glob("*.log")} == logs
    assert answers(again) == answers(run)


def answers(run):
    return {key: one.answer for key, one in run.folder.read_predictions().items()}
