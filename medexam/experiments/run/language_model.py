"""A live engine as the language model that DSPy asks."""

from collections.abc import Sequence
from typing import Any, Protocol

import dspy

from medexam.dspy_internals import dspy_faults
from medexam.model_calls import Continuation, ContinuationRequest, Dialogue, Generation, Sampling
from medexam.programs import AsyncRecordingEngine, RecordingEngine
from medexam.programs.recording import Draws
from medexam.serve.contract import SyncTwin
from medexam.specs import ModelSpec


class Askable(Protocol):
    """What DSPy asks: a model, and its synchronous twin."""

    @property
    def sync(self) -> SyncTwin:
        """The same model for synchronous callers."""
        ...

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample."""
        ...


class EngineLM(dspy.LM):
    """A `dspy.LM` that can also choose among texts and read how likely texts are."""

    direct_engine: AsyncRecordingEngine | None = None
    """What it asks, where nothing of DSPy's stands between."""
    spec: ModelSpec | None = None
    """What it was built from."""
    live_engine: Askable | None = None
    """What it asks, behind the recorder."""
    shares_prompts: bool = False
    """Whether one request brings several replies to its prompt."""

    def _get_initial_kwargs(self, *, temperature: Any, max_tokens: Any, **kwargs: Any) -> dict[str, Any]:
        """Keep the arguments that are given: DSPy refuses, or renames, budgets and temperatures by models' names."""
        options = {name: value for name, value in kwargs.items() if name != "rollout_id" or value is not None}
        return {"temperature": temperature, "max_tokens": max_tokens, **options}

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
        dialogue = Dialogue([{"role": "user", "content": prompt}], "", sampling, **more)
        engine: RecordingEngine = self.engine
        with dspy_faults():
            return engine.reply(dialogue)[0]


def build_lm(model: ModelSpec, engine: Askable, draws: Draws | None = None, *, asked: str | None = None) -> EngineLM:
    """Build a language model for DSPy over an engine, which alone retries and never caches.

    `asked` is its name in the spec where it is a further model.

    With `draws`, equal requests at a temperature get one seed after the other. Without, only those of one question of a
    module of the user's own do.
    """
    sampling = {"top_p": model.top_p, "top_k": model.top_k, "stop": list(model.stop) or None}
    name = f"medexam/{model.label}"
    recorder = AsyncRecordingEngine(engine, draws, model=name, asked=asked)
    lm = EngineLM(
        model=name,
        engine=RecordingEngine(engine.sync, draws, declaring=engine, model=name, asked=asked),
        async_engine=recorder,
        cache=False,
        num_retries=0,
        temperature=model.temperature,
        max_tokens=model.max_tokens or None,
        seed=model.seed,
        **{name: value for name, value in sampling.items() if value is not None},
    )
    lm.direct_engine, lm.live_engine, lm.spec = recorder, engine, model
    lm.shares_prompts = getattr(engine, "shares_prompts", False)
    return lm


class _Unasked:
    """An engine that is never asked: `look` puts stored replies in its place."""

    sync: Any = None
    shares_prompts = False

    async def reply(self, dialogue: Dialogue) -> list[Generation]:  # noqa: ARG002
        """Raise `AssertionError`."""
        raise AssertionError


def unasked_lm(model: ModelSpec, *, asked: str | None = None) -> EngineLM:
    """Build the language model of a spec as `build_lm` does, over no engine; for looks at stored calls."""
    return build_lm(model, _Unasked(), asked=asked)
