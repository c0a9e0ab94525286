"""The `embedded` engine: a transformers model in this process, no server.

Requests come from any number of threads and event loops; one thread owns the model and answers them in padded batches.
The engine knows messages, tokens and choices, and nothing of questions.

A reply's greedy tokens do not depend on the requests that share its batch, except if two tokens are equally likely to
within the rounding of a sum (about 1e-5 in float32): padding changes the order of summation.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby

from medexam.errors import ConfigurationError, EngineError, UnsupportedFeatureError
from medexam.model_calls import Dialogue, Generation
from medexam.model_identity import ModelIdentity
from medexam.serve.chat_messages import no_sight, no_template, plain_text
from medexam.serve.contract import EngineInfo
from medexam.serve.local_model.jobs import Job, answer, choose_text, score_texts, write_reply
from medexam.serve.local_model.model import LocalModel
from medexam.specs import EngineNeeds
from medexam.specs.model import ModelSpec
from medexam.specs.programs.needs import NO_NEEDS

_LIMITS = {
    ("cpu", False): (2_048, 32),
    ("cpu", True): (4_096, 16),
    ("cuda", False): (16_384, 1_024),
    ("cuda", True): (65_536, 256),
}
"""Device, and whether replies are written -> tokens of a batch, padding included, and its rows.

On a CPU, reading prompts is bound by arithmetic: larger batches gain nothing and no longer fit into its caches. Writing
is bound by loading the weights, which a step does once for all its rows; its tokens bound the keys and values, which
are 46 KB a token for SmolLM2 in 32 bits."""
_QUIET_S = 0.004
"""Requests are answered together when nothing has arrived for this long, in which callers send their next ones."""

_Pair = tuple["Future[Generation]", Job]


class EmbeddedEngine:
    """Answers with a model that it loads from a folder, the hub, or the SmolLM2 wheel.

    Raises `EngineError` if the model cannot be loaded, or has no chat template and `needs` one, or if `needs` has
    pictures.
    """

    concurrency = 256

    def __init__(self, spec: ModelSpec | None = None, needs: EngineNeeds = NO_NEEDS) -> None:
        spec = spec or ModelSpec()
        if needs.pictures:
            raise EngineError(f"engine embedded has {no_sight(spec.label)}")
        self._model = LocalModel(spec)
        if needs.chat and self._model.template is None:
            raise EngineError(f"engine embedded has {no_template(self._model.label)}")
        self._requests: deque[tuple[Future[Generation], Dialogue]] = deque()
        # Its thread ends with the engine that nobody holds any more.
        self._thread = ThreadPoolExecutor(1, "medexam-embedded")
        self._closed = False

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the reply to one dialogue; the event loop stays free meanwhile."""
        if self._closed:
            raise ConfigurationError("the embedded engine is closed; build another")
        future: Future[Generation] = Future()
        self._requests.append((future, dialogue))
        self._thread.submit(self._answer)
        return await asyncio.wrap_future(future)

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        model = self._model
        return EngineInfo(
            engine="embedded",
            model=model.label,
            identity=ModelIdentity(engine="embedded", name=model.label, content=model.content, dtype=model.dtype_name),
            revision=model.content,
            max_context=model.max_context,
            chat_template=model.template,
            system_turn=None if model.rules is None else "kept" if model.rules.system else "merged",
            guided_by="next_token",
            details=model.details(),
        )

    async def aclose(self) -> None:
        """Answer what is pending; the last reference to a closed engine frees its weights."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown)

    def _answer(self) -> None:
        """Answer what is queued, perhaps nothing: each request brings one call, and a call answers many."""
        count = 0
        while count < len(self._requests) and count < self.concurrency:
            count = len(self._requests)
            time.sleep(_QUIET_S)
        pairs: list[_Pair] = []
        for future, dialogue in [self._requests.popleft() for _ in range(count)]:
            # A claimed request can no longer be cancelled, so that its result can be set.
            if future.set_running_or_notify_cancel():
                try:
                    pairs.append((future, self._to_job(dialogue)))
                except Exception as error:  # one that cannot be tokenised must not fail the others
                    future.set_exception(error)
        for batch in _cut(pairs, "cuda" if self._model.device.type == "cuda" else "cpu"):
            try:
                replies = answer(self._model, [job for _, job in batch])
            except Exception as error:  # its callers would wait for ever
                for future, _ in batch:
                    future.set_exception(error)
                continue
            for (future, _), reply in zip(batch, replies, strict=True):
                future.set_result(reply)

    def _to_job(self, dialogue: Dialogue) -> Job:
        model, choices, continuations = self._model, dialogue.choices, dialogue.continuations
        features = {
            **dialogue.fields,
            "frequency_penalty": dialogue.sampling.get("frequency_penalty"),
            "presence_penalty": dialogue.sampling.get("presence_penalty"),
            "calls of tools, nor pictures": dialogue.turns or dialogue.pictures,
        }
        if unsupported := next((feature for feature, setting in features.items() if setting), None):
            raise UnsupportedFeatureError(f"the embedded engine does not support {unsupported}", feature=unsupported)
        if dialogue.plain or (continuations is not None and not continuations.template):
            text = plain_text(dialogue)
        else:
            choosing = choices is not None or continuations is not None
            text = model.render(dialogue.messages, dialogue.opening, choosing=choosing)
        if continuations is not None:
            return score_texts(model, text, continuations)
        if choices is not None and not dialogue.plain:
            return choose_text(model, text, choices, dialogue.sampling)
        return write_reply(model, text, dialogue.sampling, special=dialogue.plain)


def _cut(pairs: list[_Pair], device: str) -> Iterator[list[_Pair]]:
    """Cut jobs into batches of one group each, neighbours in length, none over the limits unless it is one job."""
    for group, members in groupby(
        sorted(pairs, key=lambda pair: (repr(pair[1].group), pair[1].tokens)), lambda pair: pair[1].group
    ):
        tokens, rows = _LIMITS[device, group is not None]
        batch: list[_Pair] = []
        count = 0
        for pair in members:
            length, more = pair[1].tokens, len(pair[1].rows)
            if batch and (count + more > rows or (count + more) * length > tokens):
                yield batch
                batch, count = [], 0
            batch.append(pair)
            count += more
        yield batch
