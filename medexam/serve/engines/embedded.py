"""The `embedded` engine: a transformers model in this process, no server.

Requests come from any number of threads and event loops; one thread owns the model and answers them in padded batches.
The engine knows messages, tokens and choices, and nothing of questions.

A reply's greedy tokens do not depend on the requests that share its batch, except if two tokens are equally likely to
within the rounding of a sum (about 1e-5 in float32): padding changes the order of summation.
"""

import asyncio
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

import torch

from medexam.errors import ConfigurationError, EngineError, ServerError, UnsupportedFeatureError
from medexam.model_calls import Dialogue, Generation
from medexam.model_identity import ModelIdentity
from medexam.serve.chat_messages import no_sight, no_template, plain_text
from medexam.serve.contract import EngineInfo
from medexam.serve.local_model.model import LocalModel
from medexam.serve.local_model.reading import ChoiceJob, ScoreJob, make_choice_job, make_score_job, read
from medexam.serve.local_model.weights import find_weights
from medexam.serve.local_model.writing import ReplyJob, make_reply_job, write
from medexam.serve.logprobs.tokens import split_tokens
from medexam.serve.thinking import CLOSED
from medexam.specs import EngineNeeds
from medexam.specs.model import ModelSpec
from medexam.specs.programs.needs import NO_NEEDS

_LIMITS = {
    ("cpu", read): (2_048, 32),
    ("cpu", write): (8_192, 16),
    ("cuda", read): (16_384, 1_024),
    ("cuda", write): (262_144, 256),
}
"""Tokens of a batch, padding included, and its rows.

On a CPU, reading prompts is bound by arithmetic: larger batches gain nothing and no longer fit into its caches. Writing
is bound by loading the weights, which a step does once for all its rows; its tokens bound the keys and values, which
are 46 KB a token for SmolLM2 in 32 bits."""
_QUIET_S = 0.004
"""Requests are answered together when nothing has arrived for this long, in which callers send their next ones. If
there is none, the thread ends, so that an engine that nobody holds frees its model."""

_Job = ChoiceJob | ScoreJob | ReplyJob


@dataclass
class _Request:
    """A dialogue, and where its replies go."""

    dialogue: Dialogue
    future: "Future[list[Generation]]" = field(default_factory=Future)

    def claim(self) -> bool:
        """Make it uncancellable; False if its caller has given up."""
        return not self.future.done() and self.future.set_running_or_notify_cancel()


