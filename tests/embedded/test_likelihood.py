"""Whole likelihood experiments on a model in this process."""

import math
from pathlib import Path

import pytest

from medexam.experiments import Runner, plan_experiment, run_report
from watching import Silent

pytestmark = pytest.mark.model
QUESTIONS = 4
CORPUS = Path(__file__).parents[1] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"


@pytest.fixture(scope="module")
def runs(tiny_llama, tmp_path_factory):
    folder = tmp_path_factory.mktemp("likelihood")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDEXAM_CACHE", str(folder / "cache"))
        retriever = {"kind": "bm25", "corpus": str(CORPUS)}
        document = {
            "name": "likelihood",
            "dataset": {"name": "headqa_sample", "limit": QUESTIONS, "language": "en"},
            "model": {"engine": "embedded", "path": str(tiny_llama), "dtype": "float32"},
            "matrix": {
                "program": [
                    {"kind": "likelihood"},
                    {"kind": "likelihood", "read": "label", "orders": "cyclic"},
                    {"kind": "likelihood", "context": "retrieved", "retriever": retriever},
                    {"kind": "likelihood", "chat_template": True, "abstain_below": 0.99},
                ]
            },
        }
        stored, interrupted = Runner(plan_experiment(document, {}, runs_dir=folder / "runs"), Silent()).run()
    assert not interrupted
    return stored


def test_nothing_stays_unanswered_unless_it_abstains(runs) -> None:
    *answering, abstaining = runs
    assert all(run.complete and run.metrics.unanswered == 0 for run in answering)
    assert abstaining.metrics.unanswered > 0


def test_scores_are_log_probabilities_with_their_unit(runs) -> None:
    predictions = runs[0].folder.read_predictions().values()
    assert {prediction.score_unit for prediction in predictions} == {"nats per token"}
    assert all(score < 0 for prediction in predictions for score in prediction.option_scores.values())
    assert {prediction.read_by for prediction in predictions} <= {"trie", "label"}
    assert all((prediction.read_why or "").startswith("cost in tokens: ") for prediction in predictions)


def test_cyclic_orders_are_kept_and_audited(runs) -> None:
    cyclic = runs[1]
    for prediction in cyclic.folder.read_predictions().values():
        assert len(prediction.order_scores) == len(prediction.option_scores)
        assert math.fsum(prediction.option_probabilities.values()) == pytest.approx(1.0)
        assert 0 < prediction.label_mass <= 1
    scores = cyclic.metrics.option_scores
    assert 0 <= scores.flip_rate <= 1
    assert scores.by_shown_position


def test_the_report_shows_calibration_positions_and_thresholds(runs) -> None:
    text = run_report(runs[1], runs[1].folder.read_predictions())
    for title in ("Calibration", "Position", "Abstention"):
        assert f"## {title}" in text


def test_passages_stand_before_the_stem(runs) -> None:
    found = [prediction.passages for prediction in runs[2].folder.read_predictions().values()]
    assert sum(bool(passages) for passages in found) >= QUESTIONS - 1
    assert runs[2].metrics.retrieval is not None
