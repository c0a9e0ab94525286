"""What programs ask by: the one `dspy.LM` over an engine, which keeps every call of a question, and their base class.

A program is a DSPy module and an async function of a question, which asks by one method. What stands around it
(passages, another order, a further seed, another model) is a way, under which all calls inside its block are made. A
module of the user's own asks the language model as DSPy asks any. Both end in the engine's `reply`. What is kept of a
question's calls stands in DSPy's settings, which it hands on to its threads.
"""

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, TypeVar, cast

import anyio.from_thread
import dspy
from dspy.utils.callback import with_callbacks
from dspy.utils.usage_tracker import UsageTracker

from medexam.dspy_internals import CALL_ERRORS, dspy_errors, dspy_faults
from medexam.dspy_requests import build_request, read_dialogue, read_generation
from medexam.model_calls import (
    SAMPLED,
    ChatMessage,
    Continuation,
    ContinuationRequest,
    Dialogue,
    Generation,
    Reading,
    read_sampling,
)
from medexam.predictions import RetrievedPassage
from medexam.predictions.prediction import ModelCall
from medexam.process import background_loop
from medexam.programs.fields import AskedText
from medexam.questions import check_question
from medexam.retrievers.base import Hit
from medexam.specs import ModelSpec

T = TypeVar("T")
KEPT = "medexam_kept_calls"
"""Setting of DSPy's context: the `KeptCalls` of a question."""
OURS = "medexam/"
"""How the name of a model of this module begins."""
OTHER_MODELS = "medexam_models"
"""Setting of DSPy's context: the experiment's further models, by name."""
_OTHER_MODEL = (
    "{} is not the run's model: ask dspy.settings.lm, name further models in `models` of a program of steps, or use "
    "medexam.Evaluate, where a module may ask any model"
)


_lock = threading.Lock()
"""Held while seeds and places are drawn, by whatever thread."""


Seeds = dict[tuple[str, str], set[int]]
"""Model and prompt that are drawn at a temperature -> the seeds under which they were sent."""


def _redraw(seeds: Seeds, dialogue: Dialogue, model: str) -> Dialogue:
    """Return a dialogue under the first seed from its own that is free.

    A server gives one seed and one prompt one reply, so an equal dialogue is sent under the next seed. Models of one
    name draw an equal dialogue under one seed after the other.
    """
    with _lock:
        used_seeds = seeds.setdefault((model, dialogue.key), set())
        seed = next(seed for seed in count(dialogue.sampling["seed"]) if seed not in used_seeds)
        used_seeds.add(seed)
    return dialogue.with_seed(seed)


@dataclass(eq=False)
class KeptCalls:
    """The calls of one question, the program's own and those of its parts, in the order in which they are begun."""

    calls: list[tuple[Any, ...] | ModelCall] = field(default_factory=list)
    """The arguments of `ModelCall.of` where a call has no reply yet."""
    fault: Exception | None = None
    """What the last call broke with; None if it brought a reply."""
    seeds: Seeds = field(default_factory=dict)

    def raise_fault(self) -> None:
        """Raise what the last call broke with, if it did: `dspy.BestOfN` and the user's own code may catch it, and no
        answer for want of a server is a failure.
        """
        if self.fault is not None:
            with dspy_errors(getattr(dspy.settings.lm, "model", "")):
                raise self.fault

    def all(self) -> tuple[ModelCall, ...]:
        """Return what was kept so far."""
        return tuple(call if isinstance(call, ModelCall) else ModelCall.of(*call) for call in self.calls)


@contextmanager
def kept_calls() -> Iterator[KeptCalls]:
    """Keep every call of a model that the block makes, with those of the block around if it keeps some."""
    keeper: KeptCalls = dspy.settings.get(KEPT) or KeptCalls()
    with dspy.context(**{KEPT: keeper}):
        yield keeper


class OtherModelError(BaseException):
    """Code of a question's program asks another model than the run's, whose calls nobody would keep or count.

    No `Exception`: code that asks it may take those for faults of the model.
    """


class OnlyModel(UsageTracker):
    """DSPy's count of tokens, which raises `OtherModelError` where a call of another model than one is told to it."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model, self._outer = model, dspy.settings.usage_tracker

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Note a call that was made."""
        if lm != self._model:
            raise OtherModelError(_OTHER_MODEL.format(lm))
        super().add_usage(lm, usage_entry)
        if self._outer is not None:
            self._outer.add_usage(lm, usage_entry)


