"""From a spec to scored run folders: what is asked, kept, and asked no second time."""

import json

import pytest

import medexam
from medexam.errors import EndpointUnreachableError, RunFolderError
from medexam.programs import EngineLM
from medexam.serve import ScriptedEngine
from scripted_engines import LAST_MADE, MADE


def read(run, name):
    return json.loads((run.folder / name).read_text())


def lines_of(run):
    return (run.folder / "predictions.jsonl").read_text().splitlines(keepends=True)


@pytest.fixture
def prompt(tmp_path):
    """`prompt("Choose.")` -> a file of words of one's own."""

    def write(words):
        path = tmp_path / "words.yaml"
        path.write_text(f"en: {{zero_shot: '{words} $form'}}")
        return str(path)

    return write


def test_a_run_is_asked_scored_and_kept(ask, spec, asked) -> None:
    (run,) = ask(spec)
    golds = medexam.load_questions("headqa_sample", limit=12).answers
    assert (run.n, len(asked.prompts), run.complete) == (12, 12, True)
    assert run.metrics.right == sum(gold == 1 for gold in golds.values())
    assert run.metrics.right + run.metrics.wrong == 12
    assert {path.name for path in run.folder.iterdir() if not path.name.startswith(".")} == {
        *("spec.json", "environment.json", "models.json", "items.parquet", "predictions.jsonl", "prompts.jsonl"),
        *("predictions.parquet", "metrics.json", "report.md"),
    }
    assert read(run, "environment.json")["engine"]["engine"] == "scripted"
    assert read(run, "environment.json")["started_at"] < read(run, "environment.json")["ended_at"]
    stored = [json.loads(line) for line in lines_of(run)]
    assert {one["spec_digest"] for one in stored} == {read(run, "spec.json")["spec_digest"]}
    assert {one["question"] for one in stored} == set(golds)
    assert "gold" not in stored[0]


def test_the_same_spec_again_asks_nothing_and_makes_what_is_missing(ask, spec, asked) -> None:
    (first,) = ask(spec)
    before = {path.name: path.read_bytes() for path in first.folder.iterdir()}
    asked.take()
    (again,) = ask(spec)
    assert (asked.prompts, again.metrics) == ([], first.metrics)
    (first.folder / "metrics.json").unlink()
    (made,) = ask(spec)
    assert (asked.prompts, made.metrics) == ([], first.metrics)
    assert {path.name: path.read_bytes() for path in first.folder.iterdir()} == before


def test_a_wider_selection_asks_the_new_questions_only(ask, spec, asked) -> None:
    ask(spec)
    narrow = asked.take()
    (wide,) = ask(spec, dataset__limit=30)
    assert (len(asked.prompts), wide.n) == (18, 30)
    assert not set(asked.take()) & set(narrow)
    (run,) = ask(spec)
    assert (asked.prompts, run.n, len(run.predictions)) == ([], 12, 12)


def test_fresh_starts_another_run_beside_the_first(ask, spec, asked) -> None:
    (first,) = ask(spec)
    asked.take()
    (second,) = ask(spec, fresh=True)
    assert (len(asked.take()), second.id) == (12, f"{first.id}-2")
    (third,) = ask(spec)
    assert (asked.prompts, third.id) == ([], second.id)


def test_other_words_are_another_run(ask, spec, prompt) -> None:
    ids = {ask(spec)[0].id, *(ask(spec, program__prompt=prompt(words))[0].id for words in ("Choose.", "Choose!"))}
    assert len(ids) == 3


def test_a_run_whose_words_or_data_were_edited_is_not_continued(ask, spec, failing, resume, prompt) -> None:
    failing("")
    (run,) = ask(spec, program__prompt=prompt("Choose."))
    prompt("Choose!")
    with pytest.raises(RunFolderError, match=r"changed \(.*words\..*restore it, or run its spec"):
        resume(run)
    (run,) = ask(spec)
    (run.folder / "spec.json").write_text(json.dumps(read(run, "spec.json") | {"dataset_fingerprint": "0" * 64}))
    with pytest.raises(RunFolderError, match=r"data have changed .*\(SHA-256 0{12} then"):
        resume(run)


