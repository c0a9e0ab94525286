"""`medexam.Evaluate` beside `dspy.Evaluate`: the same numbers, and every answer kept as it comes."""

import asyncio
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import dspy
import httpx
import pytest
from dspy.utils.dummies import DummyLM

import medexam
from dspy_examples import build_devset, exact
from medexam.errors import EngineError, SpecError

TOLD = 120


class Guess(dspy.Module):
    """A module of one's own, with a predictor; it raises for a question that ends with `boom`."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict("question -> answer")
        self.asked = []

    def forward(self, question):
        self.asked.append(question)
        if question.endswith("boom"):
            raise KeyError("boom")
        return self.answer(question=question)


def graded(example, prediction, trace=None):
    return dspy.Prediction(score=0.25 * len(prediction.answer), feedback=f"wanted {example.answer}")


def build_model(size, **more):
    return DummyLM({f"q{n:04d}": {"answer": str(n % 2)} for n in range(size)} | more)


@pytest.fixture
def evaluate(tmp_path):
    """`medexam.Evaluate` with runs in a folder of the test's own."""

    def make(devset, metric=exact, **settings):
        return medexam.Evaluate(
            devset=devset, metric=metric, **{"runs_dir": tmp_path / "runs", "track": False, **settings}
        )

    return make


@pytest.fixture
def model():
    with dspy.context(lm=build_model(TOLD)):
        yield


@pytest.mark.usefixtures("model")
def test_it_gives_the_numbers_of_dspys_own(evaluate) -> None:
    devset, program = build_devset(TOLD), dspy.Predict("question -> answer")
    theirs, ours = dspy.Evaluate(devset=devset, metric=exact, num_threads=4)(program), evaluate(devset)(program)
    assert isinstance(ours, dspy.evaluate.EvaluationResult)
    assert ours.score == theirs.score
    assert [(example, dict(prediction), score) for example, prediction, score in ours.results] == [
        (example, dict(prediction), score) for example, prediction, score in theirs.results
    ]
    assert (ours.n, ours.pending, ours.faults) == (TOLD, 0, 0)
    low, high = ours.interval
    assert low < ours.score < high
    stored = evaluate(devset)(program)
    assert [(dict(prediction), score) for _, prediction, score in stored.results] == [
        (dict(prediction), score) for _, prediction, score in ours.results
    ]


@pytest.mark.usefixtures("model")
def test_only_new_examples_are_asked_and_metrics_may_return_feedback(evaluate) -> None:
    first, wider, narrower = Guess(), Guess(), Guess()
    runs = [evaluate(build_devset(n))(program) for n, program in ((5, first), (8, wider), (3, narrower))]
    assert [run.n for run in runs] == [5, 8, 3]
    assert [len(program.asked) for program in (first, wider, narrower)] == [5, 3, 0]
    devset = build_devset(6)
    theirs, ours = dspy.Evaluate(devset=devset, metric=graded)(Guess()), evaluate(devset, graded)(Guess())
    assert ours.score == theirs.score == 25.0
    assert ours.results[0][2].feedback == evaluate(devset, graded)(Guess()).results[0][2].feedback == "wanted 0"


