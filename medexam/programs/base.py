"""What every program is: a DSPy module from a question to an answer.

A program says its steps once, as a generator of calls; the base class drives them for synchronous and asynchronous
callers alike. Programs know nothing of engines, golds, files or scores.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from medexam.model_calls import SAMPLES, Generation, Reading
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Task, check_question
from medexam.signatures import ExamAdapter
from medexam.signatures.direct import ask_predictor, is_heard


@dataclass(frozen=True)
class Call:
    """One call of a predictor that a program waits for."""

    predictor: dspy.Module
    """One of DSPy's own, a `SideQuestion`, a `LookUp` of passages, or a whole program of the user's own."""
    inputs: dict[str, Any]
    seeds_later: int = 0
    """How much is added to the model's seed, so that the same prompt is answered anew."""
    samples: int = 1
    """Replies that are asked for at once, under the model's seed and the next ones; those of one of DSPy's own
    predictors are the completions of its prediction."""
    adapter: dspy.Adapter | None = None
    """What writes its prompt; None: the program's own."""
    lm: dspy.LM | None = None
    """What is asked; None: the predictor's own, or that of `dspy.configure`."""

    @property
    def options(self) -> dict[str, Any]:
        """What the predictor is called with beside the inputs."""
        config: dict[str, Any] = {}
        if self.seeds_later:
            lm = self.lm or getattr(self.predictor, "lm", None) or dspy.settings.lm
            config["seed"] = (lm.kwargs.get("seed") or 0) + self.seeds_later
        if self.samples > 1:
            config[SAMPLES] = self.samples
        return {"config": config} if config and getattr(type(self.predictor), "asks_model", True) else {}


def _settings_of(call: Call) -> AbstractContextManager[None]:
    """Return a context of the settings of DSPy's that a call has of its own."""
    own = {"adapter": call.adapter, "lm": call.lm}
    settings = {name: setting for name, setting in own.items() if setting is not None}
    context: AbstractContextManager[None] = dspy.context(**settings) if settings else nullcontext()
    return context


_BOOKKEEPING = {"augmented", "dspy_uuid", "dspy_split"}
"""What DSPy's optimizers note beside the fields of a demonstration."""

Steps = Generator[Call, dspy.Prediction, ProgramOutput]
"""A program's steps: it yields calls, receives their predictions and returns its own. A call whose prompt did not fit
the model's context raises `ContextWindowExceededError` where it was yielded."""
Step = Call | ProgramOutput
"""How far steps have come: to a call, or to their output."""


def advance(steps: Steps, reply: Any = None) -> Step:
    """Return what steps come to behind a reply, or behind the fault of a prompt that did not fit; None begins them."""
    try:
        return steps.throw(reply) if isinstance(reply, ContextWindowExceededError) else steps.send(reply)
    except StopIteration as stop:
        output: ProgramOutput = stop.value
        return output