def test_a_folder_of_that_name_under_another_identity_is_refused(ask, spec) -> None:
    (run,) = ask(spec)
    record = read(run, "spec.json")
    record["spec_digest"], record["identity"]["dataset"]["fingerprint"] = "0" * 12, "0" * 64
    (run.folder / "spec.json").write_text(json.dumps(record))
    with pytest.raises(RunFolderError, match="belongs to another run"):
        ask(spec)


def test_a_killed_run_of_a_matrix_is_resumed_with_its_own_questions_wherever_it_lies(
    ask, spec, asked, resume, tmp_path
) -> None:
    first, _ = ask(spec, program=["zero_shot", "few_shot"])
    record, kept = read(first, "spec.json"), lines_of(first)[:7]
    (first.folder / "predictions.jsonl").write_text("".join(kept) + '{"question": "torn')
    (first.folder / "metrics.json").unlink()
    asked.take()
    resumed = resume(medexam.load_run(first.folder.rename(tmp_path / "moved")))
    assert (len(asked.prompts), resumed.n, resumed.complete) == (5, 12, True)
    assert lines_of(resumed)[:7] == kept
    assert len({json.loads(line)["question"] for line in lines_of(resumed)}) == len(lines_of(resumed)) == 12
    assert read(resumed, "spec.json") | {"run_id": first.id} == record
    assert resumed.metrics.right == first.metrics.right


def test_cells_share_the_engine_and_are_asked_in_the_order_of_the_spec(ask, spec, asked) -> None:
    spec["matrix"] = {"program.answer_format": ["free", "guided"], "dataset.language": ["en", "es"]}
    runs = ask(spec)
    cells = [read(run, "spec.json")["cell"] for run in runs]
    shown = [(cell["dataset"]["language"], cell["program"]["answer_format"]) for cell in cells]
    assert shown == [("en", "free"), ("es", "free"), ("en", "guided"), ("es", "guided")]
    assert set(runs[0].predictions) == set(runs[1].predictions)
    english = ["Which" in prompt or "following" in prompt or " the " in prompt for prompt in asked.prompts]
    assert english[:12].count(True) > 6
    assert set(asked.prompts[:12]) == set(asked.prompts[24:36])
    assert set(asked.prompts[12:24]) == set(asked.prompts[36:])


def test_a_program_without_a_model_needs_none(ask, spec) -> None:
    runs = ask(spec, program=["longest", "random"])
    assert [(run.model, run.n, run.metrics.unanswered) for run in runs] == [(None, 12, 0)] * 2


def test_an_endpoint_that_does_not_answer_stops_the_run_before_it_begins(ask, spec) -> None:
    model = {"engine": "vllm", "name": "x", "endpoints": ["http://127.0.0.1:9/v1"]}
    with pytest.raises(EndpointUnreachableError, match=r"127\.0\.0\.1:9"):
        ask(spec | {"model": model})


def test_a_prompt_that_is_too_long_is_unanswered_and_a_failure_is_pending(ask, spec, replies, asked, failing) -> None:
    for _ in "12":
        (run,) = ask(spec | {"model": replies({"*": {"error": "context"}}, "context")})
        assert (run.metrics.unanswered, run.metrics.failed, run.complete) == (12, 0, True)
    assert len(asked.take()) == 12, "what is unanswered is asked no second time"
    first = medexam.load_questions("headqa_sample", limit=12)[0].stem
    failing(first)
    (run,) = ask(spec)
    assert (run.n, run.metrics.failed, run.complete) == (11, 1, False)
    failing()
    asked.take()
    (run,) = ask(spec)
    assert (run.n, run.complete, len(asked.prompts)) == (12, True, 1)


