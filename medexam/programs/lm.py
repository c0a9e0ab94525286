"""Where programs meet DSPy's language models: one `dspy.LM` over an engine, which keeps every call of a question.

Programs that ship ask it by dialogues, and modules of the user's own as DSPy asks any model. Both end in the engine's
`reply`.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

import dspy
from dspy.lm15 import Request, Response, StreamDeltaEvent, TextDelta, response_to_events
from dspy.utils.callback import BaseCallback
from dspy.utils.usage_tracker import UsageTracker

from medexam.dspy_internals import CALL_ERRORS, dspy_errors, dspy_faults
from medexam.dspy_requests import build_request, is_words, read_dialogue, read_generation, write_response
from medexam.event_loop import background_loop
from medexam.model_calls import SAMPLED, Continuation, ContinuationRequest, Dialogue, Generation, Sampling
from medexam.predictions.calls import ModelCall
from medexam.programs.kept import CALLS, KEPT, Calls, Draws, KeptCalls, OverError
from medexam.specs import ModelSpec
from medexam.text import writable

T = TypeVar("T")
OTHER_MODELS = "medexam_models"
"""Setting of DSPy's context: the experiment's further models, by name."""
_PIECE = 16
"""Characters of a piece of a streamed reply, a few tokens."""


_OTHER_MODEL = (
    "{} is not the run's model: ask dspy.settings.lm, name further models in `models` of a program of steps, or use "
    "medexam.Evaluate, where a module may ask any model"
)


class OtherModelError(BaseException):
    """Code of a question's program asks another model than the run's, whose calls nobody would keep or count.

    No `Exception`: code that asks it may take those for faults of the model.
    """


class OnlyModel(UsageTracker, BaseCallback):
    """Raises `OtherModelError` where another model than one is asked.

    As a callback of other models before they are asked, and as DSPy's count of tokens when a call is told to it.
    """

    def __init__(self, model: str | None = None) -> None:
        super().__init__()
        self._model = model

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:  # noqa: ARG002
        """Refuse the model whose callback this is."""
        raise OtherModelError(_OTHER_MODEL.format(instance.model))

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Note a call that was made."""
        if lm != self._model:
            raise OtherModelError(_OTHER_MODEL.format(lm))
        super().add_usage(lm, usage_entry)


def held_models(program: Any) -> list[dspy.BaseLM]:
    """Return the models that a module and its parts hold; none of what is no module of DSPy's."""
    if not isinstance(program, dspy.Module):
        return []
    parts = [program, *(part for _, part in program.named_sub_modules())]
    return [value for part in parts for value in vars(part).values() if isinstance(value, dspy.BaseLM)]


@dataclass
class _Handed:
    """What goes past DSPy while it makes a call of ours."""

    dialogue: Dialogue | None = None
    """What is asked, if a program that ships asks."""
    turns: list[dict[str, Any]] | None = None
    """The messages in OpenAI's chat dialect, if DSPy was given such."""
    generations: list[Generation] = field(default_factory=list)
    """The replies, when they are there."""


_HANDED = "medexam_handed"
"""Setting of DSPy's context: the `_Handed` of a call."""


