"""What a local model is asked: choices among strings, log-probabilities of given texts, and free replies.

Texts are tokenised together with their prompt, never apart from it: a space before a digit may be a token of its own or
part of the digit's. What all have in common is the prompt; the rest of each is a path. One forward pass for a whole
batch reads the next token's scores at each place of the paths that matters. Replies are written by transformers in a
padded batch; this module adds a random stream for each, and cuts it at stop strings.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from medexam.errors import ContextLengthError, InvalidRequestError
from medexam.model_calls import ContinuationRequest, Generation
from medexam.serve.chat_messages import cut_at_stop, find_thinking, is_open, whole_reply
from medexam.serve.local_model.model import LocalModel
from medexam.serve.logprobs import Candidates, TokenPath, build_logprobs, choose_method, common_opening, split_tokens

_DEFAULT_BUDGET = 512


@dataclass(frozen=True)
class Job:
    """A request, tokenised: rows of a batch, and what is made of what the model gives for them."""

    rows: list[list[int]]
    finish: Callable[[list[Any]], Generation]
    """Takes the next token's scores at each point, or the tokens behind each row."""
    points: Sequence[tuple[int, int]] = ()
    """Row and column of each place at which scores are read."""
    sampling: Mapping[str, Any] | None = None
    """How the tokens behind each row are written; None: scores are read."""
    budget: int = 0
    """Tokens that a reply may have, its end token included."""

    @property
    def tokens(self) -> int:
        """Tokens of its longest row, once it is written."""
        return max(map(len, self.rows), default=0) + self.budget

    @property
    def group(self) -> tuple[Any, ...] | None:
        """What all jobs of a batch share."""
        return None if self.sampling is None else tuple(map(self.sampling.get, ("temperature", "top_p", "top_k")))


def _read(candidates: Candidates, forks: Iterable[TokenPath], finish: Callable[[list[Any]], Generation]) -> Job:
    """Lay places out, the shortest first, in rows: one for each that no other place continues."""
    places = list(forks)
    beginnings = {place[:length] for place in places for length in range(len(place))}
    paths = [place for place in places if place not in beginnings]
    rows = [next(row for row, path in enumerate(paths) if path[: len(place)] == place) for place in places]
    columns = [len(candidates.prompt) + len(place) - 1 for place in places]
    return Job([[*candidates.prompt, *path] for path in paths], finish, list(zip(rows, columns, strict=True)))


def choose_text(model: LocalModel, text: str, choices: Sequence[str], sampling: Mapping[str, Any]) -> Job:
    """Choose among strings behind a text, by the probabilities of a grammar that allows nothing else.

    Where paths part, each branch has its token's probability, and a choice that is complete there has what the branches
    leave over: `1` has the probability that no `0` follows. They are scaled to sum to 1, and a choice's probability is
    their product.
    """
    encoded = model.encode([text + choice for choice in choices])
    prompt = common_opening(encoded)
    paths = tuple(tuple(tokens[len(prompt) :]) for tokens in encoded)
    if len(set(paths)) < len(paths):
        raise InvalidRequestError(f"{model.label}: its tokenizer cannot tell these choices apart: {list(choices)}")
    _count_room(model, len(prompt), max(1, *map(len, paths)))
    candidates = Candidates(tuple(prompt), paths)
    forks = {place: one for place, one in candidates.forks.items() if len(one) + (place in paths) > 1}

    def finish(logits: list[Any]) -> Generation:
        scores = torch.zeros(len(paths), dtype=torch.float64)
        for (place, tokens), row in zip(forks.items(), logits, strict=True):
            likely = row.double().log_softmax(-1)[list(tokens)].cpu()
            values: dict[int | None, Any] = dict(zip(tokens, likely, strict=True))
            if place in paths:
                # Rounding may bring the branches to 1 or above, and the logarithm of nothing would be no number.
                values[None] = torch.log1p(-likely.exp().sum().clamp(max=1 - 1e-12))
            log_sum = torch.stack(list(values.values())).logsumexp(0)
            for index, path in enumerate(paths):
                if path[: len(place)] == place:
                    scores[index] += values[path[len(place)] if len(path) > len(place) else None] - log_sum
        noisy = scores[None] / (sampling.get("temperature") or 1)
        if sampling.get("temperature"):
            noisy = _add_gumbel_noise(noisy, [_random_stream(sampling.get("seed"), prompt, "cpu")])
        index = int(noisy.argmax())
        return Generation(choices[index], "stop", model.label, len(prompt), len(paths[index]))

    return _read(candidates, forks, finish)


