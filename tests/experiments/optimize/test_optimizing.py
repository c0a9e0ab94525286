"""From a spec with an optimizer to the best program on disk, and to a run that asks with it."""

import json

import pytest
import yaml

import medexam


@pytest.mark.parametrize("kind", ["labeled", "bootstrap", "random_search"])
def test_trials_are_scored_and_the_best_program_is_written(optimize, kind, sample) -> None:
    done = optimize({"optimizer.kind": kind})
    assert (done.record["ending"], done.record["why"]) == ("complete", None)
    assert [trial["number"] for trial in done.trials] == list(range(len(done.trials)))
    assert (done.trials[0]["name"], done.trials[0]["demos"]) == ("as written", 0)
    assert {trial["demos"] for trial in done.trials[1:]} == {3}
    dev = {question.key for question in sample.questions if question.exam.year == 2015}
    assert (done.record["train"], done.record["validation"], done.record["tested"]) == (48, len(dev), 48)
    for trial in done.trials:
        said = {line["question"]: line["answer"] for line in done.predictions(trial["number"])}
        assert said.keys() == dev
        assert trial["right"] == sum(answer == sample.golds[question].number for question, answer in said.items())
        assert (trial["n"], trial["score"]) == (24, trial["right"] / 24)
    best = json.loads((done.folder / "program.json").read_text())
    assert best == done.program(done.best["number"])
    report = (done.folder / "report.md").read_text()
    assert f"| {done.best['number']} | {done.best['name']} (best) |" in report
    (first, *_) = best["answer"]["demos"] or [None]
    assert first is None or f"Demonstration 1:\n\n```text\nquestion: {first['question']['stem']}\n1. " in report


def test_demonstrations_are_training_questions_that_were_answered_right(optimize, sample) -> None:
    done = optimize({"optimizer.kind": "bootstrap"})
    demos = done.program(1)["answer"]["demos"]
    assert len(demos) == 3
    for demo in demos:
        assert demo["question"]["exam"]["year"] in (2013, 2014)
        assert demo["answer"] == sample.golds[demo["question"]["key"]].number
        assert demo.keys() == {"question", "answer"}


def test_reasoning_is_bootstrapped_with_its_answer(optimize, sample, tmp_path) -> None:
    replies = {one.stem: f"Reasons for it.\n\n{{Answer: {sample.golds[one.key].number}}}" for one in sample.questions}
    (tmp_path / "reasons.yaml").write_text(yaml.safe_dump(replies, allow_unicode=True, width=10**6))
    program = {"program.kind": "chain_of_thought", "model.path": str(tmp_path / "reasons.yaml")}
    done = optimize({"optimizer.kind": "bootstrap", **program})
    assert [demo["rationale"] for demo in done.program(1)["rationale"]["demos"]] == ["Reasons for it."] * 3


def test_calls_are_counted_and_never_made_twice(optimize, document, listening) -> None:
    engine = listening(document)
    done = optimize(spec=document)
    asked = [str(dialogue.messages) for dialogue in engine.dialogues]
    assert done.record["calls"] == len(asked) == len(set(asked))
    assert done.record["calls"] < sum(trial["calls"] for trial in done.trials) + 4 * 8
    assert vars(optimize(spec=document)) == vars(done)
    assert len(engine.dialogues) == len(asked)


def test_a_budget_of_calls_is_kept_exactly_and_a_larger_one_tries_more(optimize) -> None:
    few = optimize({"optimizer.max_calls": 70})
    assert (few.record["ending"], few.record["candidates"], len(few.trials)) == ("complete", 2, 2)
    assert few.record["calls"] <= 70
    more = optimize({"optimizer.max_calls": 110})
    assert (more.folder, len(more.trials)) == (few.folder, 3)
    assert more.record["calls"] <= 110
    everything, whole = optimize(), optimize(fresh=True)
    assert (everything.folder, everything.trials) == (few.folder, whole.trials)
    assert whole.folder != few.folder


def test_a_budget_of_tokens_ends_with_the_best_so_far_and_a_larger_one_continues(optimize) -> None:
    whole = optimize()
    half = whole.record["tokens"] // 2
    done = optimize({"optimizer.max_tokens": half}, fresh=True)
    assert (done.record["ending"], "tokens" in done.record["why"]) == ("budget", True)
    assert 0 < done.record["tokens"] <= half
    assert (done.folder / "program.json").exists()
    more = optimize({"optimizer.max_tokens": 10**9})
    assert (more.record["ending"], more.folder, more.trials) == ("complete", done.folder, whole.trials)
    assert [more.record[name] for name in ("calls", "tokens")] == [whole.record[name] for name in ("calls", "tokens")]


def test_exam_score_takes_a_third_for_a_wrong_answer(optimize) -> None:
    trial = optimize({"optimizer.kind": "labeled", "optimizer.metric": "exam_score"}).trials[0]
    wrong = trial["n"] - trial["right"] - trial["unanswered"]
    assert trial["score"] == pytest.approx((trial["right"] - wrong / 3) / trial["n"])


@pytest.mark.parametrize("kind", ["random_search", pytest.param("knn", marks=pytest.mark.nightly)])
def test_a_run_asks_with_the_program_that_was_found_wherever_it_lies(finished, document, tmp_path, kind) -> None:
    if kind == "knn":
        pytest.importorskip("sentence_transformers")
    done = finished(kind)
    settings = {"runs_dir": tmp_path / "runs", "dataset__split": "dev"}
    loaded = {**settings, "program__load": str(done.place(1))}
    (run,) = medexam.run(document, **loaded, track=False, progress=False)
    assert (run.metrics.right, run.program) == (done.trials[1]["right"], "zero_shot-optimized")
    (plan,) = medexam.plan(document, **loaded).cells
    assert len(plan["prompt"]) == 3 + 2 * done.trials[1]["demos"] == 9
    assert medexam.plan(document, **settings).cells[0]["spec_digest"] != plan["spec_digest"]
    moved = done.place(1).rename(tmp_path / "moved")
    assert medexam.plan(document, **settings, program__load=str(moved)).cells[0]["spec_digest"] == plan["spec_digest"]
    if kind == "knn":
        state = json.loads((moved / "program.json").read_text())
        assert (len(state["answer"]["demos"]), state["metadata"]["medexam"]["nearest"]["k"]) == (48, 3)


def test_the_plan_counts_what_is_known_of_its_calls(document, medexam, tmp_path) -> None:
    (tmp_path / "spec.yaml").write_text(json.dumps(document))
    code, out, _ = medexam("optimize", "spec.yaml", "--plan", "--json", "--set", "optimizer.kind=labeled")
    plan = json.loads(out)
    assert (code, plan["candidates"], plan["calls_per_trial"], plan["most_calls"]) == (0, 2, 24, 48)
    assert (plan["train"], plan["validation"], plan["tested"], plan["dropped"]) == (48, 24, 48, [])
