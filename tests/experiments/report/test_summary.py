"""A stored run is read back as it was written, and printed as JSON without losing anything."""

import json

import pytest

from medexam.errors import RunFolderError
from medexam.experiments.store.stored_run import FailureCount, count_failures, load_run, run_document
from medexam.predictions import Failure, Prediction, Status

ZERO_SHOT = {"kind": "zero_shot", "answer_format": "guided"}


def test_a_run_is_read_back(make_run) -> None:
    run = make_run(ZERO_SHOT, "rw", model={"engine": "embedded"})
    assert load_run(run.folder) == run
    assert (run.program, run.model, run.status) == ("zero_shot-guided", "SmolLM2-135M-Instruct", "complete")
    assert run.failures == ()


def test_a_failed_run_tells_how_it_failed(make_run) -> None:
    run = load_run(make_run(ZERO_SHOT, "rwf").folder)
    assert (run.status, run.complete) == ("incomplete", False)
    assert run.failures == (FailureCount("network", "LMTransportError", 6, "connection refused"),)


def test_each_kind_of_failure_is_counted_with_an_example_of_its_own() -> None:
    messages = [
        *(
            "HTTP 500 from http://10.0.0.1:8000/v1: out of memory",
            "HTTP 500 from http://10.0.0.2:8000/v1: out of memory",
        ),
        "HTTP 503 from http://10.0.0.1:8000/v1: overloaded",
        *("the server broke off after 12 tokens", "the server broke off after 340 tokens"),
        *("replied 'It is C.' instead of a choice", "replied 'None' instead of a choice"),
        "the server broke off after 7 tokens",
    ]
    failed = [_failed(number, message) for number, message in enumerate(messages)]
    assert count_failures(failed, {one.question for one in failed}) == (
        FailureCount("server", "LMServerError", 3, messages[7]),
        FailureCount("server", "LMServerError", 2, messages[1]),
        FailureCount("server", "LMServerError", 2, messages[6]),
        FailureCount("server", "LMServerError", 1, messages[2]),
    )


def test_failures_that_all_differ_are_a_few_rows() -> None:
    failed = [_failed(number, f"{word} failed") for number, word in enumerate(["one", "two", "three", "four"] * 2)]
    failed += [_failed(9 + number, "x" * number) for number in range(30)]
    counts = [one.questions for one in count_failures(failed, {one.question for one in failed})]
    assert counts == [29, 2, 2, 2, 2, 1]


def _failed(number, message):
    failure = Failure(kind="LMServerError", message=message)
    known = {"question": f"own/{number}", "program": "zero_shot", "spec_digest": "0"}
    return Prediction(**known, status=Status.FAILED, failure=failure)


def test_a_control_has_no_model(make_run) -> None:
    run = make_run({"kind": "longest"}, "r")
    assert (run.model, run.costs) == (None, None)


def test_the_document_is_json_with_the_promised_keys(make_run) -> None:
    run = make_run(ZERO_SHOT, "rrw", language="es")
    document = json.loads(json.dumps(run_document(run)))
    assert {key: value for key, value in document.items() if key != "metrics"} == {
        "run_id": run.record.run_id,
        "run_dir": str(run.folder.path),
        "spec_digest": run.record.spec_digest,
        "dataset": "headqa_sample",
        "language": "es",
        "program": "zero_shot-guided",
        "model": "SmolLM2-135M-Instruct",
        "answered_by": [],
        "mixed": False,
        "status": "complete",
        "warnings": [],
        "failures": [],
        "costs": dict.fromkeys(
            ("completion_tokens", "gpu_seconds", "prefix_hits", "prompt_tokens", "questions_per_s", "seconds", "usd")
        ),
    }
    assert document["metrics"]["n"] == 20
    assert document["metrics"]["by_discipline"]["biology"]["headqa_v1_accuracy"] == 70.0


@pytest.mark.parametrize("name", ["spec.json", "metrics.json"])
def test_a_folder_that_lacks_a_file_is_refused(make_run, name) -> None:
    run = make_run(ZERO_SHOT, "r")
    (run.folder.path / name).unlink()
    with pytest.raises(RunFolderError, match=name):
        load_run(run.folder)


def test_metrics_of_another_version_name_the_field(make_run) -> None:
    run = make_run(ZERO_SHOT, "r")
    run.folder.write_json("metrics.json", {**run.folder.read_metrics(), "f1": 0.5})
    with pytest.raises(RunFolderError, match="f1"):
        load_run(run.folder)