@pytest.mark.parametrize("name", ["openai/gpt-5", "openai/o3-mini", "openai/gpt-4o"])
def test_no_name_of_a_model_changes_its_settings(name) -> None:
    settings = EngineLM(ScriptedEngine({}), name, temperature=0.5, max_tokens=2048, seed=3).kwargs
    assert (settings["max_tokens"], settings["temperature"], settings["seed"]) == (2048, 0.5, 3)


def test_as_many_questions_are_in_flight_as_the_engine_takes(ask, spec) -> None:
    in_flight, seen = set(), []

    class Counting(ScriptedEngine):
        concurrency = 4

        async def reply(self, dialogue):
            in_flight.add(id(dialogue))
            seen.append(len(in_flight))
            generation = await super().reply(dialogue)
            in_flight.discard(id(dialogue))
            return generation

    MADE.append(Counting({"*": {"text": "{Answer: 1}", "wait_s": 0.01}}))
    ask(spec | {"model": {"engine": LAST_MADE}})
    assert (max(seen), len(seen)) == (4, 12)


STEPS = {"name": "steps", "steps": [{"ask": "question, options -> answer: int", "by": "chain_of_thought"}]}
KIND = {"kind": "signature", "signature": "question, options -> answer: int", "module": "chain_of_thought"}


def test_two_ways_to_ask_the_same_get_the_same_from_a_server_whose_replies_are_hashes(
    ask, spec, hash_server, prompt, tmp_path
) -> None:
    spec["model"] = {"engine": "vllm", "endpoints": [hash_server.address], "max_tokens": 64}

    def answers(**settings):
        hash_server.prompts.clear()
        (run,) = ask(spec, **settings)
        asked = sorted(text for text in hash_server.prompts if "\n2. " in text)
        return {key: one.answer for key, one in run.predictions.items()}, asked, run

    by_kind, asked_by_kind, _ = answers(program=KIND)
    by_steps, asked_by_steps, _ = answers(program=STEPS, fresh=True)
    assert len(asked_by_steps) >= 12
    assert (by_kind, asked_by_kind) == (by_steps, asked_by_steps)
    at_once, asked_at_once, run = answers()
    assert len(set(at_once.values())) > 1
    (run.folder / "predictions.jsonl").write_text("".join(lines_of(run)[:5]))
    resumed, asked_later, _ = answers()
    assert resumed == at_once
    assert set(asked_later) < set(asked_at_once)
    changed, asked_otherwise, _ = answers(program__prompt=prompt("Choose well."))
    assert changed != at_once
    assert not set(asked_otherwise) & set(asked_at_once)


def received(server):
    """The texts that a server was to continue, each with the temperature and the seed of every reply."""
    for path, body in server.requests:
        if path.endswith("/completions"):
            chat = "messages" in body
            for text in [server.render(body["messages"])] if chat else server.texts(body):
                yield text, body.get("temperature"), body.get("seed", 0)


def stored(server, call):
    """The same of a stored call."""
    *turns, last = call.messages
    text = server.render(turns) + last["content"] if last["role"] == "assistant" else server.render(call.messages)
    return text, call.sampling["temperature"], call.sampling["seed"]


@pytest.mark.parametrize(
    "program",
    [
        {"kind": "few_shot", "samples": 3},
        {"kind": "chain_of_thought", "answer_format": "guided", "orders": "reversed"},
        STEPS,
    ],
    ids=str,
)
def test_stored_calls_are_what_the_server_received(ask, spec, hash_server, program) -> None:
    hash_server.requests.clear()
    model = {"engine": "vllm", "endpoints": [hash_server.address], "temperature": 0.7, "seed": 3}
    (run,) = ask(spec | {"model": model, "program": program})
    stems = [question.stem for question in medexam.load_questions("headqa_sample", limit=12)]
    asked = [sent for sent in received(hash_server) if any(stem in sent[0] for stem in stems)]
    calls = [call for prediction in run.predictions.values() for call in prediction.calls]
    assert sorted(asked) == sorted(stored(hash_server, call) for call in calls)
