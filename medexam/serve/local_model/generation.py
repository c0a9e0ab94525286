"""Writing a reply token by token, a batch of requests at a time.

transformers writes; this module adds what it lacks for a batch: a random stream for each request, and stop strings that
are looked for in the reply alone. `medexam.serve.local_model.refilling` writes with models whose rows can be exchanged.
"""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from medexam.errors import ContextLengthError
from medexam.model_calls import Sampling
from medexam.serve.chat_messages import cut_at_stop
from medexam.serve.local_model.model import LocalModel
from medexam.serve.local_model.sampling import TokenSampling, add_gumbel_noise, random_stream, seeds
from medexam.serve.local_model.thinking_budget import RowBudget
from medexam.serve.thinking import CLOSING, OPENING, find_thinking, is_open, whole_reply

DEFAULT_BUDGET = 512
"""Tokens that a reply may have if the request does not say."""


@dataclass(frozen=True)
class ReplyJob:
    """A request for a free reply, tokenised."""

    prompt: list[int]
    budget: int
    """Tokens that the reply may have, its end token included."""
    stop: tuple[str, ...]
    sampling: TokenSampling
    seed: int | None
    opened: bool = False
    """The prompt leaves a block of thinking open."""
    samples: int = 1
    """Replies to the prompt, which is read once."""

    @property
    def size(self) -> tuple[int, int]:
        """Tokens of a row when a reply is written, and the rows."""
        return len(self.prompt) + self.budget, self.samples

    @property
    def group(self) -> Hashable:
        """Replies of a batch share what `generate` applies to all its rows."""
        return self.sampling, self.stop


@dataclass(frozen=True)
class WrittenReply:
    """What was written."""

    text: str
    tokens: int
    """Tokens written, with the end token if one was written."""
    finish_reason: Literal["stop", "length"]
    thinking: int | None
    """Tokens of its thinking, without the marks around it; None if it does not think."""


def make_reply_job(model: LocalModel, text: str, sampling: Sampling, *, special: bool = False) -> ReplyJob:
    """Tokenise a prompt; raises `ContextLengthError` if it and the reply do not fit.

    `special`: it is plain text, before which stand the tokens that open every text.
    """
    prompt = model.encode([text], special=special)[0]
    room = check_context(model, len(prompt), sampling.max_tokens or 1)
    budget = sampling.max_tokens or DEFAULT_BUDGET
    budget = min(budget, room or budget)
    drawing = TokenSampling.of(sampling, model.min_p)
    return ReplyJob(prompt, budget, sampling.stop, drawing, sampling.seed, is_open(text), sampling.samples)


def check_context(model: LocalModel, prompt: int, reply: int) -> int | None:
    """Count the tokens left for a reply, None for no limit; raises `ContextLengthError` if fewer are left than asked
    for.
    """
    if model.max_context is None:
        return None
    if prompt + reply > model.max_context:
        raise ContextLengthError(
            f"{model.label}: a prompt of {prompt} tokens and a reply of {reply} exceed the context of "
            f"{model.max_context} tokens"
        )
    return model.max_context - prompt


def write_replies(model: LocalModel, jobs: Sequence[ReplyJob]) -> list[list[WrittenReply]]:
    """Write the replies of each job in a batch that shares its sampling and its stop strings."""
    rows = [job for job in jobs for _ in range(job.samples)]
    first = jobs[0]
    with torch.inference_mode():
        inputs = model.batch([job.prompt for job in rows])
        width = inputs["input_ids"].shape[1]
        output = model.model.generate(
            **inputs,
            max_new_tokens=max(job.budget for job in jobs),
            do_sample=False,
            eos_token_id=sorted(model.ends) or None,
            pad_token_id=model.pad,
            logits_processor=LogitsProcessorList([*_sampling_steps(model, jobs), *_budget_steps(model, width, rows)]),
            stopping_criteria=StoppingCriteriaList([_stop_step(model, width, first.stop)] if first.stop else []),
        )
    token_lists = iter(output[:, width:].tolist())
    return [[to_reply(model, job, next(token_lists)) for _ in range(job.samples)] for job in jobs]


