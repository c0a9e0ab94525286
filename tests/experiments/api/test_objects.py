"""Modules and models that a script has made, given to `medexam.run` and `medexam.optimize` as they are."""

import dspy
import pytest
from dspy.utils.dummies import DummyLM

import medexam
from medexam.errors import AnswerFormatError, SpecError


class Told(dspy.Module):
    """A module with a setting that no spec names."""

    def __init__(self, hint: str = "") -> None:
        super().__init__()
        self.hint = hint
        self.answer = dspy.Predict("question, hint -> answer: int")

    def forward(self, question: str):
        return self.answer(question=question, hint=self.hint)


@pytest.fixture
def model():
    """DSPy's scripted model, which answers as often as it is asked."""
    return DummyLM({"question": {"answer": "1"}})


@pytest.fixture
def ask(runs_dir):
    def run(program, model, **settings):
        settings = {"limit": 6, "runs_dir": runs_dir, "track": False, "progress": False} | settings
        return medexam.run("headqa_sample", program=program, model=model, **settings)

    return run


def test_a_module_and_a_model_are_run(ask, model) -> None:
    (run,) = runs = ask(Told(), model)
    assert (run.n, run.program, run.model, run.complete) == (6, "Told", "dummy", True)
    assert {prediction.answer for prediction in run.predictions.values()} == {1}
    assert ask(Told(), model)[0].id == run.id
    assert runs["Told"].predictions.to_pandas().shape[0] == 6


def test_state_and_model_tell_runs_apart(ask, model) -> None:
    taught = Told()
    taught.answer.demos = [dspy.Example(question="q", hint="h", answer=2)]
    runs = ask([Told(), Told("think"), taught, "longest"], model)
    others = ask(Told(), DummyLM({"question": {"answer": "2"}}))
    assert len({run.id for run in (*runs, *others)}) == 5


def test_an_engines_model_is_its_spec(ask, scripted) -> None:
    as_object, as_spec = ask("zero_shot", medexam.lm(scripted)), ask("zero_shot", scripted)
    assert as_object[0].id == as_spec[0].id


def test_what_a_dspy_model_cannot_do_is_said(ask, model) -> None:
    with pytest.raises(AnswerFormatError, match=r"medexam\.lm"):
        ask("zero_shot", model, program__answer_format="guided")


def test_a_run_of_objects_needs_its_script(ask, model, monkeypatch) -> None:
    unasked = {"limits": medexam.Limits(minutes=0.0)}
    run = ask(Told(), model, **unasked)[0]
    assert run.n == 0
    assert medexam.load_run(run.folder).resume(progress=False).n == 6
    run = ask(Told("other"), model, **unasked)[0]
    monkeypatch.setattr("medexam.plugins._LIVE", {})
    with pytest.raises(SpecError, match="was an object of a script"):
        medexam.load_run(run.folder).resume(progress=False)


def test_a_module_is_optimized(model, ask, runs_dir) -> None:
    spec = {"name": "better", "dataset": {"name": "headqa_sample", "years": [2016]}}
    optimizer = {"kind": "bootstrap", "validation": {"split": "dev", "limit": 3}}
    better = medexam.optimize(spec, program=Told(), model=model, optimizer=optimizer, runs_dir=runs_dir, progress=False)
    assert better.finished
    (run,) = ask(Told(), model, program__load=better.folder)
    assert run.program == "Told-optimized"


def test_keys_are_stored_nowhere(ask, runs_dir) -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
    lm = dspy.LM("openai/gpt-4o-mini", api_key=key, api_base="http://127.0.0.1:9/v1")
    with pytest.raises(SpecError, match="limit of dollars"):
        ask(Told(), lm, limits=medexam.Limits(cost=1.0))
    run = ask(Told(), lm.copy(num_retries=0), limit=2)[0]
    assert run.metrics.failed == 2
    assert not any("abcdefghij" in path.read_text(errors="replace") for path in runs_dir.rglob("*") if path.is_file())


class Plain(dspy.Module):
    """A plain DSPy program: no types, a module in a module."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = dspy.Predict("question -> answer")

    def forward(self, question):
        asked = self.inner(question=question + "\nThink of the organ first.")
        return dspy.Prediction(answer=asked.answer, stem=question.stem)


class Outer(dspy.Module):
    """A module whose inner one takes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Plain()

    def forward(self, question):
        return self.inner(question=question)


def test_an_untyped_question_is_text(ask, model) -> None:
    (run,) = ask(Outer(), model, limit=2)
    assert run.n == 2
    for key, prediction in run.predictions.items():
        assert prediction.answer == 1, key
        assert prediction.outputs["stem"]
    plan = medexam.plan("headqa_sample", program=Outer(), model=model, limit=1)
    prompt = plan.cells[0]["prompt"][-1]["content"]
    assert "\n1. " in prompt
    assert '"key"' not in prompt


def test_a_model_of_set_lm_is_the_runs(ask, model) -> None:
    own = Told()
    own.set_lm(model)
    (plain,), (same,), (alone,) = ask(Told(), model), ask(own, model), ask(own, None)
    assert plain.id == same.id == alone.id
    assert own.answer.lm is model
    with pytest.raises(SpecError, match="set_lm"):
        ask(own, DummyLM({"question": {"answer": "2"}}))


def test_the_adapter_of_dspy_is_heeded(ask, model, capsys) -> None:
    (plain,) = ask(Told(), model, limit=2)
    with dspy.context(adapter=dspy.XMLAdapter()):
        (tagged,) = ask(Told(), model, limit=2)
        ask("longest", model, limit=2)
    assert plain.id != tagged.id
    assert "reaches modules alone" in capsys.readouterr().err
