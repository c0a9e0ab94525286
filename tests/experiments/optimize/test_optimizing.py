"""From a spec with an optimizer to the best program on disk, over the scripted engine."""

import json

import pytest
import yaml

from medexam.experiments import Runner, plan_document, plan_experiment
from medexam.experiments.optimize.folder import CALLS
from medexam.experiments.optimize.optimization import OptimizationEnding
from watching import Silent


def _calls(optimization):
    return [json.loads(line) for line in (optimization.folder.path / CALLS).read_text().splitlines()]


@pytest.mark.parametrize("kind", ["labeled", "bootstrap", "random_search"])
def test_trials_are_scored_and_the_best_program_is_written(run_optimizer, kind, sample, key) -> None:
    done, _ = run_optimizer({"optimizer.kind": kind})
    assert done.ending is OptimizationEnding.COMPLETE
    assert [trial.number for trial in done.trials] == list(range(len(done.trials)))
    assert done.trials[0].name == "as written"
    assert done.trials[0].demos == 0
    assert all(trial.demos <= 3 and trial.n == 24 for trial in done.trials)
    assert {trial.demos for trial in done.trials[1:]} == {3}
    dev = {question.key for question in sample.questions if question.exam.year == 2015}
    for trial in done.trials:
        lines = (done.folder.programs / trial.digest / "predictions.jsonl").read_text().splitlines()
        said = {line["question"]: line["answer"] for line in map(json.loads, lines)}
        assert said.keys() == dev
        assert trial.right == sum(answer == key[question].number for question, answer in said.items())
        assert trial.score == trial.right / 24
    assert {path.name for path in done.folder.path.iterdir() if not path.name.startswith(".")} >= {
        "optimization.json",
        "calls.jsonl",
        "trials",
        "trials.json",
        "program.json",
        "demonstrations.md",
        "report.md",
    }


def test_demonstrations_are_training_questions_that_were_answered_right(run_optimizer, key) -> None:
    done, _ = run_optimizer({"optimizer.kind": "bootstrap"})
    state = json.loads((done.folder.programs / done.trials[1].digest / "program.json").read_text())
    demos = state["respond"]["demos"]
    assert len(demos) == 3
    for demo in demos:
        assert demo["question"]["exam"]["year"] in (2013, 2014)
        assert demo["answer"] == key[demo["question"]["key"]].number
        assert demo.keys() == {"question", "answer"}


def test_reasoning_is_bootstrapped_with_its_answer(run_optimizer, document, sample, key, tmp_path) -> None:
    replies = {
        question.stem: f"Reasons for it.\n\n{{Answer: {key[question.key].number}}}" for question in sample.questions
    }
    path = tmp_path / "reasons.yaml"
    path.write_text(yaml.safe_dump(replies, allow_unicode=True, width=10**6))
    done, _ = run_optimizer(
        {"optimizer.kind": "bootstrap", "program.kind": "chain_of_thought", "model.path": str(path)},
    )
    assert done.best is not None
    state = json.loads((done.folder.programs / done.trials[1].digest / "program.json").read_text())
    assert [demo["rationale"] for demo in state["respond"]["demos"]] == ["Reasons for it."] * 3


def test_calls_are_kept_counted_and_never_made_twice(run_optimizer) -> None:
    done, watcher = run_optimizer()
    calls = _calls(done)
    assert len(calls) == done.spent.calls == watcher.budget.calls
    assert sum(call["tokens"] for call in calls) == done.spent.tokens
    assert len({call["key"] for call in calls}) == len(calls)
    assert done.beside.calls == len(calls) - sum(trial.calls for trial in done.trials)
    again, second = run_optimizer()
    assert again == done
    assert not second.answers


def test_a_budget_of_calls_is_kept_exactly(run_optimizer) -> None:
    done, watcher = run_optimizer({"optimizer.max_calls": 70})
    assert done.spent.calls <= 70
    assert watcher.budget.calls == done.spent.calls
    assert len(done.trials) == 2
    assert done.ending is OptimizationEnding.COMPLETE


def test_a_budget_of_tokens_ends_with_the_best_so_far(run_optimizer) -> None:
    whole, _ = run_optimizer()
    done, _ = run_optimizer({"optimizer.max_tokens": whole.spent.tokens // 2}, fresh=True)
    assert done.ending is OptimizationEnding.BUDGET
    assert "tokens" in (done.why or "")
    assert 0 < done.spent.tokens <= whole.spent.tokens // 2
    more, _ = run_optimizer({"optimizer.max_tokens": 10**9})
    assert more.ending is OptimizationEnding.COMPLETE
    assert more.folder == done.folder
    assert more.trials == whole.trials
    assert more.spent.calls == whole.spent.calls
    assert len({call["key"] for call in _calls(more)}) == more.spent.calls


def test_minutes_that_are_over_end_it(run_optimizer) -> None:
    done, _ = run_optimizer({"optimizer.max_minutes": 1e-7})
    assert done.ending is OptimizationEnding.BUDGET
    assert done.trials == ()
    assert "minutes" in (done.why or "")
    assert not (done.folder.path / "program.json").exists()


def test_exam_score_takes_a_third_for_a_wrong_answer(run_optimizer) -> None:
    done, _ = run_optimizer({"optimizer.kind": "labeled", "optimizer.metric": "exam_score"})
    trial = done.trials[0]
    wrong = trial.n - trial.right - trial.unanswered
    assert trial.score == pytest.approx((trial.right - wrong / 3) / trial.n)


def test_the_nearest_training_questions_are_shown(finished) -> None:
    pytest.importorskip("sentence_transformers")
    done = finished("knn")
    assert done.trials[1].demos == 3
    state = json.loads((done.folder.programs / done.trials[1].digest / "program.json").read_text())
    assert len(state["program.respond"]["demos"]) == 48
    assert state["metadata"]["medexam"]["nearest"] == {"k": 3, "encoder": "minilm"}


@pytest.mark.parametrize("kind", ["random_search", "knn"])
def test_a_run_asks_with_the_program_that_was_found(finished, document, tmp_path, kind) -> None:
    pytest.importorskip("sentence_transformers")
    done = finished(kind)
    best = done.trials[1]
    loaded = {"program.load": str(done.folder.programs / best.digest), "dataset.split": "dev"}
    plan = plan_experiment(document, loaded, runs_dir=tmp_path / "runs")
    (run,), _ = Runner(plan, Silent()).run()
    assert run.metrics.right == best.right
    assert run.program == "zero_shot-optimized"
    assert len(plan_document(plan)[0]["prompt"]) == 3 + 2 * best.demos
    written = plan_experiment(document, {"dataset.split": "dev"}, runs_dir=tmp_path / "runs")
    assert written.cells[0].spec_digest != plan.cells[0].spec_digest
    moved = tmp_path / "moved"
    (done.folder.programs / best.digest).rename(moved)
    again = plan_experiment(document, {**loaded, "program.load": str(moved)}, runs_dir=tmp_path / "runs")
    assert again.cells[0].spec_digest == plan.cells[0].spec_digest
