"""Traces of stored calls, and the prompts that these share, in a real MLflow store, over the scripted engine."""

import json
from pathlib import Path

import pytest
import yaml

import medexam as package

CORPUS = Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"
ZERO_SHOT = {"kind": "zero_shot"}
GUIDED_THOUGHT = {"kind": "chain_of_thought", "answer_format": "guided"}
RETRIEVING = {"kind": "retrieve_then_answer", "retriever": {"kind": "bm25", "corpus": str(CORPUS)}}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`run(program, reply, trace_questions=3)` -> the folder of the run; a list of programs: those of all runs."""
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))

    def carry_out(program, reply="{Answer: 1}", *, trace_questions=3, limit=12, name="traced"):
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": reply}))
        programs = program if isinstance(program, list) else [program]
        spec = {
            "name": name,
            "dataset": {"name": "headqa_sample", "limit": limit},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "matrix": {"program": programs},
            "trace_questions": trace_questions,
        }
        found = package.run(spec, runs_dir=tmp_path / "runs", track=False, progress=False)
        return [each.folder for each in found] if isinstance(program, list) else found[-1].folder

    return carry_out


@pytest.fixture
def traces_of(track, client):
    """Send a run; its traces by question."""

    def send(folder):
        stored = client.get_run(track(folder)[folder.name])
        found = client.search_traces(locations=[stored.info.experiment_id], run_id=stored.info.run_id)
        return {trace.info.tags["medexam" + ".question"]: trace for trace in found}

    return send


def _predictions(folder):
    return {one.question: one for one in package.load_run(folder).predictions.values()}


@pytest.mark.parametrize(
    ("program", "reply", "calls"),
    [
        (ZERO_SHOT, "I would say {Answer: 1}", 1),
        (GUIDED_THOUGHT, "Because it is so.", 2),
        (RETRIEVING, "{Answer: 1}", 1),
        (ZERO_SHOT, {"error": "server"}, 1),
    ],
)
def test_a_trace_shows_the_stored_calls_and_what_came_of_them(run, traces_of, program, reply, calls) -> None:
    folder = run(program, reply)
    traces, predictions = traces_of(folder), _predictions(folder)
    assert len(traces) == 3
    for key, trace in traces.items():
        prediction, (root, *asked) = predictions[key], trace.data.spans
        assert (root.name, len(asked)) == (key, calls)
        assert {span.parent_id for span in asked} == {root.span_id}
        for span, call in zip(asked, prediction.calls, strict=True):
            assert span.inputs["messages"] == [dict(turn) for turn in call.messages]
            assert span.inputs.get("choices") == (list(call.choices) if call.choices else None)
            if call.fault is None:
                assert span.outputs["choices"][0]["message"]["content"] == call.text
            else:
                assert (span.outputs, span.status.status_code) == (call.fault, "ERROR")
        if isinstance(reply, dict):
            assert trace.info.state.value == "ERROR"
            continue
        outputs = root.outputs
        assert (outputs["answer"], outputs["right"]) == (prediction.answer, outputs["gold"] == prediction.answer)
        assert trace.info.tags["medexam" + ".right"] == str(outputs["right"]).lower()
        assert len(outputs.get("passages", ())) == len(prediction.passages or ())
        tokens = json.loads(trace.info.trace_metadata["mlflow.trace.tokenUsage"])
        assert tokens["total_tokens"] == prediction.prompt_tokens + prediction.completion_tokens
        assert trace.info.execution_duration == pytest.approx(1000 * prediction.latency_s, abs=1)


def test_a_larger_sample_keeps_the_smaller_one_and_nothing_of_what_was_sent_before_stays(
    run, traces_of, client
) -> None:
    small, large = traces_of(run(ZERO_SHOT, trace_questions=2)), traces_of(run(ZERO_SHOT, trace_questions=12))
    assert (len(small), len(large)) == (2, 12)
    assert set(small) < set(large)
    again = traces_of(run(ZERO_SHOT, trace_questions=12))
    assert {trace.info.trace_id for trace in again.values()} == {trace.info.trace_id for trace in large.values()}
    (one,) = traces_of(run(ZERO_SHOT, trace_questions=1)).values()
    (left,) = client.search_traces(locations=[one.info.experiment_id])
    assert left.info.trace_id == one.info.trace_id
    assert traces_of(run(ZERO_SHOT, trace_questions=0)) == {}


PROGRAMS = [ZERO_SHOT, GUIDED_THOUGHT, {"kind": "longest"}]


def test_what_programs_ask_with_is_registered_once_whatever_the_experiment(run, track, client) -> None:
    folders = [*run(PROGRAMS), *run(PROGRAMS, name="other")]
    sent = track(*folders)
    assert track(*folders) == sent
    linked = []
    for each in sent.values():
        tag = client.get_run(each).data.tags.get("mlflow.linkedPrompts", "[]")
        linked.append([(prompt["name"], prompt["version"]) for prompt in json.loads(tag)])
    assert linked == 2 * [[("zero_shot-en", "1")], [("chain_of_thought-guided-en", "1")], []]
    assert {prompt.name: len(client.search_prompt_versions(prompt.name)) for prompt in client.search_prompts()} == {
        name: 1 for prompts in linked for name, _ in prompts
    }
    first, *_, last = client.get_prompt_version("zero_shot-en", 1).template
    assert (first["role"], last) == ("system", {"role": "user", "content": "{{question}}"})