class EmbeddedEngine:
    """Answers with a model that it loads from a folder, the hub, or the SmolLM2 wheel.

    Raises `EngineError` if the model cannot be loaded, or has no chat template and `needs` one, or if `needs` has
    pictures.
    """

    concurrency = 256
    shares_prompts = True
    """One request brings several replies to its prompt."""

    def __init__(self, spec: ModelSpec | None = None, needs: EngineNeeds = NO_NEEDS) -> None:
        spec = spec or ModelSpec()
        if needs.pictures:
            raise EngineError(f"engine embedded has {no_sight(spec.label)}")
        self._model = LocalModel(spec, find_weights(spec))
        if needs.chat and self._model.template is None:
            raise EngineError(f"engine embedded has {no_template(self._model.label)}")
        self._queue: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._closed = False

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample; the event loop stays free meanwhile."""
        return await asyncio.wrap_future(self.submit(dialogue))

    def submit(self, dialogue: Dialogue) -> "Future[list[Generation]]":
        """Queue a dialogue from any thread."""
        request = _Request(dialogue)
        with self._lock:
            if self._closed:
                raise ConfigurationError("the embedded engine is closed; build another")
            self._queue.put(request)
            if self._thread is None:
                self._thread = Thread(target=self._work, name="medexam-embedded", daemon=True)
                self._thread.start()
        return request.future

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        rules = self._model.rules
        return EngineInfo(
            engine="embedded",
            model=self._model.label,
            identity=ModelIdentity(
                engine="embedded", name=self._model.label, content=self._model.content, dtype=self._model.dtype_name
            ),
            revision=self._model.content,
            max_context=self._model.max_context,
            chat_template=self._model.template,
            system_turn=None if rules is None else "kept" if rules.system else "merged",
            guided_by="next_token",
            details={
                **self._model.details(),
                **({} if rules is None else rules.details),
                **({"open_thinking": CLOSED} if self._model.opens_thinking else {}),
            },
        )

    async def aclose(self) -> None:
        """Answer what is pending, then end the thread; the last reference to a closed engine frees its weights."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            await asyncio.to_thread(thread.join)

    def _work(self) -> None:
        while requests := self._collect():
            try:
                self._answer(requests)
            except Exception as error:  # a dead thread would leave its callers waiting for ever
                for request in requests:
                    if not request.future.done():
                        request.future.set_exception(error)
            # Otherwise they would stay in memory while the thread waits for more.
            del requests

    def _collect(self) -> list[_Request]:
        """Collect what is to be answered together; none ends the thread."""
        requests: list[_Request] = []
        with suppress(queue.Empty):
            while len(requests) < self.concurrency:
                requests.append(self._queue.get(timeout=_QUIET_S))
        with self._lock:
            if not requests and self._queue.empty():
                self._thread = None
                return []
        return requests or self._collect()

    def _answer(self, requests: Sequence[_Request]) -> None:
        """Settle every request; runs on the thread that owns the model."""
        jobs = [(request, job) for request in requests if (job := self._prepare(request)) is not None]
        for kinds, answer in (((ChoiceJob, ScoreJob), read), ((ReplyJob,), write)):
            tokens, rows = _LIMITS["cuda" if self._model.device.type == "cuda" else "cpu", answer]
            for batch in _cut([pair for pair in jobs if isinstance(pair[1], kinds)], tokens, rows):
                self._settle(batch, answer)

    def _prepare(self, request: _Request) -> _Job | None:
        try:
            return None if request.future.cancelled() else self._to_job(request.dialogue)
        except Exception as error:
            # One request that cannot be tokenised must not fail the others.
            if request.claim():
                request.future.set_exception(error)
            return None

    def _to_job(self, dialogue: Dialogue) -> _Job:
        check_features(dialogue)
        model, choices, continuations = self._model, dialogue.choices, dialogue.continuations
        if dialogue.plain or (continuations is not None and not continuations.template):
            text = plain_text(dialogue)
        else:
            choosing = choices is not None or continuations is not None
            text = model.render(dialogue.messages, dialogue.opening, choosing=choosing)
        if continuations is not None:
            texts = [text, *(text + more for more in continuations.texts)]
            opening, *sequences = model.encode(texts, special=not continuations.template)
            candidates = split_tokens(opening, sequences, given_opening=continuations.given_opening)
            return make_score_job(model, continuations.texts, candidates, continuations.read_by)
        if choices is not None and not dialogue.plain:
            return make_choice_job(model, text, choices, dialogue.sampling)
        return make_reply_job(model, text, dialogue.sampling, special=dialogue.plain)

    def _settle(self, batch: Sequence[tuple[_Request, _Job]], answer: Callable[..., list[list[Generation]]]) -> None:
        """Answer those whose callers still wait; a batch that does not fit into the device's memory is halved."""
        # Claimed requests can no longer be cancelled: setting the result of a cancelled future would raise, and leave
        # the rest of the batch without an answer.
        parts = [[pair for pair in batch if pair[0].claim()]]
        while parts:
            part = parts.pop()
            try:
                replies = answer(self._model, [job for _, job in part]) if part else []
            except Exception as error:
                full = isinstance(error, torch.OutOfMemoryError)
                if full and len(part) > 1:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                    continue
                for request, _ in part:
                    request.future.set_exception(ServerError(f"{self._model.label}: out of memory") if full else error)
                continue
            for (request, _), generations in zip(part, replies, strict=True):
                request.future.set_result(generations)


def _cut(pairs: list[tuple[_Request, Any]], tokens: int, rows: int) -> Iterator[list[tuple[_Request, Any]]]:
    """Cut jobs into batches of one group each, neighbours in length, none over the limits unless it is one job."""
    groups: dict[Any, list[tuple[_Request, Any]]] = {}
    for pair in pairs:
        groups.setdefault(pair[1].group, []).append(pair)
    for members in groups.values():
        batch: list[tuple[_Request, Any]] = []
        count = 0
        for pair in sorted(members, key=lambda member: member[1].size[0]):
            length, more = pair[1].size
            if batch and (count + more > rows or (count + more) * length > tokens):
                yield batch
                batch, count = [], 0
            batch.append(pair)
            count += more
        yield batch


def check_features(dialogue: Dialogue) -> None:
    """Raise for what this engine would otherwise silently leave out."""
    sampling = dialogue.sampling
    features = {
        **dialogue.fields,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "calls of tools, nor pictures": dialogue.turns or dialogue.pictures,
    }
    for feature, setting in features.items():
        if setting:
            raise UnsupportedFeatureError(f"the embedded engine does not support {feature}", feature=feature)
