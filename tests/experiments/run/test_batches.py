"""Runs whose model is asked by batches: the real litellm against a provider's batch API on this machine."""

import hashlib
import json
import os
import signal
import threading

import pytest
from batch_server import BatchProvider, serving_batches
from wire_server import Wire

from medexam.companions.translation.actions import ask_pending
from medexam.companions.translation.outcome import find_outcome
from medexam.companions.translation.plan import build_spec, plan_translation
from medexam.errors import EngineError, SpecError
from medexam.experiments import Runner, Stop, plan_experiment
from medexam.predictions import Status
from medexam.serve import TIMING
from medexam.serve.batches import hosted
from medexam.specs import ModelSpec, validate
from waiting import until
from watching import Silent

GUIDED = {"kind": "zero_shot", "answer_format": "guided"}
REASONED = {"kind": "chain_of_thought", "answer_format": "guided", "max_tokens": 64}
"""Two calls a question."""
UPLOAD, CREATE, LIST = "POST /v1/files", "POST /v1/batches", "GET /v1/batches"


class Minded(Wire):
    """Makes a choice that depends on the question, and reasons with a word of it."""

    def _chat(self, body):
        status, reply = super()._chat(body)
        asked = body["messages"][-1 if body["messages"][-1]["role"] == "user" else -2]["content"]
        print_ = hashlib.sha256(asked.encode()).digest()[0]
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        if status == 200 and schema:
            options = schema["properties"]["answer"]["enum"]
            reply["choices"][0]["message"]["content"] = json.dumps({"answer": options[print_ % len(options)]})
        elif status == 200:
            reply["choices"][0]["message"]["content"] = f"Because of {print_}."
        return status, reply


class Stopping(Silent):
    """Notes that the run begins to stop."""

    def __init__(self) -> None:
        self.heard = threading.Event()

    def stopping(self, in_flight) -> None:
        self.heard.set()


@pytest.fixture
def provider(monkeypatch):
    monkeypatch.setattr(TIMING, "first_batch_poll_s", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with serving_batches(BatchProvider(Minded(models=("gpt-4o-mini",)))) as serving:
        monkeypatch.setenv("OPENAI_BASE_URL", serving.address)
        monkeypatch.setenv("OPENAI_API_BASE", serving.address)
        yield serving


@pytest.fixture
def planned(tmp_path):
    def plan(program=GUIDED, limit=12, **model):
        document = {
            "name": "batched",
            "dataset": {"name": "headqa_sample", "limit": limit},
            "model": {"engine": "batch", "name": "openai/gpt-4o-mini", **model},
            "program": program,
        }
        return plan_experiment(document, {}, runs_dir=tmp_path / "runs")

    return plan


@pytest.fixture
def carry_out(planned):
    def run(*program, **model):
        (found,), stop = Runner(planned(*program, **model), Silent()).run()
        return found, stop

    return run


@pytest.fixture
def interrupt(planned):
    """Runs, and presses Ctrl-C twice once something is true."""

    def run(true, *program):
        watcher = Stopping()

        def press():
            until(true)
            os.kill(os.getpid(), signal.SIGINT)
            until(watcher.heard.is_set, "the first Ctrl-C")
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press)
        thread.start()
        (found,), stop = Runner(planned(*program), watcher).run()
        thread.join()
        assert stop is Stop.INTERRUPTED
        return found

    return run


def answers(run):
    return {key: (one.answer, one.status) for key, one in run.folder.read_predictions().items()}


def record(run, number=1):
    return json.loads((run.folder.path / "batches" / f"{number}.json").read_text())


def test_a_cell_is_one_batch_and_its_answers_are_those_of_live_calls(provider, carry_out) -> None:
    run, stop = carry_out()
    assert stop is None
    assert run.complete
    (batch,) = provider.batches
    requests = provider.requests_of(batch)
    assert len(requests) == len({one["custom_id"] for one in requests}) == 12
    first = requests[0]
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")
    assert (first["body"]["model"], first["body"]["temperature"], first["body"]["seed"]) == ("gpt-4o-mini", 0.0, 0)
    assert first["body"]["response_format"]["json_schema"]["strict"] is True
    assert (record(run)["batch_id"], record(run)["status"], record(run)["requests"]) == (batch, "completed", 12)
    live, _ = carry_out(engine="litellm")
    assert answers(run) == answers(live)
    assert len({answer for answer, _ in answers(run).values()}) > 1
    asked = len(provider.asked)
    again, _ = carry_out()
    assert (again.folder.name, len(provider.asked)) == (run.folder.name, asked)


