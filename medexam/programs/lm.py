"""Where programs meet DSPy's language models: one `dspy.LM` over an engine, which keeps every call of a question.

Programs that ship ask it by dialogues, and modules of the user's own as DSPy asks any model. Both end in the engine's
`reply`.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, cast, get_type_hints

import dspy
from dspy.lm15 import Request, Response
from dspy.utils.usage_tracker import UsageTracker

from medexam.dspy_internals import CALL_ERRORS, chat_output, current_settings, dspy_errors, dspy_faults
from medexam.dspy_requests import build_request, read_dialogue, read_generations, stream_response, write_response
from medexam.event_loop import background_loop
from medexam.model_calls import Continuation, ContinuationRequest, Dialogue, Generation, Sampling
from medexam.predictions.calls import ModelCall
from medexam.programs.kept import CALLS, KEPT, Calls, Draws, KeptCalls
from medexam.specs import ModelSpec

T = TypeVar("T")
OTHER_MODELS = "medexam_models"
"""Setting of DSPy's context: the experiment's further models, by name."""
_SAMPLING = frozenset(get_type_hints(Sampling)) - {"samples"}
"""Settings of a call that a dialogue has room for."""


class Askable(Protocol):
    """What a language model asks: an engine."""

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample."""
        ...


class OtherModelError(BaseException):
    """Code of a question's program asks another model than the run's, whose calls nobody would keep or count.

    No `Exception`: code that asks it may take those for faults of the model.
    """

    def __init__(self, model: str) -> None:
        """Name the model."""
        super().__init__(
            f"{model} is not the run's model: ask dspy.settings.lm, name further models in `models` of "
            "a program of steps, or use medexam.Evaluate, where a module may ask any model"
        )


def held_models(program: Any) -> list[dspy.BaseLM]:
    """Return the models that a module and its parts hold; none of what is no module of DSPy's."""
    if not isinstance(program, dspy.Module):
        return []
    parts = [program, *(part for _, part in program.named_sub_modules())]
    return [value for part in parts for value in vars(part).values() if isinstance(value, dspy.BaseLM)]


def refuse_models(program: dspy.Module) -> None:
    """Have the models that a module holds, and their copies, raise `OtherModelError` before they are asked."""
    for lm in held_models(program):
        lm.__class__ = _refusing(cast("Any", type(lm)))


@cache
def _refusing(kind: Any) -> type:
    """Return a class of models that refuses each call, and is the same in all else."""

    def refuse(self: Any, *_: Any, **__: Any) -> None:
        raise OtherModelError(self.model)

    async def arefuse(self: Any, *_: Any, **__: Any) -> None:
        raise OtherModelError(self.model)

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__call__": refuse, "acall": arefuse}
    return type(kind.__name__, (kind,), names)


class OnlyModel(UsageTracker):
    """Raises `OtherModelError` where a call of another model than one is told to DSPy's count of tokens."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Note a call that was made."""
        if lm != self._model:
            raise OtherModelError(lm)
        super().add_usage(lm, usage_entry)


@dataclass
class _Sent:
    """One call of a model."""

    dialogue: Dialogue
    generations: list[Generation] = field(default_factory=list)
    """The replies, when they are there."""


class _Recorder:
    """Asks an engine, and keeps what it was asked and said; DSPy's requests are read, and its responses written."""

    def __init__(self, engine: Askable, draws: Draws | None, model: str, asked: str | None) -> None:
        """Keep calls; `draws` counts those that nobody keeps, None where those keep their seeds.

        The engine says what the model takes in the form of its server; one that says nothing takes words alone. Models
        of one name draw an equal dialogue under one seed after the other. `asked` is the name of a further model in the
        spec.
        """
        self.engine = engine
        self._draws = draws
        self._model = model
        self._asked = asked
        self.takes_seed: bool = getattr(engine, "takes_seed", True)

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the engine's replies, under their seeds where they were drawn."""
        with self._call(dialogue) as call:
            call.generations = await self.engine.reply(call.dialogue)
        return call.generations

    def reply_blocking(self, dialogue: Dialogue) -> list[Generation]:
        """Return the same in a thread that waits."""
        with self._call(dialogue) as call:
            call.generations = background_loop().run(self.engine.reply(call.dialogue))
        return call.generations

    @contextmanager
    def _call(self, dialogue: Dialogue) -> Iterator[_Sent]:
        """Keep the call in the block."""
        settings = current_settings()
        calls: Calls | None = settings.get(CALLS)
        keeper: KeptCalls | None = settings.get(KEPT)
        draws = calls.draws if calls else self._draws
        call = _Sent(draws.redraw(dialogue, self._model) if draws else dialogue)
        sent = call.dialogue if self.takes_seed else call.dialogue.with_seed(None)
        record, sampling = ModelCall.of(sent, self._asked), sent.sampling
        places = keeper.begin(record, sampling.samples) if keeper else range(0)
        try:
            with calls.noting_fault() if calls else nullcontext():
                yield call
        except CALL_ERRORS as error:
            if keeper is not None:
                for place in places:
                    keeper.end(place, replace(record, fault=f"{type(error).__name__}: {error}"))
            raise
        seed = sampling.drawn_seed
        if seed is not None or keeper:
            call.generations = [
                replace(
                    one,
                    seed=None if seed is None else seed + number,
                    place=places[number] if number < len(places) else None,
                )
                for number, one in enumerate(call.generations)
            ]
        if keeper is not None:
            for number, (place, generation) in enumerate(zip(places, call.generations, strict=False)):
                keeper.end(place, record.with_reply(generation, number))
        if calls is not None:
            calls.generations.append(call.generations[0])