class AskingProgram(dspy.Module):
    """Base of the programs that ask a model, whatever a question is.

    Called with `question=`, it returns a `ProgramOutput`, a `dspy.Prediction`, with what its kind of question is
    answered with. The model is the one of `dspy.configure` or `set_lm`; the adapter is the
    program's own.
    """

    calls: int = 1
    """How many times it asks the model for a question."""
    reading: Reading = "strict"
    """How its replies are read where they are scored."""
    reads_options: bool = False
    """Whether the lenient reader may read an option in its replies where the strict one reads none."""

    def __init__(self, adapter: dspy.Adapter) -> None:
        super().__init__()
        self.adapter = adapter

    @property
    def stated(self) -> dspy.Module:
        """The module whose state a file keeps, as DSPy saves and loads it."""
        return self

    def calls_for(self, question: Any) -> int:  # noqa: ARG002
        """Count how many times it asks the model for this question."""
        return self.calls

    def calls_of(self, question: Any, model: str | None) -> int:
        """Count how many times it asks one of the experiment's `models` at most; None: its `model`."""
        return self.calls_for(question) if model is None else 0

    def steps(self, question: Any) -> Steps:
        """Yield the calls that lead to an answer."""
        raise NotImplementedError

    def shown(self, demo: Mapping[str, Any] | dspy.Example) -> dict[str, Any]:
        """Return what prompts show of a demonstration, by field."""
        return {name: value for name, value in demo.items() if name not in _BOOKKEEPING}

    def forward(self, question: Any) -> ProgramOutput:
        """Answer one question."""
        check_question(question)
        steps = self.steps(question)
        step = advance(steps)
        with dspy.context(adapter=self.adapter):
            while isinstance(step, Call):
                try:
                    with _settings_of(step):
                        reply = step.predictor(**step.inputs, **step.options)
                except ContextWindowExceededError as error:
                    reply = error
                step = advance(steps, reply)
        return step

    async def aforward(self, question: Any) -> ProgramOutput:
        """Answer one question without blocking."""
        check_question(question)
        steps = self.steps(question)
        step = advance(steps)
        while isinstance(step, Call):
            try:
                if step.lm is None and isinstance(step.predictor, AskingProgram) and not is_heard():
                    # A program has an adapter of its own, and nobody hears that it is called.
                    reply = await step.predictor.aforward(**step.inputs, **step.options)
                else:
                    adapter = step.adapter or self.adapter
                    with nullcontext() if step.lm is None else dspy.context(lm=step.lm):
                        reply = await ask_predictor(step.predictor, step.inputs, step.options, adapter)
            except ContextWindowExceededError as error:
                reply = error
            step = advance(steps, reply)
        return step


class ExamProgram(AskingProgram):
    """Base of the programs that answer exam questions.

    Their predictions hold `answer` (the printed number of an option, or None) and `rationale` (str or None).
    """

    adapter: ExamAdapter
    reads_options = True

    def shown(self, demo: Mapping[str, Any] | dspy.Example) -> dict[str, Any]:
        """Return the question as a `Question`, then the rationale and the answer that there are; no passages."""
        return shown_of(demo)


def shown_of(demo: Mapping[str, Any] | dspy.Example) -> dict[str, Any]:
    """Return what prompts of exam programs show of a demonstration: its question, rationale and answer."""
    return {name: demo[name] for name in ("question", "rationale", "answer") if demo.get(name) is not None}


class WrappingProgram(ExamProgram):
    """Base of the programs that take another's steps and add to what each of them is called with.

    The other one may answer in words too.
    """

    def __init__(self, program: AskingProgram) -> None:
        super().__init__(program.adapter)
        self.program = program

    def calls_for(self, question: Any) -> int:
        """Count as many as the program's own."""
        return self.program.calls_for(question)

    def steps_with(self, question: Any, **inputs: Any) -> Steps:
        """Yield the program's own steps, each called with these inputs too."""
        return altered(self.program.steps(question), lambda call: replace(call, inputs={**call.inputs, **inputs}))


def altered(
    steps: Steps, change: Callable[[Call], Call], step: Step | None = None, resume: Callable[..., Step] = advance
) -> Steps:
    """Yield the same steps with every call changed; replies, and prompts that did not fit, reach them unchanged.

    `step` is what they have come to already; None: they have not begun. `resume` advances them.
    """
    step = resume(steps) if step is None else step
    while isinstance(step, Call):
        try:
            reply = yield change(step)
        except ContextWindowExceededError as error:
            reply = error
        step = resume(steps, reply)
    return step


class TaskProgram(AskingProgram):
    """Base of the programs that answer in words; the last of a question's replies holds those before."""

    def read(self, question: Task, reply: str) -> dict[str, Any]:
        """Read what a reply answers, as the fields of a prediction."""
        raise NotImplementedError

    def answer(self, question: Task, generation: Generation) -> ProgramOutput:
        """Build the output from a question's last reply."""
        return ProgramOutput(**self.read(question, generation.reply or ""), generation=generation)
