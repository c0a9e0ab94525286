"""What every program is: a DSPy module from a question to an answer, which asks by one function.

A program is an async function of a question. What stands around it (passages, another order, a further seed, another
model) is a way, under which all calls inside its block are made. Programs know nothing of engines, golds, files or
scores.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import dspy

from medexam.model_calls import ChatMessage, Dialogue, Generation, Reading, Sampling
from medexam.predictions import Prediction, RetrievedPassage
from medexam.programs.fields import AskedText
from medexam.programs.lm import ask_model, run_blocking
from medexam.questions import check_question
from medexam.retrievers.base import Hit


def kept_passage(hit: Hit, kept: bool | None = None) -> RetrievedPassage:
    """Return what a prediction keeps of a hit, and whether a verifier kept it."""
    return RetrievedPassage(id=hit.passage.id, source=hit.passage.source, score=hit.score, kept=kept)


class ProgramOutput(dspy.Prediction):
    """What a program returns for one question: fields of `medexam.predictions.Prediction`, and those below.

    A field that nothing was given for is None.
    """

    answer: int | None
    text: str | None
    generation: Generation | None
    """The reply that the answer stands in; None: the last one that came, if any."""
    scores: Mapping[str, Any] | None
    """`option_scores`, `score_unit` and what else a prediction keeps of them."""
    hits: list[Hit] | None
    """Passages that were looked up, most relevant first."""
    verdicts: Sequence[bool] | None
    """Whether a verifier keeps each of `hits`."""
    fields: Mapping[str, Any] | None
    """Every output of a signature that a step of a flow asks, by name; None of any other program."""

    def __getattr__(self, name: str) -> Any:
        # Looked up at once: programs read several fields of every answer.
        return self._store.get(name) if name in _FIELDS else super().__getattr__(name)

    @property
    def option_scores(self) -> dict[int, float] | None:
        """Printed number of each option -> its score; None if the program weighs none."""
        return None if self.scores is None else self.scores["option_scores"]

    @classmethod
    def of(cls, prediction: dspy.Prediction) -> Self:
        """Return what a program of the user's own returned, as such an output."""
        return prediction if isinstance(prediction, cls) else cls(**dict(prediction.items()))

    def copy(self, **fields: Any) -> Self:
        """Return the same output with other `fields`."""
        return super().copy(**fields)  # type: ignore[no-any-return]


_FIELDS = {field.name for field in fields(Prediction)} | {*ProgramOutput.__annotations__}


class Given(NamedTuple):
    """What a step reads beside the question."""

    fields: Mapping[str, Any] = MappingProxyType({})
    """Name -> value."""
    looked_up: Sequence[str] = ()
    """The texts of all look-ups before."""


class Way(NamedTuple):
    """How the calls of a block are made."""

    lm: dspy.BaseLM | None = None
    """What is asked; None: the model of DSPy's context."""
    inputs: Mapping[str, Any] = MappingProxyType({})
    """What predictors are called with beside the program's own: `passages`, or a `question` with its options in another
    order; what stands further out counts."""
    seeds_later: int = 0
    """How much is added to the model's seed, so that the same prompt is answered anew."""
    given: Given = Given()
    """What the step of the innermost block reads."""


READING = "medexam_reading"
"""Setting of DSPy's context: how replies are read, a `Reading`; `strict` unless it is set."""
_NO_WAY = Way()
_WAY: ContextVar[Way] = ContextVar("way", default=_NO_WAY)


@contextmanager
def asked_by(
    lm: dspy.BaseLM | None = None,
    *,
    seeds_later: int = 0,
    given: Given | None = None,
    **inputs: Any,
) -> Iterator[None]:
    """Have the calls in the block made so, within the way of the block around."""
    way = _WAY.get()
    seeds = way.seeds_later + seeds_later
    token = _WAY.set(Way(lm or way.lm, {**inputs, **way.inputs}, seeds, given or way.given))
    try:
        yield
    finally:
        _WAY.reset(token)


@contextmanager
def own_way() -> Iterator[Way]:
    """Give the way of the block around to code that makes its calls itself, in which there is none."""
    way, token = _WAY.get(), _WAY.set(_NO_WAY)
    try:
        yield way
    finally:
        _WAY.reset(token)


def current_way() -> Way:
    """Return how the calls of the block are made."""
    return _WAY.get()