class _DSPyEngine:
    """A recorder under the names by which DSPy asks an engine and looks up what its model takes."""

    def __init__(self, recorder: _Recorder) -> None:
        self.recorder = recorder
        engine = recorder.engine
        self.supports_function_calling: bool = getattr(engine, "supports_function_calling", False)
        self.supports_response_schema: bool = getattr(engine, "supports_response_schema", False)
        self.supported_params = frozenset(getattr(engine, "supported_params", ()))

    def _write(self, generations: list[Generation]) -> Response:
        return write_response(generations, takes_seed=self.recorder.takes_seed)


class _BlockingEngine(_DSPyEngine):
    def complete(self, request: Request) -> Response:
        """Return the engine's reply to a request of DSPy's."""
        with dspy_faults():
            return self._write(self.recorder.reply_blocking(_read(request)))

    def stream(self, request: Request) -> Iterator[Any]:
        """Yield the events of the reply, which comes whole, as `dspy.streamify` reads them."""
        yield from stream_response(self.complete(request))


class _AsyncEngine(_DSPyEngine):
    async def complete(self, request: Request) -> Response:
        """Return the engine's reply to a request of DSPy's."""
        with dspy_faults():
            return self._write(await self.recorder.reply(_read(request)))

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """Yield the events of the reply, which comes whole, as `dspy.streamify` reads them."""
        for event in stream_response(await self.complete(request)):
            yield event


def _read(request: Request) -> Dialogue:
    calls: Calls | None = dspy.settings.get(CALLS)
    with calls.noting_fault() if calls else nullcontext():
        return read_dialogue(request)


