"""Calls that a module makes in DSPy's threads count at the model; a module is called as DSPy calls it."""

import logging

import dspy
import pytest
from dspy.utils.dummies import DummyLM

import medexam
from dspy_examples import build_devset, exact

pytestmark = pytest.mark.filterwarnings("ignore:Implementing custom LMs:DeprecationWarning")
COUNT = 40


class Counted(DummyLM):
    """A model that counts its calls, and tells tokens."""

    def __init__(self) -> None:
        super().__init__({"q": {"answer": "1"}})
        self.calls = 0

    def copy(self, **more):
        return self

    def forward(self, *arguments, **more):
        self.calls += 1
        return super().forward(*arguments, **more)


class Thrice(dspy.Module):
    """Asks three times, in one of the ways that DSPy and Python have."""

    def __init__(self, way) -> None:
        super().__init__()
        self.way = way
        self.answer = dspy.Predict("question -> answer")

    def forward(self, question):
        asked = [dspy.Example(question=question).with_inputs("question")] * 3
        match self.way:
            case "parallel":
                return dspy.Parallel(num_threads=2, disable_progress_bar=True)([(self.answer, one) for one in asked])[0]
            case "batch":
                return self.answer.batch(asked, num_threads=2, disable_progress_bar=True)[0]
            case "tracked":
                with dspy.track_usage():
                    self.answer(question=question)
                    self.answer(question=question)
                    return self.answer(question=question)
        return None


@pytest.fixture
def evaluate(tmp_path):
    """Evaluate a module by DSPy's class or by ours; gives the evaluation."""

    def call(program, *, kind=medexam.Evaluate, size=COUNT, metric=exact, **settings):
        told = {"runs_dir": tmp_path / "runs", "track": False} if kind is medexam.Evaluate else {}
        return kind(devset=build_devset(size), metric=metric, num_threads=2, **told, **settings)(program)

    return call


@pytest.mark.parametrize("way", ["parallel", "batch", "tracked"])
def test_a_limit_of_calls_holds_wherever_a_module_asks(evaluate, way) -> None:
    lm = Counted()
    with dspy.context(lm=lm):
        evaluation = evaluate(Thrice(way), limits=medexam.Limits(calls=12))
    # Two examples in flight, of three calls each, may be finished.
    assert 12 <= lm.calls <= 18
    assert evaluation.pending > 0
    assert evaluation.stop == "calls"


def test_a_metric_reads_the_usage_that_dspy_tracks(evaluate) -> None:
    seen = []

    def cheap(example, prediction, trace=None):
        seen.append(prediction.get_lm_usage())
        return exact(example, prediction)

    with dspy.context(lm=Counted(), track_usage=True):
        evaluate(dspy.Predict("question -> answer"), size=2, metric=cheap)
    assert len(seen) == 2
    assert all(seen)


class Called(dspy.Module):
    """A class with a call of its own."""

    def __call__(self, question):
        return dspy.Prediction(answer="1")

    def forward(self, question):
        return dspy.Prediction(answer="2")


class Both(dspy.Module):
    """A class whose two methods answer otherwise."""

    def forward(self, question):
        return dspy.Prediction(answer="1")

    async def aforward(self, question):
        return dspy.Prediction(answer="2")


class OnlyForward(dspy.BaseLM):
    """A model with `forward` alone."""

    def forward(self, prompt=None, messages=None, **kwargs):
        from types import SimpleNamespace

        message = SimpleNamespace(content="[[ ## answer ## ]]\n1\n\n[[ ## completed ## ]]")
        return SimpleNamespace(choices=[SimpleNamespace(message=message)], usage={}, model=self.model)


@pytest.mark.parametrize("make", [Called, Both, lambda: dspy.Predict("question -> answer")])
def test_a_module_is_called_as_dspy_calls_it(evaluate, make) -> None:
    with dspy.context(lm=OnlyForward("plain")):
        scores = [
            evaluate(make(), kind=kind, size=4, metric=lambda _, said, trace=None: said.answer == "1").score
            for kind in (dspy.Evaluate, medexam.Evaluate)
        ]
    assert scores == [100.0, 100.0]


class Breaks(dspy.Module):
    """Raises."""

    def forward(self, question):
        raise KeyError("boom at " + question)


def test_the_traceback_of_a_fault_is_logged_where_it_is_asked_for(evaluate, caplog) -> None:
    for wanted in (False, True):
        caplog.clear()
        with caplog.at_level(logging.ERROR), dspy.context(lm=Counted()):
            evaluate(Breaks(), size=1, failure_score=0.0, provide_traceback=wanted, fresh=True)
        assert ("boom at q0000" in caplog.text and "Traceback" in caplog.text) is wanted


def test_nothing_of_dspys_classes_is_changed_by_an_evaluation(evaluate) -> None:
    methods = {name: getattr(kind, name) for kind in (dspy.LM, dspy.BaseLM) for name in ("__call__", "acall")}
    lm = Counted()
    with dspy.context(lm=lm):
        evaluate(dspy.Predict("question -> answer"), size=2)
    assert type(lm) is Counted
    assert {name: getattr(kind, name) for kind in (dspy.LM, dspy.BaseLM) for name in ("__call__", "acall")} == methods