def to_reply(model: LocalModel, job: ReplyJob, tokens: list[int]) -> WrittenReply:
    """Build one row's reply; what the batch wrote beyond its budget, its end or its stop string is not part of it."""
    tokens = tokens[: job.budget]
    end = next((place for place, token in enumerate(tokens) if token in model.ends), None)
    if end is not None:
        tokens = tokens[: end + 1]
    text, stopped = cut_at_stop(model.decode(job.prompt, tokens), job.stop)
    if stopped:
        tokens = tokens[: _tokens_until_stop(model, job, tokens)]
    finish_reason: Literal["stop", "length"] = "stop" if stopped or end is not None else "length"
    thinking = _thinking_tokens(model, job, tokens, text)
    return WrittenReply(whole_reply(text, opened=job.opened), len(tokens), finish_reason, thinking)


def _thinking_tokens(model: LocalModel, job: ReplyJob, tokens: list[int], text: str) -> int | None:
    block = find_thinking(text, opened=job.opened)
    if block is None:
        return None
    marks = [] if job.opened else [OPENING]
    token_count = len(tokens)
    if block[1]:
        marks.append(CLOSING)
        closed = partial(_holds, model, job, tokens, CLOSING)
        token_count = bisect_left(range(len(tokens)), True, lo=1, key=closed)
    return max(token_count - sum(map(len, model.encode(marks))), 0) if marks else token_count


def _holds(model: LocalModel, job: ReplyJob, tokens: list[int], mark: str, count: int) -> bool:
    return mark in model.decode(job.prompt, tokens[:count])


def _tokens_until_stop(model: LocalModel, job: ReplyJob, tokens: list[int]) -> int:
    """Count the tokens that were needed until the stop string was complete: a row may be padded after it."""

    def stops(count: int) -> bool:
        return cut_at_stop(model.decode(job.prompt, tokens[:count]), job.stop)[1]

    return bisect_left(range(len(tokens)), True, lo=1, key=stops)


def sampling_warpers(sampling: TokenSampling) -> list[Any]:
    """Build the steps of transformers, called with tokens and scores, that change what is drawn from."""
    if not sampling.temperature:
        return []
    steps: list[Any] = [TemperatureLogitsWarper(sampling.temperature)]
    if sampling.min_p:
        steps.append(MinPLogitsWarper(sampling.min_p))  # Before the others, as vLLM does.
    if sampling.top_k:
        steps.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p is not None and sampling.top_p < 1:
        steps.append(TopPLogitsWarper(sampling.top_p))
    return steps


def _sampling_steps(model: LocalModel, jobs: Sequence[ReplyJob]) -> list[Any]:
    warpers = sampling_warpers(jobs[0].sampling)
    if not warpers:
        return []
    streams = [random_stream(seed, job.prompt, model.device) for job in jobs for seed in seeds(job.seed, job.samples)]
    return [*warpers, lambda _, scores: add_gumbel_noise(scores, streams)]


def _budget_steps(model: LocalModel, width: int, jobs: Sequence[ReplyJob]) -> list[Any]:
    if model.thinking_budget is None:
        return []
    rows = [RowBudget(model, model.thinking_budget, opened=job.opened) for job in jobs]

    def keep_budgets(input_ids: Any, scores: Any) -> Any:
        return force_tokens(
            scores, [row.next_token(tokens) for row, tokens in zip(rows, input_ids[:, width:].tolist(), strict=True)]
        )

    return [keep_budgets]


def force_tokens(scores: Any, tokens: Sequence[int | None]) -> Any:
    """Force scores `[rows, vocabulary]`: each row whose token is not None has only that one left."""
    for row, token in enumerate(tokens):
        if token is not None:
            scores[row] = float("-inf")
            scores[row, token] = 0.0
    return scores


def holds_stop(model: LocalModel, replies: Sequence[list[int]], stops: tuple[str, ...]) -> list[bool]:
    """Find which of the replies, token by token, hold a stop string that their last token completes.

    transformers' own criterion also sees the prompt, and would end a reply whose first token completes a stop string
    that the prompt began.
    """
    if not stops:
        return [False] * len(replies)
    # Each token is at least one byte, so a stop string ends within this many tokens of its beginning.
    window = max(len(stop.encode()) for stop in stops) + 1
    tails = [tokens[-window:] for tokens in replies]
    texts = model.tokenizer.batch_decode(tails, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return [any(stop in text for stop in stops) for text in texts]


def _stop_step(model: LocalModel, width: int, stops: tuple[str, ...]) -> Any:
    """Build a step of `generate` that ends the rows whose replies hold a stop string."""

    def stopped(input_ids: Any, _scores: Any, **_kwargs: Any) -> Any:
        hits = holds_stop(model, input_ids[:, width:].tolist(), stops)
        return torch.tensor(hits, dtype=torch.bool, device=input_ids.device)

    return stopped