def test_programs_with_two_calls_a_question_go_in_two_waves(provider, carry_out) -> None:
    run, _ = carry_out(REASONED)
    assert run.complete
    first, second = (provider.requests_of(batch) for batch in provider.batches)
    assert len(first) == len(second) == 12
    assert not any("response_format" in one["body"] for one in first)
    assert all("response_format" in one["body"] for one in second)
    live, _ = carry_out(REASONED, engine="litellm")
    assert answers(run) == answers(live)


def test_an_interrupted_run_takes_its_batch_up_again(provider, carry_out, interrupt) -> None:
    provider.polls = 10**6
    run = interrupt(provider.was_seen)
    assert not answers(run)
    provider.polls = 0
    run, _ = carry_out()
    assert run.complete
    assert (provider.asked.count(UPLOAD), provider.asked.count(CREATE)) == (1, 1)


def test_a_run_that_stops_in_its_second_wave_repeats_no_request_of_the_first(provider, carry_out, interrupt) -> None:
    provider.polls = 2
    run = interrupt(
        lambda: setattr(provider, "polls", 10**6) or True if len(provider.batches) == 2 else False, REASONED
    )
    assert not run.complete
    provider.polls = 0
    run, _ = carry_out(REASONED)
    assert run.complete
    assert provider.asked.count(CREATE) == 2


@pytest.mark.parametrize("heard", [True, False])
def test_a_batch_that_was_made_unheard_is_found_by_its_file(provider, carry_out, interrupt, heard) -> None:
    provider.lose_created = 0 if heard else 1
    for _ in "123":
        provider.create({"endpoint": "/v1/chat/completions", "completion_window": "24h", "input_file_id": "other"})
    others = len(provider.batches)
    if heard:  # The process is killed between the reply and the record.
        provider.polls = 10**6
        run = interrupt(provider.was_seen)
        path = run.folder.path / "batches" / "1.json"
        path.write_text(json.dumps({**record(run), "batch_id": None, "status": "new"}))
        provider.polls = 0
    run, _ = carry_out()
    assert run.complete
    assert len(provider.batches) == others + 1
    assert provider.asked.count(LIST) >= 1


def test_what_failed_is_owed_and_alone_submitted_again(provider, carry_out) -> None:
    provider.refused = 3
    run, _ = carry_out()
    statuses = [status for _, status in answers(run).values()]
    assert (statuses.count(Status.FAILED), statuses.count(Status.ANSWERED)) == (3, 9)
    assert "refused by the test" in next(one for one in run.failures).example
    provider.refused = 0
    run, _ = carry_out()
    assert run.complete
    assert [len(provider.requests_of(batch)) for batch in provider.batches] == [12, 3]


@pytest.mark.parametrize("ends", ["expired", "cancelled"])
def test_what_a_batch_did_not_come_to_is_owed(provider, carry_out, ends) -> None:
    provider.ends, provider.answered = ends, 5
    run, _ = carry_out()
    statuses = [status for _, status in answers(run).values()]
    assert (statuses.count(Status.FAILED), statuses.count(Status.ANSWERED)) == (7, 5)
    provider.ends, provider.answered = "completed", None
    run, _ = carry_out()
    assert run.complete
    assert len(provider.requests_of("batch_2")) == 7


def test_a_batch_that_is_refused_as_a_whole_ends_the_run_with_the_reason(provider, carry_out) -> None:
    provider.ends = "failed"
    with pytest.raises(EngineError, match=r"refused as a whole.*not supported by the Batch API"):
        carry_out()
    provider.ends = "completed"
    run, _ = carry_out()
    assert run.complete
    assert len(provider.batches) == 2


def test_a_poll_that_fails_is_made_again(provider, carry_out, caplog) -> None:
    provider.failing_polls = 3
    run, _ = carry_out()
    assert run.complete
    assert "cannot be read" in caplog.text