def user_turn(text: str) -> ChatMessage:
    """Return the user's turn: a text behind the passages, if the way of the block shows some."""
    return {"role": "user", "content": "\n\n".join(filter(None, (_WAY.get().inputs.get("passages"), text)))}


def call_settings(lm: dspy.BaseLM, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a call over the model's own; a reply ends at what either of them names."""
    settings, stop = {**lm.kwargs, **overrides}, list[str]()
    for texts in (overrides.get("stop") or (), lm.kwargs.get("stop") or ()):
        stop += [texts] if isinstance(texts, str) else texts
    return {**settings, "stop": stop} if stop else settings


class AskingProgram(dspy.Module):
    """Base of the programs that ask a model, whatever a question is.

    Called with `question=`, it returns a `ProgramOutput`, a `dspy.Prediction`, with what its kind of question is
    answered with. The model is the one of `dspy.configure` or `set_lm`.
    """

    calls: int = 1
    """How many times it asks the model for a question."""
    reading: Reading = "strict"
    """How its replies are read where they are scored."""
    reads_options: bool = False
    """Whether the lenient reader may read an option in its replies where the strict one reads none."""

    nearest: Any = None
    """What chooses the demonstrations that a question is shown; None: all are shown."""

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

    @staticmethod
    def shown(demo: Mapping[str, Any] | dspy.Example) -> dict[str, Any]:
        """Return what prompts show of a demonstration, by field, without what DSPy's optimizers note beside it."""
        notes = ("augmented", "dspy_uuid", "dspy_split")
        return {name: value for name, value in demo.items() if name not in notes}

    async def aforward(self, question: Any) -> ProgramOutput:
        """Answer one question; what derives from this class says how."""
        raise NotImplementedError

    def forward(self, question: Any) -> ProgramOutput:
        """Answer one question, in a thread that waits."""
        check_question(question)
        return run_blocking(self.aforward(question))

    async def ask(
        self, predictor: dspy.Predict, turns: list[ChatMessage], settings: Mapping[str, Any] | None = None, **more: Any
    ) -> Generation:
        """Ask once under a predictor's settings and these; the last of the turns may begin the reply.

        The model is the predictor's own, that of the way, or that of DSPy's context. `more` are further fields of the
        `Dialogue`. Raises `ContextWindowExceededError` where the prompt does not fit the model's context, DSPy's other
        errors, and `ValueError` if there is no model.
        """
        way = _WAY.get()
        lm: dspy.BaseLM | None = predictor.lm or way.lm or dspy.settings.lm
        if lm is None:
            raise ValueError("No LM is loaded: call dspy.configure(lm=...) first")
        all_settings = {**call_settings(lm, vars(predictor)["config"]), **(settings or {})}
        if way.seeds_later:
            all_settings["seed"] = (lm.kwargs.get("seed") or 0) + way.seeds_later
        # Nothing is sampled where texts are read in plain text or a dialogue of their own.
        dialogue = Dialogue.of(turns, more.pop("sampling", None) or Sampling.of(all_settings), **more)
        return await ask_model(lm, dialogue, rollout_id=all_settings.get("rollout_id"))

    async def ask_words(
        self, predictor: dspy.Predict, system: str, text: str, prefill: str = "", choices: Sequence[str] = ()
    ) -> Generation:
        """Ask a text behind a system turn, if there is one; return the reply with what it was begun with."""
        turns = [{"role": "system", "content": system}] if system else []
        turns += [user_turn(text), *([{"role": "assistant", "content": prefill}] if prefill else [])]
        generation = await self.ask(predictor, turns, choices=tuple(choices) or None)
        return replace(generation, reply=prefill + (generation.reply or ""))


class ExamProgram(AskingProgram):
    """Base of the programs that answer exam questions.

    Their predictions hold `answer` (the printed number of an option, or None) and `rationale` (str or None).
    """

    reads_options = True

    @staticmethod
    def shown(demo: Mapping[str, Any] | dspy.Example) -> dict[str, Any]:
        """Return the question as a `Question`, then the rationale and the answer that there are; no passages."""
        shown = {name: demo[name] for name in ("question", "rationale", "answer") if demo.get(name) is not None}
        if isinstance(question := shown.get("question"), AskedText):
            shown["question"] = question.source
        return shown
