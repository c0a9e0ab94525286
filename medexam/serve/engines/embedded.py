"""The `embedded` engine: a transformers model in this process, no server.

Requests come from any number of threads and event loops; one thread owns the model and answers them in batches. The
engine knows messages, tokens and choices, and nothing of questions.

A reply's greedy tokens do not depend on the requests that share its batch, except if two tokens are equally likely to
within the rounding of a sum (about 1e-5 in float32): padding changes the order of summation.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from medexam.errors import ConfigurationError, EngineError, ServerError, UnsupportedFeatureError
from medexam.model_calls import ContinuationRequest, Dialogue, Generation
from medexam.model_identity import ModelIdentity
from medexam.serve.chat_messages import no_sight, no_template, plain_text, tool_turns
from medexam.serve.contract import EngineInfo, SyncTwin
from medexam.serve.local_model.batches import BatchLimits, BatchThread, PendingRequest, plan_batches
from medexam.serve.local_model.constrained_choice import ChoiceJob, make_choice_job, pick_choices
from medexam.serve.local_model.generation import (
    ReplyJob,
    WrittenReply,
    check_context,
    make_reply_job,
    write_replies,
)
from medexam.serve.local_model.model import LocalModel, is_out_of_memory
from medexam.serve.local_model.refilling import ReplyWriter
from medexam.serve.local_model.scoring import ScoreJob, score, takes_trees
from medexam.serve.local_model.weights import find_weights
from medexam.serve.logprobs.tokens import ReadMethods, build_logprobs, build_reading, split_tokens
from medexam.serve.thinking import CLOSED
from medexam.specs import EngineNeeds
from medexam.specs.model import ModelSpec
from medexam.specs.programs.needs import NO_NEEDS

# On a CPU, reading prompts is bound by arithmetic: larger batches gain nothing and no longer fit into its caches.
# Writing is bound by loading the weights, which a step does once for all its rows.
_READING = {"cpu": BatchLimits(tokens=2_048, rows=32), "cuda": BatchLimits(tokens=65_536, rows=1_024)}
_WRITING = {"cpu": BatchLimits(tokens=32_768, rows=32), "cuda": BatchLimits(tokens=262_144, rows=256)}

_SCORING = {"cpu": BatchLimits(tokens=1_024, rows=64), "cuda": BatchLimits(tokens=16_384, rows=1_024)}
"""Smaller, because probabilities over the whole vocabulary are held for most tokens."""

Job = ChoiceJob | ReplyJob | ScoreJob
_Pending = PendingRequest[Dialogue, list[Generation]]
J = TypeVar("J", bound=Job, covariant=True)


@dataclass(frozen=True)
class _Work(Generic[J]):
    """A tokenised dialogue, and where its replies go."""

    pending: _Pending
    job: J


@dataclass(frozen=True)
class _Ticket(_Work[ReplyJob]):
    """A request for a free reply, as the writer takes it."""

    respond: Callable[[ReplyJob, list[WrittenReply]], list[Generation]]
    fault: Callable[[Exception], Exception]

    def claim(self) -> bool:
        """Take the job for good; False if its caller has given up."""
        return self.pending.claim()

    def settle(self, replies: list[WrittenReply]) -> None:
        """Hand over the replies, one for each sample."""
        self.pending.future.set_result(self.respond(self.job, replies))

    def fail(self, error: Exception) -> None:
        """Say why there are none."""
        self.pending.future.set_exception(self.fault(error))


class EmbeddedEngine:
    """Answers with a model that it loads from a folder, the hub, or the SmolLM2 wheel.

    Raises `EngineError` if the model cannot be loaded, or has no chat template and `needs` one, or if
    `needs` has pictures.
    `share_prefixes=False` computes every prompt in full.
    """

    concurrency = 256
    shares_prompts = True
    """One request brings several replies to its prompt."""

    def __init__(
        self, spec: ModelSpec | None = None, needs: EngineNeeds = NO_NEEDS, *, share_prefixes: bool = True
    ) -> None:
        spec = spec or ModelSpec()
        if needs.pictures:
            raise EngineError(f"engine embedded has {no_sight(spec.label)}")
        self._model = LocalModel(spec, find_weights(spec), share_prefixes=share_prefixes)
        if needs.chat and self._model.template is None:
            raise EngineError(f"engine embedded has {no_template(self._model.label)}")
        device = self._model.device.type
        self._reading = _READING.get(device, _READING["cpu"])
        self._writing = _WRITING.get(device, _WRITING["cpu"])
        self._scoring = _SCORING.get(device, _SCORING["cpu"])
        self._methods: ReadMethods | None = None
        self._thread: BatchThread[Dialogue, list[Generation]] = BatchThread(
            self._answer, wave_size=self.concurrency, name="medexam-embedded"
        )

    @property
    def sync(self) -> SyncTwin:
        """The same model for synchronous callers; made anew, so that it does not keep the engine alive."""
        return SyncTwin(lambda dialogue: self.submit(dialogue).result())

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample; the event loop stays free meanwhile."""
        return await asyncio.wrap_future(self.submit(dialogue))

    def submit(self, dialogue: Dialogue) -> "Future[list[Generation]]":
        """Queue a dialogue from any thread."""
        try:
            return self._thread.submit(dialogue)
        except RuntimeError:
            raise ConfigurationError("the embedded engine is closed; build another") from None

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
        await asyncio.to_thread(self._thread.close)

    def _answer(self, wave: list[_Pending]) -> None:
        """Tokenise a wave and settle every request; runs on the thread that owns the model."""
        waiting = self._answer_read(wave)
        while waiting:
            group = waiting[0].job.group
            tickets = [ticket for ticket in waiting if ticket.job.group == group]
            waiting = [ticket for ticket in waiting if ticket.job.group != group]
            ReplyWriter(self._model, self._reading, self._writing).write(tickets, partial(self._join, group, waiting))

    def _join(self, group: Hashable, waiting: list[_Ticket]) -> list[_Ticket]:
        """Return what came meanwhile and may join the replies of a group; what may not is added to `waiting`."""
        if waiting:
            # Otherwise a group that never ends would keep them waiting for ever.
            return []
        arrivals = self._answer_read(self._thread.take_waiting())
        waiting += [ticket for ticket in arrivals if ticket.job.group != group]
        return [ticket for ticket in arrivals if ticket.job.group == group]

    def _answer_read(self, wave: list[_Pending]) -> list[_Ticket]:
        """Settle what a forward pass or a batch of its own answers; the rest is for a batch that is refilled."""
        prepared = [work for pending in wave if (work := self._prepare(pending)) is not None]
        kinds: tuple[tuple[type[Job], BatchLimits, Callable[[Sequence[Any]], list[list[Generation]]]], ...] = (
            (ChoiceJob, self._reading, self._choose),
            (ReplyJob, self._writing, self._write),
            (ScoreJob, self._scoring, self._score),
        )
        for kind, limits, answer in kinds:
            works = [work for work in prepared if isinstance(work.job, kind) and not isinstance(work, _Ticket)]
            for batch in plan_batches(
                works, limits, size=lambda work: work.job.size, group=lambda work: work.job.group
            ):
                self._settle(batch, answer)
        return [work for work in prepared if isinstance(work, _Ticket)]

    def _prepare(self, pending: _Pending) -> _Work[Job] | None:
        if pending.future.cancelled():
            return None
        try:
            job = self._to_job(pending.item)
            if isinstance(job, ReplyJob) and self._model.full_attention:
                return _Ticket(pending, job, self._respond_replies, self._fault)
            return _Work(pending, job)
        except Exception as error:
            # One request that cannot be tokenised must not fail the others of its wave.
            if pending.claim():
                pending.future.set_exception(error)
            return None

    def _to_job(self, dialogue: Dialogue) -> Job:
        check_features(dialogue)
        if dialogue.continuations is not None:
            return self._to_score_job(dialogue, dialogue.continuations)
        if dialogue.plain:
            return make_reply_job(self._model, plain_text(dialogue), dialogue.sampling, special=True)
        choices = dialogue.choices
        text = self._model.render(dialogue.messages, dialogue.opening, choosing=choices is not None)
        if choices is None:
            return make_reply_job(self._model, text, dialogue.sampling)
        job = make_choice_job(self._model, text, choices, dialogue.sampling)
        check_context(self._model, len(job.prompt), max(1, *(len(path) for path in job.paths)))
        return job

    def _to_score_job(self, dialogue: Dialogue, continuations: ContinuationRequest) -> ScoreJob:
        if continuations.template:
            prompt = self._model.render(dialogue.messages, dialogue.opening, choosing=True)
        else:
            prompt = plain_text(dialogue)
        texts = [prompt, *(prompt + text for text in continuations.texts)]
        opening, *sequences = self._model.encode(texts, special=not continuations.template)
        candidates = split_tokens(opening, sequences, given_opening=continuations.given_opening)
        check_context(self._model, len(candidates.prompt), max(len(path) for path in candidates.paths))
        if self._methods is None:
            trees = self._model.full_attention and takes_trees(self._model, candidates)
            self._methods = ReadMethods(frozenset(("echo", "trie", "label") if trees else ("echo", "label")), block=0)
        return ScoreJob(continuations.texts, candidates, *self._methods.choose(candidates, continuations.read_by))

    def _settle(self, batch: Sequence[_Work[Job]], answer: Callable[[Sequence[Any]], list[list[Generation]]]) -> None:
        """Answer those whose callers still wait; a batch that does not fit into the device's memory is halved."""
        # Claimed requests can no longer be cancelled: setting the result of a cancelled future would raise, and leave
        # the rest of the batch without an answer.
        claimed = [work for work in batch if work.pending.claim()]
        parts = [claimed] if claimed else []
        while parts:
            part = parts.pop()
            try:
                replies = answer([work.job for work in part])
            except Exception as error:
                if is_out_of_memory(error) and len(part) > 1:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                    continue
                for work in part:
                    work.pending.future.set_exception(self._fault(error))
                continue
            for work, generations in zip(part, replies, strict=True):
                work.pending.future.set_result(generations)

    def _choose(self, jobs: Sequence[ChoiceJob]) -> list[list[Generation]]:
        picked = pick_choices(self._model, jobs)
        return [
            [
                self._build_generation(job, number, job.choices[index], "stop", len(job.paths[index]))
                for number, index in enumerate(indices)
            ]
            for job, indices in zip(jobs, picked, strict=True)
        ]

    def _write(self, jobs: Sequence[ReplyJob]) -> list[list[Generation]]:
        return [
            self._respond_replies(job, replies)
            for job, replies in zip(jobs, write_replies(self._model, jobs), strict=True)
        ]

    def _fault(self, error: Exception) -> Exception:
        return ServerError(f"{self._model.label}: out of memory") if is_out_of_memory(error) else error

    def _respond_replies(self, job: ReplyJob, replies: list[WrittenReply]) -> list[Generation]:
        return [
            self._build_generation(job, number, reply.text, reply.finish_reason, reply.tokens, reply.thinking)
            for number, reply in enumerate(replies)
        ]

    def _score(self, jobs: Sequence[ScoreJob]) -> list[list[Generation]]:
        assert self._methods is not None  # noqa: S101
        readings = []
        for job, logprobs in zip(jobs, score(self._model, jobs), strict=True):
            computed = self._methods.computed(job.candidates, job.method)
            reading = build_logprobs(job.candidates, logprobs, job.method, job.why, computed)
            readings.append([build_reading(reading, job.texts, self._model.label)])
        return readings

    def _build_generation(
        self,
        job: ChoiceJob | ReplyJob,
        number: int,
        text: str,
        finish_reason: str,
        tokens: int,
        thinking: int | None = None,
    ) -> Generation:
        """Build the reply of this number to a prompt, which the first one reads."""
        prompt_tokens = 0 if number else len(job.prompt)
        return Generation(text, finish_reason, self._model.label, prompt_tokens, tokens, thinking)


def check_features(dialogue: Dialogue) -> None:
    """Raise for what this engine would otherwise silently leave out."""
    tool_turns(dialogue)
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