def score_texts(model: LocalModel, text: str, request: ContinuationRequest) -> Job:
    """Read the log-probabilities of each text's tokens behind a prompt, in nats.

    Raises `LogprobsUnavailableError` for a method that there is not.
    """
    encoded = model.encode([text, *(text + more for more in request.texts)], special=not request.template)
    candidates = split_tokens(encoded[0], encoded[1:], given_opening=request.given_opening)
    _count_room(model, len(candidates.prompt), max(map(len, candidates.paths)))
    method, why = choose_method(frozenset(("echo", "label")), candidates, request.read_by)

    def finish(logits: list[Any]) -> Generation:
        values: dict[TokenPath, dict[int, float]] = {}
        for (place, tokens), row in zip(candidates.forks.items(), logits, strict=True):
            logprobs = row[list(tokens)].double() - row.logsumexp(-1).double()
            values[place] = dict(zip(tokens, logprobs.tolist(), strict=True))
        rows = [[values[path[:depth]][token] for depth, token in enumerate(path)] for path in candidates.paths]
        return build_logprobs(candidates, rows, method, why, request.texts, model.label)

    return _read(candidates, candidates.forks, finish)


def write_reply(model: LocalModel, text: str, sampling: Mapping[str, Any], *, special: bool) -> Job:
    """Continue a text, before which stand the tokens that open every text if `special`."""
    prompt = model.encode([text], special=special)[0]
    most = sampling.get("max_tokens")
    room, budget = _count_room(model, len(prompt), most or 1), most or _DEFAULT_BUDGET
    budget, opened = min(budget, room or budget), is_open(text)

    def finish(written: list[list[int]]) -> Generation:
        return _to_reply(model, prompt, written[0][:budget], sampling.get("stop") or (), opened)

    return Job([prompt], finish, sampling=sampling, budget=budget)


def answer(model: LocalModel, jobs: Sequence[Job]) -> list[Generation]:
    """Answer jobs of one group, with one forward pass or in one batch of replies."""
    rows = [row for job in jobs for row in job.rows]
    if (sampling := jobs[0].sampling) is None:
        points, base = list[tuple[int, int]](), 0
        for job in jobs:
            points += [(base + row, column) for row, column in job.points]
            base += len(job.rows)
        logits = iter(model.logits_at(rows, points) if rows else ())
        # In 32 bits one after the other: all of them at once would fill the memory.
        return [job.finish([next(logits).float() for _ in job.points]) for job in jobs]
    steps = list[Any]()
    if temperature := sampling.get("temperature"):
        steps.append(TemperatureLogitsWarper(temperature))
        # `min_p` before the others, as vLLM does.
        steps += [MinPLogitsWarper(model.min_p)] if model.min_p else []
        steps += [TopKLogitsWarper(top_k)] if (top_k := sampling.get("top_k")) else []
        steps += [TopPLogitsWarper(top_p)] if (top_p := sampling.get("top_p", 1)) < 1 else []
        seeds = [((job.sampling or {}).get("seed"), row) for job in jobs for row in job.rows]
        streams = [_random_stream(seed, row, model.device) for seed, row in seeds]
        steps.append(lambda _, scores: _add_gumbel_noise(scores, streams))
    sequences = iter(model.generate(rows, max(job.budget for job in jobs), steps))
    return [job.finish([next(sequences) for _ in job.rows]) for job in jobs]


def _count_room(model: LocalModel, prompt: int, reply: int) -> int | None:
    """Count the tokens left for a reply, None for no limit; raises `ContextLengthError` for fewer than `reply`."""
    if model.max_context is None:
        return None
    if prompt + reply > model.max_context:
        raise ContextLengthError(
            f"{model.label}: a prompt of {prompt} tokens and a reply of {reply} exceed the context of "
            f"{model.max_context} tokens"
        )
    return model.max_context - prompt


def _to_reply(
    model: LocalModel, prompt: list[int], tokens: list[int], stops: Sequence[str], opened: bool
) -> Generation:
    """Build one row's reply; what was written beyond its end or its stop string is not part of it."""
    end = next((place for place, token in enumerate(tokens) if token in model.ends), None)
    tokens = tokens if end is None else tokens[: end + 1]
    text, stopped = cut_at_stop(model.decode(prompt, tokens), stops)
    if stopped:
        texts = (model.decode(prompt, tokens[:count]) for count in range(1, len(tokens)))
        counts = (count for count, part in enumerate(texts, start=1) if cut_at_stop(part, stops)[1])
        tokens = tokens[: next(counts, len(tokens))]
    block = find_thinking(text, opened=opened)
    thinking = None if block is None else len(model.encode([block[0]])[0])
    reason = "stop" if stopped or end is not None else "length"
    return Generation(whole_reply(text, opened=opened), reason, model.label, len(prompt), len(tokens), thinking)


def _random_stream(seed: int | None, prompt: Sequence[int], device: Any) -> Any:
    """Build the `torch.Generator` of a reply to a prompt; without a seed, a fresh one.

    What it draws does not depend on the requests that share its batch.
    """
    generator = torch.Generator(device=device)
    if seed is None:
        generator.seed()
    else:
        digest = hashlib.sha256(f"{seed}:{','.join(map(str, prompt))}".encode()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return generator


def _add_gumbel_noise(scores: Any, streams: Sequence[Any]) -> Any:
    noise = [torch.empty_like(row).exponential_(generator=stream) for row, stream in zip(scores, streams, strict=True)]
    return scores - torch.stack(noise).log()