def test_a_reply_that_cannot_be_parsed_scores_as_dspys_does(evaluate) -> None:
    devset, program = build_devset(4), dspy.Predict("question -> answer: int")
    answers = {f"q{n:04d}": {"answer": "none" if n == 1 else str(n)} for n in range(4)}
    devset = [example.copy(answer=int(example.answer)) for example in devset]
    with dspy.context(lm=DummyLM(answers), adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
        theirs, ours = dspy.Evaluate(devset=devset, metric=exact)(program), evaluate(devset)(program)
    assert (ours.score, ours.n, ours.pending) == (theirs.score, 4, 0)
    assert ours.run.metrics.unanswered == 1


@pytest.mark.usefixtures("model")
def test_an_exception_is_counted_apart_and_pending(evaluate, capsys) -> None:
    devset = [*build_devset(4), dspy.Example(question="q0000 boom", answer="0").with_inputs("question")]
    ours = evaluate(devset)(Guess())
    assert (ours.score, ours.n, ours.pending, ours.faults) == (50.0, 4, 1, 1)
    assert ours.results[-1][2] is None
    assert "test_evaluations.py" in ours.run.stored.failures[0]["example"]
    assert "1 of 5 examples are pending" in capsys.readouterr().err
    # By request it is scored as DSPy scores it, and counted apart all the same.
    theirs = dspy.Evaluate(devset=devset, metric=exact)(Guess())
    scored = evaluate(devset, failure_score=0.0)(Guess())
    assert (scored.score, scored.n, scored.pending, scored.faults) == (theirs.score, 5, 0, 1)


@pytest.mark.usefixtures("model")
def test_a_metric_that_raises_or_gives_no_number_is_a_fault(evaluate) -> None:
    def picky(example, prediction, trace=None):
        if example.question == "q0001":
            raise ValueError("no")
        return None if example.question == "q0002" else 1

    ours = evaluate(build_devset(4), picky)(dspy.Predict("question -> answer"))
    assert (ours.score, ours.n, ours.faults) == (100.0, 2, 2)
    assert {failure["kind"] for failure in ours.run.stored.failures} == {"ValueError", "MetricError"}


@pytest.mark.usefixtures("model")
def test_a_servers_failure_is_pending_and_no_fault(evaluate) -> None:
    away = dspy.LM("openai/away", api_base="http://127.0.0.1:9/v1", api_key="none", num_retries=0, cache=False)

    class Flaky(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.answer = dspy.Predict("question -> answer")

        def forward(self, question):
            if question != "q0001":
                return self.answer(question=question)
            with dspy.context(lm=away):
                return self.answer(question=question)

    for settings in ({}, {"failure_score": 0.0}):
        ours = evaluate(build_devset(4), **settings)(Flaky())
        assert (ours.n, ours.pending, ours.faults, ours.results[1][2]) == (3, 1, 0, None)
        assert ours.run.stored.failures[0]["boundary"] == "network"
    with dspy.context(lm=away), pytest.raises(EngineError, match="no example is scored"):
        evaluate(build_devset(4))(dspy.Predict("question -> answer"))


@pytest.mark.usefixtures("model")
def test_another_module_metric_or_model_is_another_run(evaluate) -> None:
    devset, program = build_devset(4), dspy.Predict("question -> answer")
    first = evaluate(devset)(program)
    told = program.deepcopy()
    told.demos = [dspy.Example(question="q", answer="0")]
    with dspy.context(lm=DummyLM({"q": {"answer": "0"}})):
        other_model = evaluate(devset)(program)
    others = [evaluate(devset)(told), evaluate(devset, graded)(program), other_model]
    assert len({each.run.id for each in (first, *others)}) == 4
    assert evaluate(devset)(program.deepcopy()).run.id == first.run.id
    assert evaluate(devset, fresh=True)(program).run.id == f"{first.run.id}-2"


@pytest.mark.usefixtures("model")
def test_a_constant_that_is_read_from_a_file_is_part_of_the_module_and_a_connection_is_refused(
    evaluate, tmp_path, monkeypatch
) -> None:
    (tmp_path / "own_prompt.py").write_text(
        "import pathlib, dspy\n"
        "PROMPT = pathlib.Path(__file__).with_name('prompt.txt').read_text()\n"
        "class Own(dspy.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.answer = dspy.Predict('question -> answer')\n"
        "    def forward(self, question):\n"
        "        return self.answer(question=question)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    ids = []
    for prompt in ("think", "think hard", "think"):
        (tmp_path / "prompt.txt").write_text(prompt)
        sys.modules.pop("own_prompt", None)
        module = importlib.import_module("own_prompt")
        ids.append(evaluate(build_devset(2))(module.Own()).run.id)
    assert (ids[0] == ids[2], ids[0] == ids[1]) == (True, False)
    held = module.Own()
    held.client = httpx.Client()
    with pytest.raises(SpecError, match=r"httpx\.Client cannot be told .* keep it in a module-level variable"):
        evaluate(build_devset(2))(held)


@pytest.mark.usefixtures("model")
def test_it_can_be_awaited_and_writes_what_dspys_own_writes(evaluate, tmp_path) -> None:
    devset, program = build_devset(5), dspy.Predict("question -> answer")
    paths = {
        name: {"save_as_csv": tmp_path / f"{name}.csv", "save_as_json": tmp_path / f"{name}.json"} for name in "ab"
    }
    dspy.Evaluate(devset=devset, metric=exact, **paths["a"])(program)
    assert asyncio.run(evaluate(devset, **paths["b"]).acall(program)).n == 5
    assert paths["a"]["save_as_csv"].read_text() == paths["b"]["save_as_csv"].read_text()
    assert json.loads(paths["a"]["save_as_json"].read_text()) == json.loads(paths["b"]["save_as_json"].read_text())


@pytest.mark.usefixtures("model")
def test_limits_end_the_asking(evaluate, capsys) -> None:
    devset, program = build_devset(40), dspy.Predict("question -> answer")
    ours = evaluate(devset, limits=medexam.Limits(calls=7), num_threads=1)
    first = ours(program)
    assert (first.n, first.pending, first.stop) == (7, 33, "calls")
    assert "33 of 40 examples are pending (calls)" in capsys.readouterr().err
    assert (ours(program).n, evaluate(devset)(program).n) == (14, 40)
    with pytest.raises(EngineError, match="no example is scored"):
        evaluate(devset, limits=medexam.Limits(minutes=0.0), fresh=True)(program)


KILLED = """
import os, pathlib, sys, time, dspy, medexam
sys.path.insert(0, sys.argv[1])
from test_evaluations import build_model
from dspy_examples import build_devset, exact

class Dying(dspy.Module):
    def __init__(self):
        super().__init__()
        self.answer = dspy.Predict("question -> answer")

    def forward(self, question):
        with open("asked.txt", "a") as file:
            file.write(question + "\\n")
        lines = sum(path.read_bytes().count(b"\\n") for path in pathlib.Path("runs").glob("*/predictions.jsonl"))
        time.sleep(0.2)  # longer than answers take to reach the disk, eight at a time
        if lines >= int(os.environ["DIES_AT"]):
            os._exit(9)
        return self.answer(question=question)

dspy.configure(lm=build_model(120))
evaluate = medexam.Evaluate(devset=build_devset(120), metric=exact, name="killed", runs_dir="runs", num_threads=8)
print(evaluate(Dying()).score)
"""


@pytest.mark.nightly
def test_an_evaluation_that_is_killed_comes_out_as_others(tmp_path) -> None:
    (tmp_path / "script.py").write_text(KILLED)
    command = [sys.executable, "script.py", str(Path(__file__).parent)]

    def run(dies_at):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DIES_AT": str(dies_at)}
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)

    assert [run(dies_at).returncode for dies_at in (20, 60)] == [9, 9]
    done = run(1000)
    with dspy.context(lm=build_model(120)):
        theirs = dspy.Evaluate(devset=build_devset(120), metric=exact)(dspy.Predict("question -> answer"))
    assert float(done.stdout) == theirs.score, done.stderr
    (log,) = (tmp_path / "runs").glob("*/predictions.jsonl")
    keys = [json.loads(line)["question"] for line in log.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 120
    asked = len((tmp_path / "asked.txt").read_text().splitlines())
    assert asked < 2 * 120, "what was answered before is asked no second time"
