"""Traces of a run's questions and the prompts that it asked with, in a real MLflow store, over the scripted engine."""

import json
import re
from pathlib import Path

import pytest
import yaml

import medexam as package

CORPUS = Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"
BM25 = {"kind": "bm25", "corpus": str(CORPUS)}
ZERO_SHOT = {"kind": "zero_shot"}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`run(program, reply, trace_questions=3)` -> the folder of the run; a list of programs: those of all runs."""
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))

    def carry_out(program, reply="{Answer: 1}", *, trace_questions=3, limit=12, temperature=0.0):
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": reply}))
        programs = program if isinstance(program, list) else [program]
        spec = {
            "name": "traced",
            "dataset": {"name": "headqa_sample", "limit": limit},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml"), "temperature": temperature},
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


def _spans(trace):
    return {span.name: span for span in trace.data.spans}


def _predictions(folder) -> dict[str, dict]:
    lines = map(json.loads, (folder / "predictions.jsonl").read_text().splitlines())
    return {line["question"]: line for line in lines}


def test_a_trace_holds_prompt_reply_answer_and_score(run, traces_of) -> None:
    folder = run(ZERO_SHOT, "I would say {Answer: 1}", trace_questions=12)
    traces, predictions = traces_of(folder), _predictions(folder)
    assert len(traces) == 12
    rights = set()
    for key, trace in traces.items():
        said, spans = predictions[key], _spans(trace)
        assert list(spans) == ["question", "ask", "parse", "score"]
        assert {span.parent_id for span in trace.data.spans} == {None, spans["question"].span_id}
        system, told, user = spans["ask"].inputs["messages"]
        assert system == {"role": "system", "content": ""}
        assert "{Answer: [number]}" in told["content"]
        assert user["content"] == spans["question"].inputs["question"]
        assert spans["ask"].outputs["choices"][0]["message"]["content"] == said["reply"]
        assert (spans["parse"].inputs["reply"], spans["parse"].outputs["answer"]) == (said["reply"], 1)
        gold, right = spans["score"].inputs["gold"], spans["score"].outputs["right"]
        assert right is (gold == 1)
        rights.add(right)
        assert {mark.name: mark.value for mark in trace.info.assessments} == {"gold": gold, "right": right}
        tokens = json.loads(trace.info.trace_metadata["mlflow.trace.tokenUsage"])
        assert tokens["total_tokens"] == said["prompt_tokens"] + said["completion_tokens"]
        assert trace.info.execution_duration == round(1000 * said["latency_s"])
    assert rights == {True, False}


GUIDED_THOUGHT = {"kind": "chain_of_thought", "answer_format": "guided"}
REVERSED = {"kind": "chain_of_thought", "orders": "reversed"}
RETRIEVING = {"kind": "retrieve_then_answer", "retriever": BM25}
ITERATIVE = {"kind": "iterative_retrieval", "rounds": 2, "retriever": BM25}
ASKED_5 = [f"ask {number} of 5" for number in range(1, 6)]


@pytest.mark.parametrize(
    ("program", "reply", "names"),
    [
        (GUIDED_THOUGHT, "Because it is so.", ["question", "ask 1 of 2", "ask 2 of 2", "parse", "score"]),
        (REVERSED, "So. {Answer: 1}", ["question", "ask 1 of 2", "ask 2 of 2", "choose", "score"]),
        ({"kind": "longest"}, "", ["question", "choose", "score"]),
        ({"kind": "zero_shot"}, {"error": "server"}, ["question", "ask", "score"]),
        (
            {"kind": "retrieve_then_answer", "retriever": BM25},
            "{Answer: 1}",
            ["question", "retrieve", "ask", "parse", "score"],
        ),
    ],
)
def test_a_trace_has_a_span_for_each_step(run, traces_of, program, reply, names) -> None:
    folder = run(program, reply, trace_questions=2)
    traces = traces_of(folder)
    assert len(traces) == 2
    for key, trace in traces.items():
        assert [span.name for span in trace.data.spans] == names
        spans = _spans(trace)
        said = _predictions(folder)[key]
        if program is GUIDED_THOUGHT:
            assert spans["ask 1 of 2"].outputs["choices"][0]["message"]["content"] == "Because it is so."
            *_, begun = spans["ask 2 of 2"].inputs["messages"]
            assert (begun["role"], begun["content"].startswith("Because it is so.")) == ("assistant", True)
        elif program is REVERSED:
            texts = [spans[f"ask {n} of 2"].inputs["messages"][-1]["content"] for n in (1, 2)]
            first, second = (re.findall(r"(?m)^\d\. (.*)$", text) for text in texts)
            assert first == second[::-1]
        elif "ask" in names and "parse" not in names:
            assert (trace.info.state.value, [mark.name for mark in trace.info.assessments]) == ("ERROR", ["gold"])
            assert spans["ask"].status.description == "LMServerError: [medexam/scripted] scripted server failure"
            assert spans["score"].outputs == {"right": None}
        elif program is ITERATIVE:
            (asked,) = said["rounds"]
            for span, one in zip(trace.data.spans[1:3], asked, strict=True):
                assert span.inputs["queries"] == [one["query"]]
                assert [found["id"] for found in span.outputs] == [each["id"] for each in one["passages"]]
        elif program is RETRIEVING:
            found = spans["retrieve"].outputs
            assert [(one["id"], one["metadata"]["score"]) for one in found] == [
                (passage["id"], passage["score"]) for passage in said["passages"]
            ]
            prompt = spans["ask"].inputs["messages"][-1]["content"]
            assert all(one["page_content"] and one["page_content"] in prompt for one in found)


def test_passages_that_were_cut_are_cut_in_the_trace(run, traces_of) -> None:
    folder = run(RETRIEVING, trace_questions=2)

    def prompts() -> dict[str, str]:
        return {key: _spans(trace)["ask"].inputs["messages"][-1]["content"] for key, trace in traces_of(folder).items()}

    whole = prompts()
    said = next(one for key, one in _predictions(folder).items() if one["passages"] and key in whole)
    with (folder / "predictions.jsonl").open("a") as log:
        log.write(json.dumps({**said, "passages_cut": 1}) + "\n")
    cut = prompts()
    assert {key for key in whole if whole[key] != cut[key]} == {said["question"]}
    assert len(cut[said["question"]]) < 0.8 * len(whole[said["question"]])


def test_sending_again_makes_no_second_trace_and_what_was_answered_anew_replaces_what_was(run, traces_of) -> None:
    folder = run(ZERO_SHOT)
    first, again = traces_of(folder), traces_of(folder)
    assert {key: trace.info.trace_id for key, trace in again.items()} == {
        key: trace.info.trace_id for key, trace in first.items()
    }
    assert {(len(trace.info.assessments), len(trace.data.spans)) for trace in again.values()} == {(2, 4)}
    key = next(iter(first))
    with (folder / "predictions.jsonl").open("a") as log:
        log.write(json.dumps({**_predictions(folder)[key], "answer": 2, "reply": "{Answer: 2}"}) + "\n")
    after = traces_of(folder)
    assert set(after) == set(first)
    assert {at for at in first if after[at].data.spans[1].outputs != first[at].data.spans[1].outputs} == {key}
    assert _spans(after[key])["parse"].outputs["answer"] == 2


def test_a_larger_sample_keeps_the_smaller_one_and_few_questions_are_all_traced(run, traces_of, client) -> None:
    small, large = traces_of(run(ZERO_SHOT, trace_questions=2)), traces_of(run(ZERO_SHOT, trace_questions=None))
    assert (len(small), len(large)) == (2, 12)
    assert set(small) < set(large)
    (one,) = traces_of(run(ZERO_SHOT, trace_questions=1)).values()
    (left,) = client.search_traces(locations=[one.info.experiment_id])
    assert left.info.trace_id == one.info.trace_id, "the traces of what was sent before are gone"
    assert traces_of(run(ZERO_SHOT, trace_questions=0)) == {}


def test_a_run_whose_words_have_changed_is_not_traced(run, traces_of, caplog, tmp_path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: 'Choose. $form'}")
    folder = run({"kind": "zero_shot", "prompt": str(words)})
    words.write_text("en: {zero_shot: 'Choose well. $form'}")
    assert traces_of(folder) == {}
    assert "what its answers depend on has changed" in caplog.text


FALLBACK = {
    "name": "fallback",
    "steps": [
        {"use": "zero_shot"},
        {"unless": "answer", "do": [{"ask": "question, options -> answer: int", "by": "chain_of_thought"}]},
    ],
}
PROMPTS = {
    "zero_shot": (ZERO_SHOT, [""]),
    "chain_of_thought-guided": (GUIDED_THOUGHT, ["-reason", "-respond"]),
    "longest": ({"kind": "longest"}, []),
    "fallback": (FALLBACK, ["-zero_shot", "-answer.predict"]),
    "retrieve_then_answer-bm25": (RETRIEVING, [""]),
}


def test_what_a_program_asks_with_is_registered_once_and_linked_to_its_run(run, track, client) -> None:
    folders = run([program for program, _ in PROMPTS.values()], trace_questions=0, limit=2)
    sent = track(*folders)
    assert track(*folders) == sent
    linked = []
    for each in sent.values():
        tag = client.get_run(each).data.tags.get("mlflow.linkedPrompts", "[]")
        linked.append([(prompt["name"], prompt["version"]) for prompt in json.loads(tag)])
    assert linked == [[(f"traced-{name}-en{end}", "1") for end in ends] for name, (_, ends) in PROMPTS.items()]
    assert {prompt.name: len(client.search_prompt_versions(prompt.name)) for prompt in client.search_prompts()} == {
        name: 1 for prompts in linked for name, _ in prompts
    }

    def prompt(name: str) -> list:
        return client.get_prompt_version(name, 1).template

    assert prompt("traced-zero_shot-en")[-1] == {"role": "user", "content": "{{question}}"}
    assert prompt("traced-fallback-en-zero_shot") == prompt("traced-zero_shot-en")
    assert "[[ ## options ## ]]\n{{options}}" in prompt("traced-fallback-en-answer.predict")[-1]["content"]
