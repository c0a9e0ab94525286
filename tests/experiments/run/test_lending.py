"""Answers of an equal digest and model are not paid for twice, and a model that is swapped meanwhile is seen."""

import asyncio
import json
from operator import itemgetter

import dspy
import pytest
from wire_server import serving

import medexam
from hash_server import HashServer
from medexam.errors import RunFolderError


def lines_of(run):
    return [json.loads(line) for line in (run.folder / "predictions.jsonl").read_text().splitlines()]


def test_a_run_of_another_name_lends_its_answers(ask, spec, asked, caplog, tmp_path) -> None:
    (first,) = ask(spec)
    asked.take()
    wider = spec | {"name": "wider", "dataset": {"name": "headqa_sample", "limit": 30}}
    (cell,) = medexam.plan(wider, runs_dir=tmp_path / "runs").cells
    assert (cell["owed"], cell["questions"]) == (18, 30)
    (run,) = ask(wider)
    assert (len(asked.take()), run.n, run.id == first.id) == (18, 30, False)
    lent = [line for line in lines_of(run) if line["question"] in first.predictions]
    assert {line["question"]: line for line in lent} == {line["question"]: line for line in lines_of(first)}
    (whole,) = ask(spec | {"name": "same"})
    assert (asked.take(), whole.metrics, whole.model, whole.complete) == ([], first.metrics, first.model, True)
    (fresh,) = ask(spec | {"name": "anew"}, fresh=True)
    assert (len(asked.take()), fresh.n) == (12, 12)


def test_failures_are_not_lent(ask, spec, asked) -> None:
    asked.fails = lambda prompt: len(asked.prompts) == 3
    ask(spec)
    asked.fails = lambda _: False
    asked.take()
    (run,) = ask(spec | {"name": "other"})
    assert (len(asked.take()), run.n, run.metrics.failed) == (1, 12, 0)


@pytest.fixture
def served(ask, spec):
    """`served(wire, name="other")` -> a run of the spec on a server that answers so."""

    def run(wire, **settings):
        with serving(wire):
            model = {"engine": "vllm", "endpoints": [wire.address]}
            return ask(spec | {"model": model, "name": settings.pop("name", "served")}, **settings)[0]

    return run


def test_another_models_answers_are_not_lent(served, caplog) -> None:
    first = served(HashServer())
    same, drifted = served(HashServer(), name="same"), HashServer(drift=1.0)
    key = itemgetter("question")
    assert sorted(lines_of(same), key=key) == sorted(lines_of(first), key=key)
    other = served(drifted, name="another", dataset__limit=13)
    assert (other.stored.mixed, len(drifted.prompts) >= 13) == (False, True)
    assert "another model gave them" in caplog.text


def swapping(at):
    """A server whose model is another one once it was asked `at` questions."""

    class Swapping(HashServer):
        def reply(self, path, body):
            self.drift = 1.0 if len(self.prompts) >= at else 0.0
            return super().reply(path, body)

    return Swapping()


def test_a_model_that_is_swapped_meanwhile_is_counted_where_the_score_stands(served, caplog) -> None:
    run = served(swapping(7))
    assert "another model answers now than at the start" in caplog.text
    assert (run.stored.mixed, run.stored.answerers[0].doubtful, run.n) == (True, 12, 12)
    assert "12 of them perhaps of another model" in (run.folder / "report.md").read_text()
    assert not served(swapping(1000), fresh=True).stored.mixed


def test_an_evaluation_looks_which_model_answers(tmp_path) -> None:
    devset = [dspy.Example(question=f"q{n:04d}", answer="1").with_inputs("question") for n in range(16)]

    def evaluate(wire, size):
        with serving(wire), dspy.context(lm=(lm := medexam.lm("vllm", endpoints=wire.address))):
            evaluation = medexam.Evaluate(devset=devset[:size], metric=lambda *_: 1.0, runs_dir=tmp_path, track=False)
            try:
                return evaluation(dspy.Predict("question -> answer"))
            finally:
                asyncio.run(lm.live_engine.aclose())

    assert evaluate(HashServer(), 6).n == 6
    with pytest.raises(RunFolderError, match="fresh=True"):
        evaluate(HashServer(drift=1.0), 16)
    assert evaluate(HashServer(), 16).n == 16
