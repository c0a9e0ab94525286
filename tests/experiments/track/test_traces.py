"""Traces of a run's questions in a real MLflow store, over the scripted engine."""

import dataclasses
import json
from pathlib import Path

import pytest
import yaml

from medexam.errors import TrackingError
from medexam.experiments import Runner, plan_experiment
from medexam.experiments.track.payload import run_tags
from medexam.experiments.track.runs import track
from medexam.experiments.track.traces import read_traces, sample_keys
from medexam.specs import build_cells
from watching import Silent

CORPUS = Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`run({"kind": "zero_shot"}, "{Answer: 1}", trace_questions=3)` -> the stored run."""
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    replies = tmp_path / "replies.yaml"

    def carry_out(program, reply="{Answer: 1}", *, trace_questions=3, **dataset):
        replies.write_text(yaml.safe_dump({"*": reply}))
        document = {
            "name": "traced",
            "dataset": {"name": "headqa_sample", "limit": 12, **dataset},
            "model": {"engine": "scripted", "path": str(replies)},
            "program": program,
            "trace_questions": trace_questions,
        }
        plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
        runs, stop = Runner(plan, Silent()).run()
        assert stop is None
        # The members of an ensemble stand before it.
        return runs[-1]

    return carry_out


@pytest.fixture
def traces_of(client, uri):
    """Send a run; its traces by question."""

    def send(run):
        (tracked,) = track([run], tracking_uri=uri)
        found = client.search_traces(locations=[tracked.experiment_id], run_id=tracked.mlflow_run_id)
        return {trace.info.tags["medexam.question"]: trace for trace in found}

    return send


def test_a_trace_shows_every_query_that_the_model_wrote(run, traces_of) -> None:
    program = {"kind": "iterative_retrieval", "rounds": 2, "retriever": {"kind": "bm25", "corpus": str(CORPUS)}}
    stored = run(program, "blood pressure\nvitamin deficiency {Answer: 1}", trace_questions=2)
    predictions = stored.folder.read_predictions()
    for key, trace in traces_of(stored).items():
        (asked,) = predictions[key].rounds
        names = [span.name for span in trace.data.spans]
        assert names[:3] == ["question", "retrieve in round 1", "retrieve in round 1"]
        assert names[3:] == [*(f"ask {number} of 5" for number in range(1, 6)), "parse", "score"]
        for span, one in zip(trace.data.spans[1:3], asked, strict=True):
            assert span.inputs["queries"] == [one.query]
            assert [found["id"] for found in span.outputs] == [each.id for each in one.passages]
            assert all(found["page_content"] for found in span.outputs)
        last = _spans(trace)["ask 5 of 5"]
        assert f"Query: {asked[1].query}\nAnswer: {asked[1].answer}" in last.inputs["messages"][-1]["content"]


def _spans(trace):
    return {span.name: span for span in trace.data.spans}


def test_a_trace_holds_prompt_reply_answer_and_score(run, traces_of) -> None:
    stored = run({"kind": "zero_shot"}, "I would say {Answer: 1}")
    traces = traces_of(stored)
    assert set(traces) == set(sample_keys(stored.record.questions, 3))
    predictions = stored.folder.read_predictions()
    for key, trace in traces.items():
        said = predictions[key]
        spans = _spans(trace)
        assert list(spans) == ["question", "ask", "parse", "score"]
        assert {span.parent_id for span in trace.data.spans} == {None, spans["question"].span_id}
        system, told, user = spans["ask"].inputs["messages"]
        assert system == {"role": "system", "content": ""}
        assert "{Answer: [number]}" in told["content"]
        assert user["content"] == spans["question"].inputs["question"]
        assert spans["ask"].outputs["choices"][0]["message"]["content"] == said.reply
        assert spans["parse"].inputs["reply"] == said.reply
        assert spans["parse"].outputs["answer"] == said.answer == 1
        right = spans["score"].outputs["right"]
        assert right == (spans["score"].inputs["gold"] == 1)
        marks = {mark.name: mark.value for mark in trace.info.assessments}
        assert marks == {"gold": spans["score"].inputs["gold"], "right": right}
        assert trace.info.tags["medexam.spec_digest"] == said.spec_digest
        assert trace.info.tags["medexam.run_id"] == stored.record.run_id
        assert trace.info.execution_duration == round(1000 * said.latency_s)
        tokens = json.loads(trace.info.trace_metadata["mlflow.trace.tokenUsage"])
        assert tokens["total_tokens"] == said.prompt_tokens + said.completion_tokens


def test_what_a_strategy_asks_with_is_registered_once_and_linked_to_its_runs(run, client, uri) -> None:
    two = {"kind": "chain_of_thought", "answer_format": "guided"}
    stored = [run("zero_shot", trace_questions=0), run({"kind": "zero_shot", "orders": "cyclic"}, trace_questions=0)]
    stored += [run(two, trace_questions=0), run("longest")]
    sent = track(stored, tracking_uri=uri)
    again = track(stored, tracking_uri=uri)
    assert [one.mlflow_run_id for one in sent] == [one.mlflow_run_id for one in again]
    linked = [client.get_run(one.mlflow_run_id).data.tags.get("mlflow.linkedPrompts", "[]") for one in sent]
    names = [[(prompt["name"], prompt["version"]) for prompt in json.loads(tag)] for tag in linked]
    assert names[0] == [("traced-zero_shot-en", "1")]
    assert [name for name, _ in names[1] + names[2]] == [
        "traced-zero_shot-cyclic-en",
        "traced-chain_of_thought-guided-en-reason",
        "traced-chain_of_thought-guided-en-respond",
    ]
    assert names[3] == []
    versions = {prompt.name: len(client.search_prompt_versions(prompt.name)) for prompt in client.search_prompts()}
    assert versions == {name: 1 for prompts in names for name, _ in prompts}
    (_, _, question) = client.get_prompt_version("traced-zero_shot-en", 1).template
    assert question == {"role": "user", "content": "{{question}}"}


def test_sending_again_makes_no_second_trace(run, traces_of) -> None:
    stored = run({"kind": "zero_shot"})
    first = traces_of(stored)
    again = traces_of(stored)
    assert {key: trace.info.trace_id for key, trace in again.items()} == {
        key: trace.info.trace_id for key, trace in first.items()
    }
    assert {len(trace.info.assessments) for trace in again.values()} == {2}
    assert {len(trace.data.spans) for trace in again.values()} == {4}


def test_a_larger_sample_keeps_the_smaller_one(run, traces_of, client) -> None:
    small = traces_of(run({"kind": "zero_shot"}, trace_questions=2))
    large = traces_of(run({"kind": "zero_shot"}, trace_questions=5))
    assert (len(small), len(large)) == (2, 5)
    assert set(small) < set(large)
    (one,) = traces_of(run({"kind": "zero_shot"}, trace_questions=1)).values()
    assert one.info.tags["medexam.question"] in small
    (left,) = client.search_traces(locations=[one.info.experiment_id])
    assert left.info.trace_id == one.info.trace_id, "the traces of what was sent before are gone"


def test_what_was_answered_anew_takes_the_place_of_what_was(run, traces_of) -> None:
    stored = run({"kind": "zero_shot"})
    key = sample_keys(stored.record.questions, 1)[0]
    before = traces_of(stored)
    with stored.folder.appending() as log:
        answered = stored.folder.read_predictions()[key]
        log.append(answered.model_copy(update={"answer": 2, "reply": "{Answer: 2}"}))
    after = traces_of(stored)
    assert set(after) == set(before)
    assert after[key].info.trace_id != before[key].info.trace_id
    assert _spans(after[key])["parse"].outputs["answer"] == 2


def test_no_digest_depends_on_it(tmp_path) -> None:
    cells = [build_cells({"name": "x", "trace_questions": number}, {})[1][0] for number in (0, 7)]
    assert cells[0] != cells[1]
    plans = [plan_experiment({"name": "x", "trace_questions": n}, {}, runs_dir=tmp_path) for n in (0, 7)]
    assert len({plan.cells[0].spec_digest for plan in plans}) == 1
    assert len({plan.experiment_digest for plan in plans}) == 1


def test_all_of_few_questions_are_traced_and_a_labelled_sample_of_many(run, traces_of, client, monkeypatch) -> None:
    stored = run({"kind": "zero_shot"}, trace_questions=None)
    whole = traces_of(stored)
    assert len(whole) == len(stored.record.questions)
    assert not any("medexam.sample" in trace.info.tags for trace in whole.values())
    monkeypatch.setattr("medexam.experiments.track.payload.ALL_TRACED", 4)
    monkeypatch.setattr("medexam.experiments.track.payload.SAMPLE", 3)
    sample = traces_of(stored)
    labels = {trace.info.tags["medexam.sample"] for trace in sample.values()}
    assert (len(sample), labels) == (3, {f"a sample of 3 of {len(whole)} questions"})
    assert "Its traces are a sample of 3 of" in run_tags(stored)["mlflow.note.content"]


def test_a_trace_whose_spans_were_not_sent_is_sent_again(run, traces_of, monkeypatch) -> None:
    stored = run({"kind": "zero_shot"})

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("mlflow.tracing.client.TracingClient.log_spans", fail)
        with pytest.raises(TrackingError, match="no space left"):
            traces_of(stored)
    assert {len(trace.data.spans) for trace in traces_of(stored).values()} == {4}


def test_a_run_that_wants_no_traces_has_none(run, traces_of) -> None:
    assert traces_of(run({"kind": "zero_shot"}, trace_questions=0)) == {}


def test_guided_reasoning_is_two_calls(run, traces_of) -> None:
    traces = traces_of(run({"kind": "chain_of_thought", "answer_format": "guided"}, "Because it is so."))
    for trace in traces.values():
        spans = _spans(trace)
        assert list(spans) == ["question", "ask 1 of 2", "ask 2 of 2", "parse", "score"]
        assert spans["ask 1 of 2"].outputs["choices"][0]["message"]["content"] == "Because it is so."
        *_, begun = spans["ask 2 of 2"].inputs["messages"]
        assert begun["role"] == "assistant"
        assert begun["content"].startswith("Because it is so.")
        assert spans["parse"].outputs["rationale"] == "Because it is so."


def test_each_order_of_the_options_is_a_call_with_its_prompt(run, traces_of) -> None:
    traces = traces_of(run({"kind": "chain_of_thought", "orders": "reversed"}, "Because. {Answer: 1}"))
    for trace in traces.values():
        spans = _spans(trace)
        assert list(spans) == ["question", "ask 1 of 2", "ask 2 of 2", "choose", "score"]
        asked = [spans[f"ask {n} of 2"].inputs["messages"][-1]["content"].splitlines() for n in (1, 2)]
        options = [[line.split(". ", 1)[1] for line in lines if line[:2] in ("1.", "2.", "3.")] for lines in asked]
        assert options[0] != options[1]
        assert spans["choose"].outputs["answer"] == 1


def test_an_ensemble_chooses_by_its_members(run, traces_of) -> None:
    program = {"kind": "ensemble", "members": ["longest", {"kind": "blind", "option": 1}, "zero_shot"]}
    for trace in traces_of(run(program, "{Answer: 1}")).values():
        spans = _spans(trace)
        assert list(spans) == ["question", "choose", "score"]
        assert spans["choose"].outputs["answer"] == 1
        assert spans["choose"].inputs["norm"] == "votes"


def test_a_failed_question_is_an_error_without_a_verdict(run, traces_of) -> None:
    traces = traces_of(run({"kind": "zero_shot"}, {"error": "server"}))
    assert len(traces) == 3
    for trace in traces.values():
        assert trace.info.state.value == "ERROR"
        assert [mark.name for mark in trace.info.assessments] == ["gold"]
        spans = _spans(trace)
        assert list(spans) == ["question", "ask", "score"]
        assert spans["ask"].status.description == "LMServerError: [medexam/scripted] scripted server failure"
        assert spans["score"].outputs == {"right": None}


def test_a_control_asks_nothing(run, traces_of) -> None:
    for trace in traces_of(run({"kind": "longest"})).values():
        assert list(_spans(trace)) == ["question", "choose", "score"]


def test_passages_are_shown_with_their_scores(run, traces_of) -> None:
    pytest.importorskip("bm25s")
    program = {"kind": "retrieve_then_answer", "retriever": {"kind": "bm25", "corpus": str(CORPUS)}}
    stored = run(program, trace_questions=12)
    predictions = stored.folder.read_predictions()
    traces = traces_of(stored)
    assert len(traces) == 12
    for key, trace in traces.items():
        spans = _spans(trace)
        found = spans["retrieve"].outputs
        assert [(one["id"], one["metadata"]["score"]) for one in found] == [
            (passage.id, passage.score) for passage in predictions[key].passages
        ]
        prompt = spans["ask"].inputs["messages"][-1]["content"]
        assert all(one["page_content"] and one["page_content"] in prompt for one in found)


def test_passages_that_were_cut_are_cut_in_the_trace(run) -> None:
    pytest.importorskip("bm25s")
    program = {"kind": "retrieve_then_answer", "retriever": {"kind": "bm25", "corpus": str(CORPUS)}}
    stored = run(program, trace_questions=12)
    whole = {trace.question.key: _prompt(trace) for trace in read_traces(stored)}
    said = next(one for one in stored.folder.read_predictions().values() if one.passages)
    with stored.folder.appending() as log:
        log.append(said.model_copy(update={"passages_cut": 1}))
    cut = {trace.question.key: _prompt(trace) for trace in read_traces(stored)}
    assert {key for key in whole if whole[key] != cut[key]} == {said.question}
    assert cut[said.question][:200] == whole[said.question][:200]
    assert len(cut[said.question]) < 0.8 * len(whole[said.question])


def _prompt(trace) -> str:
    return next(step for step in trace.steps if step.name == "ask").inputs["messages"][-1]["content"]


def test_a_run_whose_data_have_changed_is_not_traced(run, traces_of, caplog) -> None:
    stored = run({"kind": "zero_shot"})
    record = dataclasses.replace(stored.record, dataset_fingerprint="0" * 64)
    stored.folder.write_record(record)
    assert traces_of(dataclasses.replace(stored, record=record)) == {}
    assert "its data have changed" in caplog.text
