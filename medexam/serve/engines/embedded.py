"""The `embedded` engine: a transformers model in this process, no server.

Requests come from any number of threads and event loops; one worker thread owns the model and answers them in batches.
The engine knows turns, tokens and choices, and nothing of questions.

A reply's greedy tokens do not depend on the requests that share its batch, except where two tokens are likely to within
the rounding of a sum (about 1e-5 in float32): padding changes the order of summation.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from dspy.lm15 import ConfigurationError, Message, Request, Response, ServerError, UnsupportedFeatureError, Usage

from medexam.continuations import CONTINUATIONS, ContinuationRequest
from medexam.model_identity import ModelIdentity
from medexam.serve.chat_messages import plain_text, requested_choices, requested_continuations, to_messages
from medexam.serve.contract import CHOICE, EngineInfo, SyncEngine
from medexam.serve.local_model.batches import BatchLimits, BatchThread, PendingRequest, plan_batches
from medexam.serve.local_model.constrained_choice import ChoiceJob, make_choice_job, pick_choices
from medexam.serve.local_model.generation import ReplyJob, check_context, make_reply_job, write_replies
from medexam.serve.local_model.model import LocalModel
from medexam.serve.local_model.scoring import ScoreJob, score, takes_trees
from medexam.serve.local_model.weights import find_weights
from medexam.serve.logprobs.tokens import ReadMethods, build_reading, respond, split_tokens
from medexam.specs.model import ModelSpec

# Reading prompts is bound by arithmetic on a processor: larger batches win nothing there and fall out of its caches.
# Writing is bound by the reading of the weights, which a step does once for all its rows.
_READING = {"cpu": BatchLimits(tokens=2_048, rows=32), "cuda": BatchLimits(tokens=65_536, rows=1_024)}
_WRITING = {"cpu": BatchLimits(tokens=32_768, rows=32), "cuda": BatchLimits(tokens=262_144, rows=256)}

_SCORING = {"cpu": BatchLimits(tokens=1_024, rows=64), "cuda": BatchLimits(tokens=16_384, rows=1_024)}
"""Smaller, because probabilities over the whole vocabulary are held for most tokens."""

Job = ChoiceJob | ReplyJob | ScoreJob


@dataclass(frozen=True)
class _Waiting:
    """A tokenised request and whom it is for."""

    ticket: PendingRequest[Request, Response]
    job: Job


class EmbeddedEngine:
    """Answers with a model that it loads from a folder, the hub, or the SmolLM2 wheel.

    Raises `EngineError` where the model cannot be loaded. `share_prefixes=False` computes every prompt in full.
    """

    concurrency = 256

    def __init__(self, spec: ModelSpec | None = None, *, share_prefixes: bool = True):
        spec = spec or ModelSpec()
        self._model = LocalModel(spec, find_weights(spec), share_prefixes=share_prefixes)
        device = self._model.device.type
        self._reading = _READING.get(device, _READING["cpu"])
        self._writing = _WRITING.get(device, _WRITING["cpu"])
        self._scoring = _SCORING.get(device, _SCORING["cpu"])
        self._offer: ReadMethods | None = None
        self._worker: BatchThread[Request, Response] = BatchThread(
            self._answer, full=self.concurrency, name="medexam-embedded"
        )
        self.sync: SyncEngine = _SyncEmbedded(self)

    async def complete(self, request: Request) -> Response:
        """One reply to one request; the event loop stays free meanwhile."""
        return await asyncio.wrap_future(self.submit(request))

    def submit(self, request: Request) -> "Future[Response]":
        """Queue a request from any thread."""
        try:
            return self._worker.submit(request)
        except RuntimeError:
            raise ConfigurationError("the embedded engine is closed; build another") from None

    def info(self) -> EngineInfo:
        """What really runs."""
        return EngineInfo(
            engine="embedded",
            model=self._model.label,
            identity=ModelIdentity(
                engine="embedded", name=self._model.label, content=self._model.content, dtype=self._model.dtype_name
            ),
            revision=self._model.content,
            max_context=self._model.max_context,
            chat_template=self._model.template,
            system_turn="kept" if self._model.rules.system else "merged",
            guided_by="next_token",
            details=self._model.details(),
        )

    async def aclose(self) -> None:
        """Answer what waits, then end the worker; the model's memory goes with the engine."""
        await asyncio.to_thread(self._worker.close)

    def _answer(self, wave: list[PendingRequest[Request, Response]]) -> None:
        """Tokenise a wave, cut it into batches and settle every request of it; runs on the worker's thread."""
        waiting = [prepared for ticket in wave if (prepared := self._prepare(ticket)) is not None]
        choosing = [w for w in waiting if isinstance(w.job, ChoiceJob)]
        writing = [w for w in waiting if isinstance(w.job, ReplyJob)]
        scoring = [w for w in waiting if isinstance(w.job, ScoreJob)]
        for batch in plan_batches(choosing, self._reading, size=_reading_size, group=lambda _: None):
            self._settle(batch, self._choose)
        for batch in plan_batches(writing, self._writing, size=_writing_size, group=_writing_group):
            self._settle(batch, self._write)
        for batch in plan_batches(scoring, self._scoring, size=_scoring_size, group=_scoring_group):
            self._settle(batch, self._score)

    def _prepare(self, ticket: PendingRequest[Request, Response]) -> _Waiting | None:
        if ticket.future.cancelled():
            return None
        try:
            return _Waiting(ticket, self._to_job(ticket.item))
        except Exception as error:
            _fail(ticket, error)
            return None

    def _to_job(self, request: Request) -> Job:
        check_features(request)
        continuations = requested_continuations(request)
        if continuations is not None:
            return self._to_score_job(request, continuations)
        choices = requested_choices(request)
        text = self._model.render(*to_messages(request))
        if choices is None:
            return make_reply_job(self._model, text, request)
        job = make_choice_job(self._model, text, choices, request)
        check_context(self._model, len(job.prompt), max(1, *(len(path) for path in job.paths)))
        return job

    def _to_score_job(self, request: Request, asked: ContinuationRequest) -> ScoreJob:
        prompt = self._model.render(*to_messages(request)) if asked.template else plain_text(request)
        texts = [prompt, *(prompt + text for text in asked.texts)]
        opening, *whole = self._model.encode(texts, special=not asked.template)
        candidates = split_tokens(opening, whole, given_opening=asked.given_opening)
        check_context(self._model, len(candidates.prompt), max(len(path) for path in candidates.paths))
        if self._offer is None:
            trees = self._model.full_attention and takes_trees(self._model, candidates)
            self._offer = ReadMethods(frozenset(("echo", "trie", "label") if trees else ("echo", "label")), block=0)
        return ScoreJob(asked.texts, candidates, *self._offer.choose(candidates, asked.read_by))

    def _settle(self, batch: list[_Waiting], answer: Callable[[Sequence[Job]], list[Response]]) -> None:
        """Answer those whose callers still wait; a batch that does not fit the device is halved."""
        claimed = [waiting for waiting in batch if waiting.ticket.claim()]
        halves = [claimed] if claimed else []
        while halves:
            part = halves.pop()
            try:
                responses = answer([waiting.job for waiting in part])
            except Exception as error:
                if _is_out_of_memory(error) and len(part) > 1:
                    middle = len(part) // 2
                    halves += [part[middle:], part[:middle]]
                    continue
                failure = ServerError(f"{self._model.label}: out of memory") if _is_out_of_memory(error) else error
                for waiting in part:
                    waiting.ticket.future.set_exception(failure)
                continue
            for waiting, response in zip(part, responses, strict=True):
                waiting.ticket.future.set_result(response)

    def _choose(self, jobs: Sequence[Job]) -> list[Response]:
        asked = [job for job in jobs if isinstance(job, ChoiceJob)]
        picked = pick_choices(self._model, asked)
        return [
            self._respond(job.choices[index], "stop", read=len(job.prompt), written=len(job.paths[index]))
            for job, index in zip(asked, picked, strict=True)
        ]

    def _write(self, jobs: Sequence[Job]) -> list[Response]:
        asked = [job for job in jobs if isinstance(job, ReplyJob)]
        return [
            self._respond(reply.text, reply.finish_reason, read=len(job.prompt), written=reply.tokens)
            for job, reply in zip(asked, write_replies(self._model, asked), strict=True)
        ]

    def _score(self, jobs: Sequence[Job]) -> list[Response]:
        asked = [job for job in jobs if isinstance(job, ScoreJob)]
        assert self._offer is not None  # noqa: S101
        responses = []
        for job, logprobs in zip(asked, score(self._model, asked), strict=True):
            computed = self._offer.computed(job.candidates, job.way)
            reading = build_reading(job.candidates, logprobs, job.way, job.why, computed)
            responses.append(respond(reading, job.texts, self._model.label))
        return responses

    def _respond(self, text: str, finish_reason: str, *, read: int, written: int) -> Response:
        return Response(
            id=None,
            model=self._model.label,
            message=Message.assistant(text),
            finish_reason=finish_reason,
            usage=Usage(input_tokens=read, output_tokens=written),
        )