class _KeepingEngine:
    """An engine as DSPy asks one, which keeps what it was asked and said."""

    def __init__(self, engine: Any, draws: Draws | None, model: str, asked: str | None) -> None:
        """Keep calls; `draws` counts those that nobody keeps, None where those keep their seeds.

        The engine says what the model takes in the form of its server; one that says nothing takes words alone. Models
        of one name draw an equal dialogue under one seed after the other. `asked` is the name of a further model in the
        spec.
        """
        self._engine = engine
        self._draws = draws
        self._model = model
        self._asked = asked
        self.supports_function_calling: bool = getattr(engine, "supports_function_calling", False)
        self.supports_response_schema: bool = getattr(engine, "supports_response_schema", False)
        self.supported_params = frozenset(getattr(engine, "supported_params", ()))

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the engine's replies, with their places among the calls that are kept."""
        calls: Calls | None = dspy.settings.get(CALLS)
        keeper: KeptCalls | None = dspy.settings.get(KEPT)
        if draws := calls.draws if calls else self._draws:
            dialogue = draws.redraw(dialogue, self._model)
        sent = dialogue if getattr(self._engine, "takes_seed", True) else dialogue.with_seed(None)
        record = ModelCall.of(sent, self._asked)
        places = keeper.begin(record, sent.sampling.samples) if keeper else range(0)
        if calls is not None:
            if calls.over:
                raise OverError
            calls.fault = None
        try:
            generations: list[Generation] = await self._engine.reply(dialogue)
        except CALL_ERRORS as error:
            if calls is not None:
                calls.fault = error
            if keeper is not None:
                for place in places:
                    keeper.end(place, replace(record, fault=f"{type(error).__name__}: {error}"))
            raise
        if keeper is not None:
            generations = [replace(one, place=place) for place, one in zip(places, generations, strict=True)]
            for number, one in enumerate(generations):
                keeper.end(places[number], record.with_reply(one, number))
        if calls is not None:
            calls.generations.append(generations[0])
        return generations

    async def complete(self, request: Request) -> Response:
        """Return the engine's reply to a request of DSPy's, or to the dialogue that went past it."""
        handed: _Handed = dspy.settings.get(_HANDED)
        with dspy_faults():
            handed.generations = await self.reply(handed.dialogue or read_dialogue(request, handed.turns))
        return write_response(handed.generations[0])

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """Yield the events of the reply, which comes whole, as `dspy.streamify` reads them."""
        for event in _events(await self.complete(request)):
            yield event


