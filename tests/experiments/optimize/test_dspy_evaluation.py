"""How DSPy's own `Evaluate` reads from a candidate what the evaluator has asked."""

from importlib import import_module
from weakref import WeakSet

import dspy
import pytest
from dspy.evaluate.evaluate import Evaluate

from medexam.errors import EngineError
from medexam.experiments.optimize.budget import StoppedError
from medexam.experiments.optimize.compilers import score_answer
from medexam.experiments.optimize.dspy_evaluation import CandidateProgram, evaluating_by
from medexam.programs import build_program
from medexam.specs import ZeroShotSpec


@pytest.fixture
def candidate():
    return CandidateProgram(build_program(ZeroShotSpec(kind="zero_shot"), "en"))


@pytest.fixture
def examples(sample):
    golds = [(one, sample.golds[one.key].number) for one in sample.questions[:5]]
    return [dspy.Example(question=one, answer=gold).with_inputs("question") for one, gold in golds]


@pytest.fixture
def keys(examples):
    return {example.question.key for example in examples}


def test_all_questions_are_asked_at_once_and_scored_as_they_were_answered(candidate, examples, keys, capfd) -> None:
    asked = []

    def ask(program, some):
        asked.append((program, some))
        return {one.question.key: dspy.Prediction(answer=None, score=place / 4) for place, one in enumerate(some)}

    evaluate = Evaluate(devset=examples, metric=score_answer, display_progress=True)
    with evaluating_by(ask, keys):
        found = evaluate(candidate)
        assert evaluate(candidate, devset=examples[:2]).score == 12.5
    assert asked == [(candidate.program, examples), (candidate.program, examples[:2])]
    assert found.score == 50
    assert [score for _, _, score in found.results] == [0, 0.25, 0.5, 0.75, 1]
    assert not candidate.answers
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("error", [EngineError("gone"), StoppedError("spent"), ValueError("a fault of ours")])
def test_what_goes_wrong_comes_out_as_it_is(candidate, examples, keys, error) -> None:
    def ask(program, some):
        raise error

    bootstrap = import_module("dspy.teleprompt.bootstrap")
    bar = bootstrap.tqdm
    with pytest.raises(type(error), match=str(error)), evaluating_by(ask, keys):
        Evaluate(devset=examples, metric=score_answer)(candidate)
    assert bootstrap.tqdm is bar


def test_a_traced_candidate_is_asked_by_us_on_the_validation_questions_alone(candidate, examples, keys) -> None:
    def ask(program, some):
        return {one.question.key: dspy.Prediction(answer=1, score=1.0) for one in some}

    traced = import_module("dspy.teleprompt.bootstrap_trace").bootstrap_trace_data
    lm = dspy.utils.DummyLM([{"answer": "2"}] * 2)
    with evaluating_by(ask, keys), dspy.context(lm=lm, disable_history=True):
        whole = traced(candidate, examples, metric=score_answer)
        part = traced(candidate, examples[:2], metric=score_answer, raise_on_error=False)
    assert [row["score"] for row in whole] == [1.0] * 5
    assert all("score" not in row["prediction"] for row in part)


def test_other_programs_are_evaluated_as_ever_and_nothing_stays_replaced(examples, keys) -> None:
    class Constant(dspy.Module):
        def forward(self, question):
            return dspy.Prediction(answer=question.options[0].number)

    def ask(program, some):
        raise AssertionError("not ours to ask")

    modules = [import_module(name) for name in ("dspy.teleprompt.bootstrap", "gepa.core.engine")]
    bars = [module.tqdm for module in modules]
    with evaluating_by(ask, keys):
        assert all(module.tqdm is not bar for module, bar in zip(modules, bars, strict=True))
        found = Evaluate(devset=examples, metric=score_answer)(Constant())
    assert found.score == 20 * sum(example.answer == 1 for example in examples)
    assert [module.tqdm for module in modules] == bars
    assert import_module("dspy.teleprompt.random_search").Evaluate is Evaluate


def test_no_bar_is_entered_in_the_set_that_evaluations_of_other_threads_clear(
    candidate, examples, keys, monkeypatch
) -> None:
    from tqdm import tqdm

    def ask(program, some):
        return {one.question.key: dspy.Prediction(answer=1, score=1.0) for one in some}

    class Cleared(WeakSet):
        def add(self, item) -> None:
            """What another thread clears at once."""

    monkeypatch.setattr(tqdm, "_instances", Cleared())
    with evaluating_by(ask, keys):
        assert Evaluate(devset=examples, metric=score_answer)(candidate).score == 100
        assert Evaluate(devset=examples, metric=score_answer, num_threads=2)(lambda question: dspy.Prediction(answer=1))
        assert list(import_module("dspy.teleprompt.bootstrap").tqdm.tqdm([1, 2])) == [1, 2]
        import_module("gepa.core.engine").tqdm(total=2).update(1)
