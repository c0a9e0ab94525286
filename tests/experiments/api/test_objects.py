"""Modules and models that a script has made, given to `medexam.run` and `medexam.optimize` as they are."""

import asyncio
import re
import zlib
from dataclasses import dataclass
from functools import partial

import dspy
import pydantic
import pytest
from dspy.utils.dummies import DummyLM

import medexam
from medexam.errors import AnswerFormatError, EngineError, SpecError
from medexam.programs.fields import question_fields, wanted_fields


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


@pytest.mark.parametrize("served", [False, True])
def test_a_module_is_optimized(model, ask, runs_dir, served) -> None:
    model = build_wire()[1] if served else model
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
    assert "applies only to modules" in capsys.readouterr().err


class Wire:
    """DSPy's engine contract: replies to a request by its content, and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests = []

    def reply(self, request):
        self.requests.append(request)
        last = request.messages[-1].text
        digest = zlib.crc32(repr([request.system, *[message.text for message in request.messages]]).encode())
        names = re.findall(r"`\[\[ ## (\w+) ## \]\]`", last[last.rfind("Respond with") :])
        values = {name: digest % 4 + 1 if name == "answer" else f"word {digest % 7}" for name in names}
        text = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in values.items())
        usage = dspy.lm15.Usage(input_tokens=1, output_tokens=1)
        return dspy.lm15.Response(
            id="1", model="m", message=dspy.lm15.Message.assistant(text), finish_reason="stop", usage=usage
        )

    def complete(self, request):
        return self.reply(request)


class AwaitedWire:
    def __init__(self, wire) -> None:
        self.wire = wire

    async def complete(self, request):
        return self.wire.reply(request)


def build_wire(**settings):
    wire = Wire()
    told = {"max_tokens": 90, "temperature": 0.0, **settings}
    return wire, dspy.LM("openai/m", engine=wire, async_engine=AwaitedWire(wire), cache=False, **told)


class Several(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.voters = [dspy.Predict(f"question, view{n} -> answer: int") for n in range(3)]

    def forward(self, question: str):
        votes = [voter(question=question, **{f"view{n}": "x"}).answer for n, voter in enumerate(self.voters)]
        return {"answer": max(votes, key=votes.count), "votes": votes}


class Reasoned(pydantic.BaseModel):
    answer: int
    why: str


class Structured(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.ChainOfThought("question, options -> answer: int, why")

    def forward(self, question, options):
        reply = self.answer(question=question, options=options)
        return Reasoned(answer=reply.answer, why=reply.why)


@dataclass
class Verdict:
    answer: int
    side: list


class SideBySide(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict("question, view -> answer: int")

    def forward(self, question: str):
        examples = [dspy.Example(question=question, view=view).with_inputs("question", "view") for view in "ab"]
        calls = [(self.answer, example) for example in examples]
        replies = dspy.Parallel(num_threads=2, disable_progress_bar=True)(calls)
        return Verdict(replies[1].answer, [reply.answer for reply in replies])


class Awaited(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict("question -> answer: int")

    async def aforward(self, question: str):
        replies = await asyncio.gather(*(self.answer.acall(question=f"{question} {n}") for n in range(2)))
        return dspy.Prediction(answer=replies[0].answer, other=replies[1].answer)


class Conversation(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        fields = {"question": (str, dspy.InputField()), "history": (dspy.History, dspy.InputField())}
        self.answer = dspy.Predict(dspy.Signature({**fields, "answer": (int, dspy.OutputField())}))

    def forward(self, question: str):
        turns = []
        for _ in range(2):
            reply = self.answer(question=question, history=dspy.History(messages=list(turns)))
            turns.append({"question": question, "answer": reply.answer})
        return reply


class Nothing(dspy.Module):
    def forward(self, question: str):
        return None


PROGRAMS = (
    *(Several, Structured, SideBySide, Awaited, Conversation, Nothing),
    partial(dspy.ChainOfThought, "question, options -> answer: int"),
    partial(dspy.BestOfN, dspy.Predict("question -> answer: int"), N=2, reward_fn=lambda *_: 0.0, threshold=1.0),
)


@pytest.mark.parametrize("make", PROGRAMS)
def test_a_module_answers_as_in_plain_dspy(ask, make) -> None:
    (ours, lm), (theirs, plain) = build_wire(), build_wire()
    (run,) = ask(make(), lm, limit=2)
    module = make()
    questions = {question.key: question for question in medexam.load_questions("headqa_sample")}
    with dspy.context(lm=plain, trace=[]):
        for key, prediction in run.predictions.items():
            inputs = question_fields(questions[key], wanted_fields(module, ""), [])
            asynchronous = not hasattr(type(module), "forward")
            output = asyncio.run(module.acall(**inputs)) if asynchronous else module(**inputs)
            fields = dict(output.items() if hasattr(output, "items") else vars(output)) if output is not None else {}
            answer = fields.pop("answer", None)
            assert prediction.answer == (None if answer is None else int(answer))
            fields.pop("reasoning", None)
            assert (prediction.outputs or {}) == fields
    assert sorted(map(repr, ours.requests)) == sorted(map(repr, theirs.requests))


def test_a_module_is_built_for_a_question() -> None:
    wire, lm = build_wire()
    program = medexam.build_program(Several())
    question = medexam.Question.of("Which vitamin prevents scurvy?", ["Vitamin A", "Vitamin C", "D", "E"])
    with dspy.context(lm=lm):
        prediction = program(question=question)
    assert prediction.answer in range(1, 5)
    assert len(prediction.generations or wire.requests) == 3


def test_settings_of_a_model_reach_its_requests(ask) -> None:
    told = {"frequency_penalty": 0.5, "reasoning_effort": "low", "logit_bias": {"5": 1}, "top_p": 0.5, "stop": ["."]}
    wire, lm = build_wire(**told)
    ask(Told(), lm, limit=1)
    config = wire.requests[0].config
    assert (config.max_tokens, config.frequency_penalty, config.reasoning.effort) == (90, 0.5, "low")
    assert (config.extensions, config.top_p, config.stop) == ({"logit_bias": {"5": 1}}, 0.5, (".",))
    for unsent in ({"min_p": 0.1}, {"n": 2}):
        wire, lm = build_wire(**unsent)
        with pytest.raises(EngineError, match=next(iter(unsent))):
            ask(Told(), lm, limit=1)
        assert not wire.requests


def test_what_a_model_leaves_out_its_provider_decides(ask) -> None:
    settings = [{}, {"temperature": 0.0}, {"max_tokens": 77}, {"temperature": 0.0, "max_tokens": 512}]
    ids, sent = set(), []
    for each in settings:
        wire = Wire()
        lm = dspy.LM("openai/m", engine=wire, async_engine=AwaitedWire(wire), cache=False, **each)
        ids.add(ask(Told(), lm, limit=1)[0].id)
        sent.append({name: getattr(wire.requests[0].config, name) for name in ("temperature", "max_tokens")})
    assert sent == [{"temperature": None, "max_tokens": None, **each} for each in settings]
    assert len(ids) == 4
    # A program that ships knows how long its replies are.
    ask("zero_shot", lm.copy(temperature=None, max_tokens=None), limit=1)
    assert (wire.requests[-1].config.temperature, wire.requests[-1].config.max_tokens) == (None, 64)
    for left_out in ({"model__temperature": None}, {"model__max_tokens": 0}):
        with pytest.raises(SpecError, match=r"only a dspy\.LM"):
            ask("longest", {"engine": "litellm", "name": "openai/m"}, **left_out)


def test_runs_of_equal_labels_are_told_apart(ask, model) -> None:
    table = repr(ask([Told(), Told("think")], model, limit=1))
    first, second = re.findall(r"Told \(kind object\.\w+", table)[:2]
    assert first != second