def test_a_batch_that_the_provider_does_not_know_says_the_way_out(provider, carry_out, interrupt) -> None:
    provider.polls = 10**6
    run = interrupt(provider.was_seen)
    provider.batches.clear()
    provider.polls = 0
    with pytest.raises(EngineError, match=r"batch_1 is not known to openai.*remove .*1\.json"):
        carry_out()
    (run.folder.path / "batches" / "1.json").unlink()
    run, _ = carry_out()
    assert run.complete


def test_cells_are_submitted_before_one_of_them_is_waited_for(provider, tmp_path, monkeypatch) -> None:
    retrieve = provider.retrieve

    def patient(key):
        # No batch ends before three are made, however slowly this machine makes them.
        provider.polls = 3 if len(provider.batches) >= 3 else 200
        return retrieve(key)

    monkeypatch.setattr(provider, "retrieve", patient)
    document = {
        "name": "batched",
        "dataset": {"name": "headqa_sample", "limit": 8},
        "model": {"engine": "batch", "name": "openai/gpt-4o-mini"},
        "matrix": {"program": [GUIDED, REASONED, {"kind": "few_shot", "answer_format": "guided"}, {"kind": "longest"}]},
    }
    plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
    runs, stop = Runner(plan, Silent()).run()
    assert stop is None
    assert [run.complete for run in runs] == [True] * 4
    # Four batches, one of them the second wave of the program with two calls.
    assert [len(provider.requests_of(batch)) for batch in provider.batches] == [8] * 4
    made = [place for place, asked in enumerate(provider.asked) if asked == CREATE]
    ended = next(place for place, asked in enumerate(provider.asked) if asked.endswith("/content"))
    assert sum(place < ended for place in made) == 3
    for run in runs:
        assert len((run.folder.path / "predictions.jsonl").read_text().splitlines()) == 8


def test_a_wave_is_split_where_a_batch_takes_no_more(provider, carry_out, monkeypatch) -> None:
    monkeypatch.setattr(hosted.HostedBatches, "most_requests", 5)
    run, _ = carry_out()
    assert run.complete
    assert sorted(len(provider.requests_of(batch)) for batch in provider.batches) == [2, 5, 5]


def test_a_batch_costs_half(provider, carry_out) -> None:
    batch, _ = carry_out()
    live, _ = carry_out(engine="litellm")
    assert batch.costs.usd.total == pytest.approx(live.costs.usd.total / 2)
    assert batch.costs.usd.total > 0


def test_no_live_call_answers_a_question(provider) -> None:
    import medexam

    lm = medexam.lm("batch", name="openai/gpt-4o-mini")
    asked = len(provider.asked)
    with pytest.raises(Exception, match="medexam run"):
        lm("Hello")
    assert len(provider.asked) == asked


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({}, "needs a provider's model in name"),
        ({"name": "openai/x", "endpoints": ["http://127.0.0.1:1/v1"]}, "takes no endpoints"),
        ({"name": "openai/x", "start": True}, "start and ca_bundle belong"),
    ],
)
def test_specs_that_mean_no_batch_are_refused(model, said) -> None:
    with pytest.raises(SpecError, match=said):
        validate(ModelSpec, {"engine": "batch", **model})


def test_a_provider_without_such_batches_is_refused(carry_out, monkeypatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    with pytest.raises(EngineError, match="use engine litellm"):
        carry_out(name="anthropic/claude-3-5-haiku-latest")


def test_the_setups_of_a_translation_are_submitted_as_those_of_every_run(provider, tmp_path) -> None:
    settings = {"model.engine": "batch", "model.name": "openai/gpt-4o-mini"}
    about = {"name": "headqa_sample", "language": "es", "limit": 3}
    spec = build_spec(settings, dataset=about, target="en", setups=("zero_shot", "expert"))
    plan = plan_translation(spec, runs_dir=tmp_path)

    assert ask_pending(plan, plan.runs, plan.setups, None) is None
    assert find_outcome(plan_translation(spec, runs_dir=tmp_path)).pending == 0
    assert provider.asked.count(CREATE) == 2