class EngineLM(dspy.LM):
    """A `dspy.LM` over an engine, which alone retries and caches nothing. It also chooses and scores texts."""

    supports_function_calling = supports_response_schema = False
    supported_params = frozenset[str]()

    def __init__(
        self, engine: Any, model: str, *, draws: bool = False, asked: str | None = None, **sampling: Any
    ) -> None:
        """Ask `engine`, under a name of `model`; `sampling` are settings of every call.

        With `draws`, equal requests at a temperature get one seed after the other. Without, only those of one question
        do. `asked` is its name in the spec where it is a further model. The engine says what the model takes in the
        form of its server; one that says nothing takes words alone.
        """
        super().__init__(model, cache=False, num_retries=0, **sampling)
        self.live_engine, self._asked = engine, asked
        self._seeds: Seeds | None = {} if draws else None
        for name in ("supports_function_calling", "supports_response_schema", "supported_params"):
            setattr(self, name, getattr(engine, name, getattr(self, name)))
        self.spec: ModelSpec | None = None
        """What it was built from; None if it was built from no spec."""

    def _get_initial_kwargs(self, *, temperature: Any, max_tokens: Any, **kwargs: Any) -> dict[str, Any]:
        """Keep the arguments that are given: DSPy refuses, or renames, budgets and temperatures by models' names."""
        return {"temperature": temperature, "max_tokens": max_tokens, **kwargs}

    @with_callbacks  # type: ignore[untyped-decorator]
    async def ask(self, dialogue: Dialogue, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Generation:
        """Return the reply to a dialogue; raises DSPy's errors.

        DSPy's callbacks, history and counts of tokens hear of a call with `prompt` or `messages`, and `kwargs`.
        """
        try:
            generation = await self._reply(dialogue)
        except Exception:
            with dspy_errors(self.model):
                raise
        if dspy.settings.disable_history and not dspy.settings.usage_tracker:
            return generation
        counts = {"prompt_tokens": generation.prompt_tokens, "completion_tokens": generation.completion_tokens}
        usage = {name: count for name, count in counts.items() if count is not None}
        if len(usage) == len(counts):
            usage["total_tokens"] = sum(usage.values())
        response = SimpleNamespace(model=generation.model, usage=usage)
        asked = dialogue.turns_with_opening if prompt is None and messages is None else messages
        self._record_response(response, prompt, asked, [_output(generation)], kwargs)
        return generation

    async def acall(
        self, prompt: Any = None, *, messages: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> list[Any]:
        """Return what DSPy's own method returns."""
        dialogue = read_dialogue(messages or [_user(prompt)], {**self.kwargs, **kwargs})
        count = kwargs.get("n") or self.kwargs.get("n") or 1
        return [_output(await self.ask(dialogue, prompt, messages, **kwargs)) for _ in range(count)]

    def __call__(self, prompt: Any = None, *, messages: list[dict[str, Any]] | None = None, **kwargs: Any) -> list[Any]:
        """Return what DSPy's own method returns."""
        run = background_loop().run if dspy.settings.send_stream is None else run_blocking
        return run(self.acall(prompt, messages=messages, **kwargs))

    async def _reply(self, dialogue: Dialogue) -> Generation:
        keeper: KeptCalls | None = dspy.settings.get(KEPT)
        seeds = keeper.seeds if keeper else self._seeds
        if seeds is not None and dialogue.sampling.get("temperature") and "seed" in dialogue.sampling:
            dialogue = _redraw(seeds, dialogue, self.model)
        if keeper is None:
            return cast("Generation", await self.live_engine.reply(dialogue))
        request = dialogue if getattr(self.live_engine, "takes_seed", True) else dialogue.with_seed(None)
        with _lock:
            place, keeper.fault = len(keeper.calls), None
            keeper.calls.append((request, None, self._asked))
        try:
            generation: Generation = await self.live_engine.reply(dialogue)
        except CALL_ERRORS as error:
            keeper.fault = error
            keeper.calls[place] = ModelCall.of(request, None, self._asked, f"{type(error).__name__}: {error}")
            raise
        keeper.calls[place] = ModelCall.of(request, generation, self._asked)
        return replace(generation, place=place)

    def choose(self, prompt: str, options: Sequence[str]) -> str:
        """Choose the one of `options` that the model answers `prompt` with; it cannot write anything else.

        The prompt is a user's message in the model's chat template. The model chooses token by token.
        """
        return self._ask_once(prompt, choices=tuple(options)).words

    def score(self, prompt: str, texts: Sequence[str], *, chat: bool = False) -> tuple[Continuation, ...]:
        """Score how likely the model finds each of `texts` right behind `prompt`: log-probabilities of tokens, in nats.

        A leading space is part of a text. The prompt is plain text; with `chat`, a user's message in the chat template,
        and the texts begin the reply. `total` of a result is the whole text's log-probability. Raises
        `LogprobsUnavailableError` if the model's server tells none.
        """
        request = ContinuationRequest(texts=tuple(texts), template=chat)
        reading = self._ask_once(prompt, continuations=request).logprobs
        assert reading is not None  # noqa: S101 - it was asked for
        return reading.continuations

    def _ask_once(self, prompt: str, **more: Any) -> Generation:
        sampling = read_sampling({"temperature": self.kwargs.get("temperature")})
        with dspy_faults():
            return background_loop().run(self._reply(Dialogue([_user(prompt)], "", sampling, **more)))


def build_lm(model: ModelSpec, engine: Any, *, draws: bool = False, asked: str | None = None) -> EngineLM:
    """Build the language model of a spec over an engine; `draws` and `asked` are those of `EngineLM`."""
    sampling = {"top_p": model.top_p, "top_k": model.top_k, "stop": list(model.stop) or None}
    lm = EngineLM(
        engine,
        f"{OURS}{model.label}",
        draws=draws,
        asked=asked,
        temperature=model.temperature,
        max_tokens=model.max_tokens or None,
        seed=model.seed,
        **{name: value for name, value in sampling.items() if value is not None},
    )
    lm.spec = model
    return lm


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _output(generation: Generation) -> Any:
    """Return a reply as a call of DSPy's chat models does: its text, or its parts if there is more."""
    text = generation.words or (None if generation.refused or generation.tool_calls else "")
    calls = [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": json.dumps(one.args)}}
        for one in generation.tool_calls
    ]
    more = {"reasoning_content": generation.thinking, "tool_calls": calls}
    return {"text": text, **{name: part for name, part in more.items() if part}} if any(more.values()) else text


async def ask_model(lm: dspy.BaseLM, dialogue: Dialogue, *, rollout_id: Any = None) -> Generation:
    """Return the reply of a model to a dialogue; raises DSPy's errors."""
    if isinstance(lm, EngineLM):
        return cast("Generation", await lm.ask(dialogue))
    options = {} if rollout_id is None else {"rollout_id": rollout_id}
    return read_generation(await lm.acall(build_request(lm.model, dialogue), **options))


def in_bulk(lm: dspy.BaseLM | None, others: Mapping[str, dspy.BaseLM] = MappingProxyType({})) -> Any:
    """Return a context of DSPy in which questions are asked of `lm` and nobody reads what the calls leave behind.

    `others` are the experiment's further models, by name.
    """
    return dspy.context(lm=lm, disable_history=True, trace=None, **({OTHER_MODELS: others} if others else {}))


def find_lm(name: str | None, temperature: float | None) -> dspy.BaseLM | None:
    """Find the further model of this name (None: the run's), at another temperature unless that is None.

    None where it is the run's as it is, and where prompts are looked at without asking.
    """
    others: Mapping[str, dspy.BaseLM] | None = dspy.settings.get(OTHER_MODELS)
    lm: dspy.BaseLM | None = dspy.settings.lm if name is None or others is None else others[name]
    if temperature is None or lm is None:
        return None if lm is dspy.settings.lm else lm
    copied: dspy.BaseLM = lm.copy(temperature=temperature)
    return copied


async def _wait(work: Coroutine[Any, Any, T]) -> T:
    return await work


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns, in a thread that waits; a loop that runs in this one does not matter."""
    if dspy.settings.send_stream is not None:
        # `dspy.streamify` called this thread, and its loop takes what is streamed.
        return anyio.from_thread.run(_wait, work)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, "medexam-program") as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()


def keep_passages(hits: Iterable[Hit]) -> tuple[RetrievedPassage, ...]:
    """Return what a prediction keeps of hits."""
    return tuple(RetrievedPassage(id=hit.passage.id, source=hit.passage.source, score=hit.score) for hit in hits)


NO_SCORES: Mapping[str, None] = dict.fromkeys(
    ("option_scores", "score_unit", "score_norm", "label_mass", "order_scores", "read_by", "read_why")
)
"""The fields of a prediction that weigh its options, empty."""


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
_NOWAY = Way()
WAY: ContextVar[Way] = ContextVar("way", default=_NOWAY)


@contextmanager
def asked_by(
    lm: dspy.BaseLM | None = None,
    *,
    seeds_later: int = 0,
    given: Given | None = None,
    **inputs: Any,
) -> Iterator[None]:
    """Have the calls in the block made so, within the way of the block around."""
    way = WAY.get()
    seeds = way.seeds_later + seeds_later
    token = WAY.set(Way(lm or way.lm, {**inputs, **way.inputs}, seeds, given or way.given))
    try:
        yield
    finally:
        WAY.reset(token)


@contextmanager
def own_way() -> Iterator[Way]:
    """Give the way of the block around to code that makes its calls itself, in which there is none."""
    way, token = WAY.get(), WAY.set(_NOWAY)
    try:
        yield way
    finally:
        WAY.reset(token)


def user_turn(text: str) -> ChatMessage:
    """Return the user's turn: a text behind the passages, if the way of the block shows some."""
    return {"role": "user", "content": "\n\n".join(filter(None, (WAY.get().inputs.get("passages"), text)))}


def sampling_of(lm: dspy.BaseLM, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a call's reply is written: its own settings over the model's; it ends at what either of them names."""
    settings, stop = {**lm.kwargs, **overrides}, list[str]()
    for texts in (overrides.get("stop") or (), lm.kwargs.get("stop") or ()):
        stop += [texts] if isinstance(texts, str) else texts
    settings["stop"] = stop
    return {name: settings[name] for name in SAMPLED if settings.get(name) not in (None, [])}


class AskingProgram(dspy.Module):
    """Base of the programs that ask a model, whatever a question is.

    Called with `question=`, it returns a `dspy.Prediction` of the fields of `medexam.Prediction` that it fills, and of
    `generation`, the reply that the answer stands in; without one, that is the last reply. The model is the one of
    `dspy.configure` or `set_lm`.
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

    async def aforward(self, question: Any) -> dspy.Prediction:
        """Answer one question; what derives from this class says how."""
        raise NotImplementedError

    def forward(self, question: Any) -> dspy.Prediction:
        """Answer one question, in a thread that waits."""
        check_question(question)
        return run_blocking(self.aforward(question))

    async def ask(
        self,
        predictor: dspy.Predict,
        turns: list[ChatMessage],
        settings: Mapping[str, Any] | None = None,
        opening: str = "",
        **more: Any,
    ) -> Generation:
        """Ask once under a predictor's settings and these, for a reply that continues its opening.

        The model is the predictor's own, that of the way, or that of DSPy's context. `more` are further fields of the
        `Dialogue`. Raises `ContextWindowExceededError` where the prompt does not fit the model's context, DSPy's other
        errors, and `ValueError` if there is no model.
        """
        way = WAY.get()
        lm: dspy.BaseLM | None = predictor.lm or way.lm or dspy.settings.lm
        if lm is None:
            raise ValueError("No LM is loaded: call dspy.configure(lm=...) first")
        config = vars(predictor)["config"]
        sampling = {**sampling_of(lm, config), **(settings or {})}
        if way.seeds_later:
            sampling["seed"] = (lm.kwargs.get("seed") or 0) + way.seeds_later
        # Nothing is sampled where texts are read in plain text or a dialogue of their own.
        dialogue = Dialogue(turns, opening, **{"sampling": sampling, **more})
        return await ask_model(lm, dialogue, rollout_id=config.get("rollout_id", lm.kwargs.get("rollout_id")))

    async def ask_words(
        self, predictor: dspy.Predict, system: str, text: str, prefill: str = "", choices: Sequence[str] = ()
    ) -> Generation:
        """Ask a text behind a system turn, if there is one; return the reply with what it was begun with."""
        turns = [*([{"role": "system", "content": system}] if system else []), user_turn(text)]
        generation = await self.ask(predictor, turns, opening=prefill, choices=tuple(choices) or None)
        return replace(generation, text=prefill + (generation.text or ""))


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
