"""Runs whose model is asked by batches: the real litellm against a provider's batch API on this machine."""

import hashlib
import json
import os
import signal
import threading
import time

import pytest
from batch_server import BatchProvider, serving_batches
from wire_server import Wire

import medexam
from medexam.errors import EngineError, SpecError
from medexam.predictions import Status
from medexam_companions.batches import HostedBatches
from waiting import until

GUIDED = {"kind": "zero_shot", "answer_format": "guided"}
REASONED = {"kind": "chain_of_thought", "answer_format": "guided", "max_tokens": 64}
"""Two calls a question."""
UPLOAD, CREATE, LIST = "POST /v1/files", "POST /v1/batches", "GET /v1/batches"


class Minded(Wire):
    """Makes a choice that depends on the question, and reasons with a word of it."""

    def reply(self, path, body):
        status, reply = super().reply(path, body)
        if status != 200 or not path.endswith("/chat/completions"):
            return status, reply
        asked = body["messages"][-1 if body["messages"][-1]["role"] == "user" else -2]["content"]
        number = hashlib.sha256(asked.encode()).digest()[0]
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        options = schema and schema["properties"]["answer"]["enum"]
        said = json.dumps({"answer": options[number % len(options)]}) if schema else f"Because of {number}."
        reply["choices"][0]["message"]["content"] = said
        return status, reply


@pytest.fixture
def provider(monkeypatch):
    monkeypatch.setattr(HostedBatches, "first_poll_s", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with serving_batches(BatchProvider(Minded(models=("gpt-4o-mini",)))) as serving:
        monkeypatch.setenv("OPENAI_BASE_URL", serving.address)
        monkeypatch.setenv("OPENAI_API_BASE", serving.address)
        yield serving


@pytest.fixture
def carry_out(tmp_path):
    def run(program=GUIDED, limit=6, **model):
        document = {
            "name": "batched",
            "dataset": {"name": "headqa_sample", "limit": limit},
            "model": {"engine": "batch", "name": "openai/gpt-4o-mini", **model},
            "program": program,
        }
        return medexam.run(document, runs_dir=tmp_path / "runs", progress=False, track=False)[0]

    return run


@pytest.fixture
def interrupt(provider, carry_out):
    """Runs, and presses Ctrl-C twice once something is true: the second does not wait."""

    def run(true, *program):
        def press():
            until(true)
            for _ in "12":
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.5)

        thread = threading.Thread(target=press)
        thread.start()
        found = carry_out(*program)
        thread.join()
        assert not found.complete
        provider.polls = 0
        return found

    return run


def answers(run):
    return {key: (one.answer, one.status) for key, one in run.predictions.items()}


def statuses(run):
    counted = [one.status for one in run.predictions.values()]
    return counted.count(Status.ANSWERED), counted.count(Status.FAILED)


def record(run, number=1):
    return json.loads((run.folder / "batches" / f"{number}.json").read_text())


def test_a_cell_is_one_batch_and_its_answers_are_those_of_live_calls_at_half_the_price(provider, carry_out) -> None:
    run = carry_out()
    (batch,) = provider.batches
    requests = provider.requests_of(batch)
    assert len(requests) == len({one["custom_id"] for one in requests}) == 6
    first = requests[0]
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")
    assert (first["body"]["model"], first["body"]["temperature"], first["body"]["seed"]) == ("gpt-4o-mini", 0.0, 0)
    assert first["body"]["response_format"]["json_schema"]["strict"] is True
    assert (record(run)["batch_id"], record(run)["status"], record(run)["requests"]) == (batch, "completed", 6)
    live = carry_out(engine="litellm")
    assert (run.complete, answers(run)) == (True, answers(live))
    assert len({answer for answer, _ in answers(run).values()}) > 1
    prices = [json.loads((each.folder / "environment.json").read_text())["prices"] for each in (run, live)]
    assert {name: price / 2 for name, price in prices[1].items()} == pytest.approx(prices[0])
    assert all(prices[0].values())
    asked = len(provider.asked)
    assert (carry_out().id, len(provider.asked)) == (run.id, asked)


def test_programs_with_two_calls_a_question_go_in_two_waves(provider, carry_out) -> None:
    run = carry_out(REASONED)
    first, second = (provider.requests_of(batch) for batch in provider.batches)
    assert len(first) == len(second) == 6
    assert not any("response_format" in one["body"] for one in first)
    assert all("response_format" in one["body"] for one in second)
    assert (run.complete, answers(run)) == (True, answers(carry_out(REASONED, engine="litellm")))


