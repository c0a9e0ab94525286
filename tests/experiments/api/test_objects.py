"""Modules and models that a script has made, given to `medexam.run` and `medexam.optimize` as they are."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass

import dspy
import pydantic
import pytest
from dspy.utils.dummies import DummyLM
from wire_server import Wire, serving

import medexam
from medexam.errors import EngineError, SpecError

LOOK = "Name a bone."
"""What a look at which model answers asks."""


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
def ask_with(ask):
    return lambda program, model, **settings: ask(program=program, model=model, **settings)


def test_a_module_and_a_model_are_run(ask_with, model) -> None:
    (run,) = runs = ask_with(Told(), model)
    assert (run.n, run.program, run.model, run.complete) == (6, "Told", "dummy", True)
    assert {prediction.answer for prediction in run.predictions.values()} == {1}
    assert ask_with(Told(), model)[0].id == run.id
    assert runs["Told"].predictions.to_pandas().shape[0] == 6


def test_state_and_model_tell_runs_apart(ask_with, model) -> None:
    taught = Told()
    taught.answer.demos = [dspy.Example(question="q", hint="h", answer=2)]
    runs = ask_with([Told(), Told("think"), taught, "longest"], model)
    others = ask_with(Told(), DummyLM({"question": {"answer": "2"}}))
    assert len({run.id for run in (*runs, *others)}) == 5
    first, second = re.findall(r"Told \(kind object\.\w+", repr(runs))[:2]
    assert first != second, "a table tells runs of equal labels apart"


ELSEWHERE = """
import sys, medexam
try:
    medexam.load_run(sys.argv[1]).resume(progress=False)
except medexam.MedExamError as error:
    print(error)
"""


def test_a_run_of_objects_is_resumed_in_its_script(ask_with, model, resume) -> None:
    (run,) = ask_with(Told(), model, limits=medexam.Limits(minutes=0.0))
    assert (run.n, resume(medexam.load_run(run.folder)).n) == (0, 6)


@pytest.mark.nightly
def test_a_run_of_objects_needs_its_script(ask_with, model) -> None:
    (run,) = ask_with(Told(), model, limits=medexam.Limits(minutes=0.0))
    command = [sys.executable, "-c", ELSEWHERE, str(run.folder)]
    assert "was an object of a script" in subprocess.check_output(command, text=True)


def test_keys_are_stored_nowhere(ask_with, runs_dir) -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
    lm = dspy.LM("openai/gpt-4o-mini", api_key=key, api_base="http://127.0.0.1:9/v1", num_retries=0)
    with pytest.raises(SpecError, match="limit of dollars"):
        ask_with(Told(), lm, limits=medexam.Limits(cost=1.0))
    assert ask_with(Told(), lm, limit=2)[0].metrics.failed == 2
    assert not any("abcdefghij" in path.read_text(errors="replace") for path in runs_dir.rglob("*") if path.is_file())


class Plain(dspy.Module):
    """A plain DSPy program without types."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = dspy.Predict("question -> answer")

    def forward(self, question):
        asked = self.inner(question=question + "\nThink of the organ first.")
        return dspy.Prediction(answer=asked.answer, stem=question.stem)


def test_an_untyped_question_is_text(ask_with, model) -> None:
    (run,) = ask_with(Plain(), model, limit=2)
    stems = {question.key: question.stem for question in medexam.load_questions("headqa_sample", limit=2)}
    assert {key: (one.answer, one.outputs["stem"]) for key, one in run.predictions.items()} == {
        key: (1, stem) for key, stem in stems.items()
    }
    prompt = medexam.plan("headqa_sample", program=Plain(), model=model, limit=1).cells[0]["prompt"][-1]["content"]
    assert ("\n1. " in prompt, '"key"' in prompt) == (True, False)


class Reasoned(pydantic.BaseModel):
    answer: int
    why: str


@dataclass
class Verdict:
    answer: int
    why: str


@pytest.mark.parametrize(
    ("make", "kept"),
    [
        (lambda answer: {"answer": answer, "why": "So."}, (1, {"why": "So."})),
        (lambda answer: Reasoned(answer=answer, why="So."), (1, {"why": "So."})),
        (lambda answer: Verdict(answer, "So."), (1, {"why": "So."})),
        (lambda answer: dspy.Prediction(answer=answer, why="So."), (1, {"why": "So."})),
        (lambda answer: None, (None, None)),
    ],
    ids=["mapping", "pydantic", "dataclass", "prediction", "nothing"],
)
def test_what_a_module_returns_is_kept(ask_with, model, make, kept) -> None:
    class Returning(Told):
        def forward(self, question: str):
            return make(self.answer(question=question, hint="").answer)

    (run,) = ask_with(Returning(), model, limit=2)
    assert [(one.answer, one.outputs or None) for one in run.predictions.values()] == [kept] * 2


def test_a_model_of_set_lm_is_refused(ask_with, model) -> None:
    (own := Told()).set_lm(model)
    with pytest.raises(SpecError, match="set_lm"):
        ask_with(own, model)


def test_the_adapter_of_dspy_is_heeded(ask_with, model) -> None:
    (plain,) = ask_with(Told(), model, limit=2)
    with dspy.context(adapter=dspy.XMLAdapter()):
        (tagged,) = ask_with(Told(), model, limit=2)
    assert plain.id != tagged.id


@pytest.fixture
def sent(ask_with):
    """`sent(temperature=0.0)` -> what a `dspy.LM` of these settings sends for a question of a run, and the run's id."""

    wire = Wire()

    def send(program=None, **settings):
        with serving(wire):
            lm = dspy.LM("openai/tiny", api_base=wire.address, api_key="x", cache=False, num_retries=0, **settings)
            (run,) = ask_with(program or Told(), lm, limit=1)
        asked = [body for body in wire.bodies("/v1/chat/completions") if LOOK not in json.dumps(body)]
        body = {name.replace("_completion", ""): value for name, value in asked[-1].items()}
        return body, run.id

    return send


def test_settings_of_a_model_reach_its_requests(sent) -> None:
    told = {"frequency_penalty": 0.5, "logit_bias": {"5": 1}, "top_p": 0.5, "stop": ["."], "max_tokens": 90}
    body, _ = sent(**told)
    assert {name: body.get(name) for name in told} == told
    for unsent in ({"min_p": 0.1}, {"n": 2}):
        with pytest.raises(EngineError, match=next(iter(unsent))):
            sent(**unsent)


def test_what_a_model_leaves_out_its_provider_decides(sent, ask_with) -> None:
    settings = [{}, {"temperature": 0.0}, {"max_tokens": 77}, {"temperature": 0.0, "max_tokens": 512}]
    bodies, ids = zip(*(sent(**each) for each in settings), strict=True)
    assert [{name: body[name] for name in ("temperature", "max_tokens") if name in body} for body in bodies] == settings
    assert len(set(ids)) == 4
    shipped, _ = sent("zero_shot")
    assert (shipped.get("temperature"), shipped["max_tokens"]) == (None, 64), "it knows how long its replies are"
    for left_out in ({"model__temperature": None}, {"model__max_tokens": 0}):
        with pytest.raises(SpecError, match=r"only a dspy\.LM"):
            ask_with("longest", {"engine": "litellm", "name": "openai/m"}, **left_out)
