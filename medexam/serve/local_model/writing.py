"""Replies that a model writes token by token, a padded batch of requests at a time.

transformers writes; this module adds what it lacks for a batch: a random stream for each reply, and stop strings that
are looked for in the reply alone.
"""

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

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
from medexam.model_calls import Generation, Sampling
from medexam.serve.chat_messages import cut_at_stop
from medexam.serve.local_model.model import LocalModel
from medexam.serve.thinking import find_thinking, is_open, whole_reply

_DEFAULT_BUDGET = 512
"""Tokens that a reply may have if the request does not say."""


@dataclass(frozen=True)
class ReplyJob:
    """A request for a free reply, tokenised."""

    prompt: list[int]
    budget: int
    """Tokens that the reply may have, its end token included."""
    sampling: Sampling
    opened: bool
    """The prompt leaves a block of thinking open."""

    @property
    def size(self) -> tuple[int, int]:
        """Tokens of a row when a reply is written, and the rows."""
        return len(self.prompt) + self.budget, self.sampling.samples

    @property
    def group(self) -> Hashable:
        """What all rows of a batch share."""
        return self.sampling.changed(max_tokens=None, seed=None, samples=1)


def make_reply_job(model: LocalModel, text: str, sampling: Sampling, *, special: bool = False) -> ReplyJob:
    """Tokenise a prompt; raises `ContextLengthError` if it and the reply do not fit.

    `special`: it is plain text, before which stand the tokens that open every text.
    """
    prompt = model.encode([text], special=special)[0]
    room = check_context(model, len(prompt), sampling.max_tokens or 1)
    budget = sampling.max_tokens or _DEFAULT_BUDGET
    return ReplyJob(prompt, min(budget, room or budget), sampling, is_open(text))


def check_context(model: LocalModel, prompt: int, reply: int) -> int | None:
    """Count the tokens left for a reply, None for no limit; raises `ContextLengthError` if fewer are left than
    `reply`.
    """
    if model.max_context is None:
        return None
    if prompt + reply > model.max_context:
        raise ContextLengthError(
            f"{model.label}: a prompt of {prompt} tokens and a reply of {reply} exceed the context of "
            f"{model.max_context} tokens"
        )
    return model.max_context - prompt


def write(model: LocalModel, jobs: Sequence[ReplyJob]) -> list[list[Generation]]:
    """Write the replies of each job in a batch that shares its sampling and its stop strings."""
    sampling = jobs[0].sampling
    inputs = model.left_padded([job.prompt for job in jobs for _ in range(job.sampling.samples)])
    width = inputs["input_ids"].shape[1]
    with torch.inference_mode():
        output = model.model.generate(
            **inputs,
            max_new_tokens=max(job.budget for job in jobs),
            do_sample=False,
            eos_token_id=sorted(model.ends) or None,
            pad_token_id=model.pad,
            logits_processor=LogitsProcessorList(_drawing_steps(model, jobs) if sampling.temperature else []),
            stopping_criteria=StoppingCriteriaList([_stop_step(model, width, sampling.stop)] if sampling.stop else []),
        )
    rows = iter(output[:, width:].tolist())
    return [[_to_reply(model, job, next(rows), number) for number in range(job.sampling.samples)] for job in jobs]


def _to_reply(model: LocalModel, job: ReplyJob, tokens: list[int], number: int) -> Generation:
    """Build one row's reply; what the batch wrote beyond its budget, its end or its stop string is not part of it."""
    tokens = tokens[: job.budget]
    end = next((place for place, token in enumerate(tokens) if token in model.ends), None)
    if end is not None:
        tokens = tokens[: end + 1]
    text, stopped = cut_at_stop(model.decode(job.prompt, tokens), job.sampling.stop)
    if stopped:
        texts = (model.decode(job.prompt, tokens[:count]) for count in range(1, len(tokens)))
        counts = (count for count, part in enumerate(texts, start=1) if cut_at_stop(part, job.sampling.stop)[1])
        tokens = tokens[: next(counts, len(tokens))]
    block = find_thinking(text, opened=job.opened)
    thinking = None if block is None else len(model.encode([block[0]])[0])
    reason = "stop" if stopped or end is not None else "length"
    prompt_tokens = 0 if number else len(job.prompt)
    reply = whole_reply(text, opened=job.opened)
    return Generation(reply, reason, model.label, prompt_tokens, len(tokens), thinking)


def _drawing_steps(model: LocalModel, jobs: Sequence[ReplyJob]) -> list[Any]:
    """Build the steps of `generate` that draw a token instead of taking the likeliest."""
    sampling = jobs[0].sampling
    assert sampling.temperature is not None  # noqa: S101
    steps: list[Any] = [TemperatureLogitsWarper(sampling.temperature)]
    if model.min_p:
        steps.append(MinPLogitsWarper(model.min_p))  # Before the others, as vLLM does.
    if sampling.top_k:
        steps.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p is not None and sampling.top_p < 1:
        steps.append(TopPLogitsWarper(sampling.top_p))
    streams = [
        random_stream(job.sampling.seed, number, job.prompt, model.device)
        for job in jobs
        for number in range(job.sampling.samples)
    ]
    return [*steps, lambda _, scores: add_gumbel_noise(scores, streams)]


def random_stream(seed: int | None, number: int, prompt: Sequence[int], device: Any) -> Any:
    """Build the `torch.Generator` of one of several replies to a prompt; without a seed, a fresh one.

    What it draws does not depend on the requests that share its batch.
    """
    generator = torch.Generator(device=device)
    if seed is None:
        generator.seed()
    else:
        digest = hashlib.sha256(f"{seed + number}:{','.join(map(str, prompt))}".encode()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return generator


def add_gumbel_noise(scores: Any, streams: Sequence[Any]) -> Any:
    """Add noise to scores `[rows, n]`, row i's from stream i; the argmax of a row is a draw from its softmax."""
    noise = [torch.empty_like(row).exponential_(generator=stream) for row, stream in zip(scores, streams, strict=True)]
    return scores - torch.stack(noise).log()


def _stop_step(model: LocalModel, width: int, stops: tuple[str, ...]) -> Any:
    """Build a step of `generate` that ends the rows whose last token completes a stop string.

    transformers' own criterion also sees the prompt, and would end a reply whose first token completes a stop string
    that the prompt began.
    """
    # Each token is at least one byte, so a stop string ends within this many tokens of its beginning.
    window = max(len(stop.encode()) for stop in stops) + 1

    def holds_stop(input_ids: Any, _scores: Any, **_kwargs: Any) -> Any:
        tails = input_ids[:, max(width, input_ids.shape[1] - window) :]
        texts = model.tokenizer.batch_decode(tails, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        hits = [any(stop in text for stop in stops) for text in texts]
        return torch.tensor(hits, dtype=torch.bool, device=input_ids.device)

    return holds_stop