def test_an_interrupted_run_repeats_no_request(provider, carry_out, interrupt) -> None:
    provider.polls = 2

    def in_second_wave():
        provider.polls = 10**6 if len(provider.batches) == 2 else 2
        return len(provider.batches) == 2

    assert not answers(interrupt(in_second_wave, REASONED))
    assert carry_out(REASONED).complete
    assert (provider.asked.count(UPLOAD), provider.asked.count(CREATE)) == (2, 2)


@pytest.mark.parametrize("heard", [True, False])
def test_a_batch_that_was_made_unheard_is_found_by_its_file(provider, carry_out, interrupt, heard) -> None:
    provider.lose_created = 0 if heard else 1
    for _ in "123":
        provider.create({"endpoint": "/v1/chat/completions", "completion_window": "24h", "input_file_id": "other"})
    others = len(provider.batches)
    if heard:  # The process is killed between the reply and the record.
        provider.polls = 10**6
        run = interrupt(provider.was_seen)
        path = run.folder / "batches" / "1.json"
        path.write_text(json.dumps({**record(run), "batch_id": None, "status": "new"}))
    assert carry_out().complete
    assert len(provider.batches) == others + 1
    assert provider.asked.count(LIST) >= 1


@pytest.mark.parametrize(
    "fault", [{"refused": 2}, {"ends": "expired", "answered": 3}, {"ends": "cancelled", "answered": 3}]
)
def test_what_has_no_result_is_owed_and_alone_submitted_again(provider, carry_out, fault) -> None:
    for name, value in fault.items():
        setattr(provider, name, value)
    owed = 2 if "refused" in fault else 3
    assert statuses(carry_out()) == (6 - owed, owed)
    provider.refused, provider.ends, provider.answered = 0, "completed", None
    assert carry_out().complete
    assert [len(provider.requests_of(batch)) for batch in provider.batches] == [6, owed]


@pytest.mark.parametrize("code", ["content_filter", "invalid_prompt"])
def test_a_request_that_is_refused_for_its_content_is_filtered(provider, carry_out, code) -> None:
    provider.refused, provider.refusal_code = 2, code
    run = carry_out()
    assert run.complete
    assert [str(one.reason) for one in run.predictions.values()].count("filtered") == 2
    assert not run.stored.mixed


def test_a_batch_that_is_refused_as_a_whole_ends_the_run_with_the_reason(provider, carry_out) -> None:
    provider.ends = "failed"
    with pytest.raises(EngineError, match=r"refused as a whole.*not supported by the Batch API"):
        carry_out()
    provider.ends = "completed"
    assert carry_out().complete
    assert len(provider.batches) == 2


def test_a_poll_that_fails_is_made_again(provider, carry_out, caplog) -> None:
    provider.failing_polls = 3
    assert carry_out().complete
    assert "cannot be read" in caplog.text


def test_a_batch_that_the_provider_does_not_know_says_the_way_out(provider, carry_out, interrupt) -> None:
    provider.polls = 10**6
    run = interrupt(provider.was_seen)
    provider.batches.clear()
    with pytest.raises(EngineError, match=r"batch_1 is not known to openai.*remove .*1\.json"):
        carry_out()
    (run.folder / "batches" / "1.json").unlink()
    assert carry_out().complete


def test_no_live_call_answers_a_question(provider) -> None:
    lm = medexam.lm("batch", name="openai/gpt-4o-mini")
    asked = len(provider.asked)
    with pytest.raises(Exception, match="medexam run"):
        lm("Hello")
    assert len(provider.asked) == asked


def test_a_provider_without_such_batches_is_refused(carry_out, monkeypatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    with pytest.raises(EngineError, match="use engine litellm"):
        carry_out(name="anthropic/claude-3-5-haiku-latest")


@pytest.mark.parametrize("settings", [{"name": None}, {"endpoints": ["http://127.0.0.1:9/v1"]}])
@pytest.mark.usefixtures("provider")
def test_a_model_without_a_name_or_with_an_endpoint_is_refused(carry_out, settings) -> None:
    with pytest.raises(SpecError, match="engine 'batch'"):
        carry_out(**settings)