class _SyncEmbedded:
    def __init__(self, engine: EmbeddedEngine):
        self._engine = engine

    def complete(self, request: Request) -> Response:
        return self._engine.submit(request).result()


def check_features(request: Request) -> None:
    """Refuse what this engine would otherwise silently leave out."""
    config = request.config
    unknown = sorted(set(config.extensions or {}) - {CHOICE, CONTINUATIONS})
    asked = {
        "tools": request.tools,
        "config.response_format": config.response_format,
        "config.logprobs": config.logprobs is not None,
        "config.frequency_penalty": config.frequency_penalty,
        "config.presence_penalty": config.presence_penalty,
        f"config.extensions {unknown}": unknown,
    }
    for feature, wanted in asked.items():
        if wanted:
            raise UnsupportedFeatureError(f"the embedded engine does not support {feature}", feature=feature)


def _reading_size(waiting: _Waiting) -> tuple[int, int]:
    assert isinstance(waiting.job, ChoiceJob)  # noqa: S101
    return len(waiting.job.prompt), max(1, len(waiting.job.forks))


def _writing_size(waiting: _Waiting) -> tuple[int, int]:
    assert isinstance(waiting.job, ReplyJob)  # noqa: S101
    return len(waiting.job.prompt) + waiting.job.budget, 1


def _writing_group(waiting: _Waiting) -> tuple[object, ...]:
    assert isinstance(waiting.job, ReplyJob)  # noqa: S101
    return waiting.job.sampling, waiting.job.stop


def _scoring_size(waiting: _Waiting) -> tuple[int, int]:
    assert isinstance(waiting.job, ScoreJob)  # noqa: S101
    return max(len(row.tokens) for row in waiting.job.rows), len(waiting.job.rows)


def _scoring_group(waiting: _Waiting) -> object:
    assert isinstance(waiting.job, ScoreJob)  # noqa: S101
    return waiting.job.way


def _fail(ticket: PendingRequest[Request, Response], error: Exception) -> None:
    if ticket.claim():
        ticket.future.set_exception(error)


def _is_out_of_memory(error: Exception) -> bool:
    import torch

    return isinstance(error, torch.OutOfMemoryError)
