"""Stored predictions are scored again on the data set as it is, and nothing is asked or written."""

import dataclasses

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
from medexam.experiments import RunFolder, rescore, score_cell
from medexam.experiments.store.run_folder import RunRecord
from medexam.predictions import Prediction, Status
from medexam.specs import CellSpec
from medexam.specs.identity import IDENTITY_SCHEMA


@pytest.fixture
def stored(tmp_path):
    """A run over twelve questions of the bundled sample that answers each with its gold."""
    cell = CellSpec.model_validate({"name": "demo", "dataset": {"limit": 12}, "program": {"kind": "longest"}})
    exam_set = load_exam_set(cell.dataset)
    folder = RunFolder(tmp_path / "run")
    folder.create()
    folder.write_record(
        RunRecord(
            run_id="run",
            schema=IDENTITY_SCHEMA,
            spec_digest="d" * 12,
            identity={},
            cell=cell,
            description="",
            dataset_version="1.0",
            dataset_source="the package",
            dataset_fingerprint=exam_set.fingerprint,
            dataset_golds=exam_set.golds_fingerprint,
            questions=tuple(question.key for question in exam_set.questions),
            experiment_digest="e" * 12,
        )
    )
    with folder.appending() as log:
        for question in exam_set.questions:
            answer = exam_set.golds[question.key].number
            log.append(
                Prediction(
                    question=question.key,
                    program="longest",
                    spec_digest="d" * 12,
                    status=Status.ANSWERED,
                    answer=answer,
                )
            )
    return folder, exam_set


def test_a_run_without_metrics_is_scored_and_nothing_is_written(stored) -> None:
    folder, _ = stored
    before = sorted(path.name for path in folder.path.iterdir())
    run = rescore(folder)
    assert (run.metrics.n, run.metrics.accuracy) == (12, 1.0)
    assert sorted(path.name for path in folder.path.iterdir()) == before


def test_rescoring_agrees_with_scoring(stored) -> None:
    folder, exam_set = stored
    assert score_cell(folder, exam_set) == rescore(folder)


def test_a_question_that_is_gone_is_named(stored) -> None:
    folder, _ = stored
    record = folder.read_record()
    folder.write_record(dataclasses.replace(record, questions=(*record.questions, "headqa-v1/1900/biology/1")))
    with pytest.raises(DatasetError, match="headqa-v1/1900/biology/1"):
        rescore(folder)