class EngineLM(dspy.LM):
    """A `dspy.LM` over an engine, which alone retries and never caches. It can also choose among texts and score them.

    Where nothing of DSPy's listens, a call of texts goes to the engine as it is.
    """

    def __init__(
        self, engine: Askable, model: str, draws: Draws | None = None, *, asked: str | None = None, **sampling: Any
    ) -> None:
        """Ask `engine`, under a name of `model`; `sampling` are settings of every call.

        With `draws`, equal requests at a temperature get one seed after the other. Without, only those of one question
        of a module of the user's own do. `asked` is its name in the spec where it is a further model.
        """
        self.recorder = _Recorder(engine, draws, model, asked)
        self.live_engine = engine
        self.shares_prompts: bool = getattr(engine, "shares_prompts", False)
        """Whether one request brings several replies to its prompt."""
        self.spec: ModelSpec | None = None
        """What it was built from; None if it was built from no spec."""
        super().__init__(
            model,
            engine=_BlockingEngine(self.recorder),
            async_engine=_AsyncEngine(self.recorder),
            cache=False,
            num_retries=0,
            **sampling,
        )

    def _get_initial_kwargs(self, *, temperature: Any, max_tokens: Any, **kwargs: Any) -> dict[str, Any]:
        """Keep the arguments that are given: DSPy refuses, or renames, budgets and temperatures by models' names."""
        options = {name: value for name, value in kwargs.items() if name != "rollout_id" or value is not None}
        return {"temperature": temperature, "max_tokens": max_tokens, **options}

    async def acall(
        self, prompt: Any = None, *, messages: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> list[Any]:
        """Return what DSPy's own method returns."""
        if (dialogue := self._plain(prompt, messages, kwargs)) is None:
            outputs: list[Any] = await super().acall(prompt, messages=_drop_filenames(messages), **kwargs)
            return outputs
        with dspy_errors(self.model):
            return [_output(generation) for generation in await self.recorder.reply(dialogue)]

    def __call__(self, prompt: Any = None, *, messages: list[dict[str, Any]] | None = None, **kwargs: Any) -> list[Any]:
        """Return what DSPy's own method returns."""
        if (dialogue := self._plain(prompt, messages, kwargs)) is None:
            outputs: list[Any] = super().__call__(prompt, messages=_drop_filenames(messages), **kwargs)
            return outputs
        with dspy_errors(self.model):
            return [_output(generation) for generation in self.recorder.reply_blocking(dialogue)]

    def _plain(self, prompt: Any, messages: list[dict[str, Any]] | None, kwargs: Mapping[str, Any]) -> Dialogue | None:
        """Return a call of texts as a dialogue; None where it says more, or DSPy's listeners are to hear of it."""
        all_options = {**self.kwargs, **kwargs}
        settings = {name: value for name, value in all_options.items() if value is not None and name != "cache"}
        turns = messages if messages is not None or not isinstance(prompt, str) else [_user(prompt)]
        if turns is None or settings.keys() - _SAMPLING or self.callbacks or is_heard():
            return None
        if not turns or not all(len(turn) == 2 and isinstance(turn.get("content"), str) for turn in turns):
            return None
        if isinstance(settings.get("stop"), str):
            settings["stop"] = [settings["stop"]]
        dialogue = Dialogue.of(turns, Sampling.of(settings))
        return dialogue if _is_whole(dialogue) else None

    def choose(self, prompt: str, options: Sequence[str]) -> str:
        """Choose the one of `options` that the model answers `prompt` with; it cannot write anything else.

        The prompt is a user's message in the model's chat template. The model chooses token by token.
        """
        return self._ask(prompt, choices=tuple(options)).words

    def score(self, prompt: str, texts: Sequence[str], *, chat: bool = False) -> tuple[Continuation, ...]:
        """Score how likely the model finds each of `texts` right behind `prompt`: log-probabilities of tokens, in nats.

        A leading space is part of a text. The prompt is plain text; with `chat`, a user's message in the chat template,
        and the texts begin the reply. `total` of a result is the whole text's log-probability. Raises
        `LogprobsUnavailableError` if the model's server tells none.
        """
        request = ContinuationRequest(texts=tuple(texts), template=chat)
        reading = self._ask(prompt, continuations=request).reading
        assert reading is not None  # noqa: S101 - it was asked for
        return reading.continuations

    def _ask(self, prompt: str, **more: Any) -> Generation:
        sampling = Sampling(temperature=self.kwargs.get("temperature"))
        with dspy_faults():
            return self.recorder.reply_blocking(Dialogue([_user(prompt)], "", sampling, **more))[0]


def build_lm(model: ModelSpec, engine: Askable, draws: Draws | None = None, *, asked: str | None = None) -> EngineLM:
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


def _is_whole(dialogue: Dialogue) -> bool:
    """Return whether an engine takes a dialogue as it is; DSPy says what is wrong with any other."""
    return dialogue.is_encodable and not dialogue.has_empty_turn and bool(dialogue.messages)


def _output(generation: Generation) -> Any:
    """Return a reply as a call of DSPy's chat models does."""
    is_text = generation.text is None and not generation.tool_calls
    return generation.words if is_text else chat_output(write_response([generation]))


def is_heard() -> bool:
    """Return whether anything of DSPy's listens to calls of a model; a trace hears of predictors alone."""
    settings = current_settings()
    tracker = settings["usage_tracker"]
    counts = settings["track_usage"] or (tracker is not None and type(tracker) is not OnlyModel)
    listeners = counts or settings["callbacks"] or settings["send_stream"]
    return bool(listeners) or not settings["disable_history"]


async def ask_model(lm: dspy.BaseLM, dialogue: Dialogue, *, rollout_id: Any = None) -> list[Generation]:
    """Return the replies of a model to a dialogue, one for each sample, under their seeds where they were drawn.

    Raises DSPy's errors.
    """
    seed = dialogue.sampling.drawn_seed
    if isinstance(lm, EngineLM) and not (rollout_id or lm.callbacks or is_heard()) and _is_whole(dialogue):
        with dspy_errors(lm.model):
            generations = await lm.recorder.reply(dialogue)
        return generations if seed is not None else [replace(generation, seed=None) for generation in generations]
    options = {} if rollout_id is None else {"rollout_id": rollout_id}
    response: Response = await lm.acall(build_request(lm.model, dialogue), **options)
    return read_generations(response, dialogue, seed)


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