class _BlockingEngine:
    """The same for threads that wait."""

    def __init__(self, engine: _KeepingEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def complete(self, request: Request) -> Response:
        """Return the engine's reply to a request of DSPy's."""
        return background_loop().run(self._engine.complete(request))

    def stream(self, request: Request) -> Iterator[Any]:
        """Yield the events of the reply."""
        yield from _events(self.complete(request))


def _events(response: Response) -> Iterator[Any]:
    """Yield the events of a reply, its text in pieces: a listener misses a field that begins and ends in one piece."""
    for event in response_to_events(response):
        delta = event.delta if isinstance(event, StreamDeltaEvent) else None
        if not isinstance(delta, TextDelta) or delta.logprobs:
            yield event
            continue
        for begin in range(0, len(delta.text), _PIECE):
            yield replace(event, delta=replace(delta, text=delta.text[begin : begin + _PIECE]))


class EngineLM(dspy.LM):
    """A `dspy.LM` over an engine, which alone retries and never caches. It can also choose among texts and score them.

    Where nothing of DSPy's listens, a call of texts goes to the engine as it is.
    """

    def __init__(
        self, engine: Any, model: str, draws: Draws | None = None, *, asked: str | None = None, **sampling: Any
    ) -> None:
        """Ask `engine`, under a name of `model`; `sampling` are settings of every call.

        With `draws`, equal requests at a temperature get one seed after the other. Without, only those of one question
        of a module of the user's own do. `asked` is its name in the spec where it is a further model.
        """
        self._keeping = _KeepingEngine(engine, draws, model, asked)
        self.live_engine = engine
        self.shares_prompts: bool = getattr(engine, "shares_prompts", False)
        """Whether one request brings several replies to its prompt."""
        self.spec: ModelSpec | None = None
        """What it was built from; None if it was built from no spec."""
        engines = {"engine": _BlockingEngine(self._keeping), "async_engine": self._keeping}
        super().__init__(model, **engines, cache=False, num_retries=0, **sampling)

    def _get_initial_kwargs(self, *, temperature: Any, max_tokens: Any, **kwargs: Any) -> dict[str, Any]:
        """Keep the arguments that are given: DSPy refuses, or renames, budgets and temperatures by models' names."""
        options = {name: value for name, value in kwargs.items() if name != "rollout_id" or value is not None}
        return {"temperature": temperature, "max_tokens": max_tokens, **options}

    async def ask(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to a dialogue, one for each sample; raises DSPy's errors."""
        if not self._is_heard():
            with dspy_errors(self.model):
                return await self._keeping.reply(dialogue)
        handed = _Handed(dialogue)
        with dspy.context(**{_HANDED: handed}):
            await super().acall(build_request(self.model, dialogue))
        return handed.generations

    async def acall(
        self, prompt: Any = None, *, messages: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> list[Any]:
        """Return what DSPy's own method returns."""
        if (dialogue := self._plain(prompt, messages, kwargs)) is None:
            with dspy.context(**{_HANDED: _Handed(turns=_drop_filenames(messages))}):
                outputs: list[Any] = await super().acall(prompt, messages=messages, **kwargs)
            return outputs
        return [*map(_output, await self.ask(dialogue))]

    def __call__(self, prompt: Any = None, *, messages: list[dict[str, Any]] | None = None, **kwargs: Any) -> list[Any]:
        """Return what DSPy's own method returns."""
        if (dialogue := self._plain(prompt, messages, kwargs)) is None:
            with dspy.context(**{_HANDED: _Handed(turns=_drop_filenames(messages))}):
                outputs: list[Any] = super().__call__(prompt, messages=messages, **kwargs)
            return outputs
        return [*map(_output, background_loop().run(self.ask(dialogue)))]

    def _is_heard(self) -> bool:
        """Return whether anything of DSPy's listens to its calls; a trace hears of predictors alone."""
        settings = dspy.settings
        counts = settings.track_usage or (settings.usage_tracker and type(settings.usage_tracker) is not OnlyModel)
        listeners = counts or settings.callbacks or self.callbacks or settings.send_stream
        return bool(listeners) or not settings.disable_history

    def _plain(self, prompt: Any, messages: list[dict[str, Any]] | None, kwargs: Mapping[str, Any]) -> Dialogue | None:
        """Return a call of texts as a dialogue; None where it says more, or DSPy's listeners are to hear of it.

        DSPy says what is wrong with texts that are empty or cannot be sent.
        """
        all_options = {**self.kwargs, **kwargs}
        settings = {name: value for name, value in all_options.items() if value is not None and name != "cache"}
        turns = [_user(prompt)] if messages is None and isinstance(prompt, str) else messages
        if not turns or settings.keys() - SAMPLED or self._is_heard() or not is_words(turns):
            return None
        texts = [turn["content"] for turn in turns]
        if not all(texts) or writable(texts) != texts:
            return None
        if isinstance(settings.get("stop"), str):
            settings["stop"] = [settings["stop"]]
        return Dialogue.of(turns, Sampling.of(settings))

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
        reading = self._ask_once(prompt, continuations=request).reading
        assert reading is not None  # noqa: S101 - it was asked for
        return reading.continuations

    def _ask_once(self, prompt: str, **more: Any) -> Generation:
        sampling = Sampling(temperature=self.kwargs.get("temperature"))
        with dspy_faults():
            return background_loop().run(self._keeping.reply(Dialogue([_user(prompt)], "", sampling, **more)))[0]


def build_lm(model: ModelSpec, engine: Any, draws: Draws | None = None, *, asked: str | None = None) -> EngineLM:
    """Build the language model of a spec over an engine; `draws` and `asked` are those of `EngineLM`."""
    sampling = {"top_p": model.top_p, "top_k": model.top_k, "stop": list(model.stop) or None}
    lm = EngineLM(
        engine,
        f"medexam/{model.label}",
        draws,
        asked=asked,
        temperature=model.temperature,
        max_tokens=model.max_tokens or None,
        seed=model.seed,
        **{name: value for name, value in sampling.items() if value is not None},
    )
    lm.spec = model
    return lm


def _drop_filenames(messages: Any) -> Any:
    """Take the names of files from messages, in place: DSPy's requests have no place for them, and refuse the file."""
    contents = [turn.get("content") for turn in messages or () if isinstance(turn, dict)]
    for part in (part for content in contents if isinstance(content, list) for part in content):
        if part.get("type") == "file":
            part["file"].pop("filename", None)
    return messages


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _output(generation: Generation) -> Any:
    """Return a reply as a call of DSPy's chat models does: its text, or its parts if its thinking stands apart."""
    text = generation.words or (None if generation.refused else "")
    return {"text": text, "reasoning_content": generation.thinking} if generation.thinking else text


async def ask_model(lm: dspy.BaseLM, dialogue: Dialogue, *, rollout_id: Any = None) -> list[Generation]:
    """Return the replies of a model to a dialogue, one for each sample; raises DSPy's errors."""
    if isinstance(lm, EngineLM):
        return await lm.ask(dialogue)
    options = {} if rollout_id is None else {"rollout_id": rollout_id}
    return [read_generation(await lm.acall(build_request(lm.model, dialogue), **options))]


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


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns, in a thread that waits; a loop that runs in this one does not matter."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, "medexam-program") as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()
