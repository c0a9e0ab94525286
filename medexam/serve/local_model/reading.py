"""What a model would write next: choices among strings, and log-probabilities of given texts.

Texts are tokenised together with their prompt, never apart from it: a space before a digit may be a token of its own or
part of the digit's. What all have in common is the prompt that the model reads; the rest of each is a path. One forward
pass for a whole batch reads the next token's scores at each place of the paths that matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from medexam.errors import InvalidRequestError
from medexam.model_calls import Generation, ReadBy, Sampling
from medexam.serve.local_model.model import LocalModel
from medexam.serve.local_model.writing import add_gumbel_noise, check_context, random_stream
from medexam.serve.logprobs.tokens import (
    Candidates,
    TokenPath,
    build_logprobs,
    build_reading,
    choose_method,
    common_opening,
    count_computed,
)

METHODS: frozenset[ReadBy] = frozenset(("echo", "label"))


@dataclass(frozen=True)
class _ReadJob:
    """A prompt and the paths behind it."""

    texts: tuple[str, ...]
    candidates: Candidates

    @cached_property
    def places(self) -> list[TokenPath]:
        """Where the scores of the next token are read, the shortest first."""
        return list(self.candidates.forks)

    @cached_property
    def rows(self) -> list[TokenPath]:
        """What the model reads behind the prompt: each place that no other one begins with."""
        beginnings = {place[:length] for place in self.places for length in range(len(place))}
        return [place for place in self.places if place not in beginnings]

    @property
    def size(self) -> tuple[int, int]:
        """Tokens of its longest row, and rows."""
        return len(self.candidates.prompt) + max(map(len, self.rows), default=0), len(self.rows)

    @property
    def group(self) -> None:
        """All may share a batch."""


@dataclass(frozen=True)
class ChoiceJob(_ReadJob):
    """A choice among strings, by the probabilities that a grammar gives them that allows nothing else.

    Where paths part, each branch has its token's probability, and a choice that is complete there has what the branches
    leave over: `1` has the probability that no `0` follows. They are scaled to sum to 1, and a choice's probability is
    their product.
    """

    sampling: Sampling

    @cached_property
    def places(self) -> list[TokenPath]:
        """Where more than one thing can come next."""
        paths = self.candidates.paths
        return [place for place, tokens in self.candidates.forks.items() if len(tokens) + (place in paths) > 1]

    def log_probabilities(self, logits: Sequence[Any]) -> Any:
        """Compute the log-probability of each choice from the scores at each place, `[choices]`, in 64 bits."""
        paths = self.candidates.paths
        total = torch.zeros(len(paths), dtype=torch.float64)
        for place, scores in zip(self.places, logits, strict=True):
            tokens = self.candidates.forks[place]
            likely = scores.double().log_softmax(-1)[list(tokens)].cpu()
            values: dict[int | None, Any] = dict(zip(tokens, likely, strict=True))
            if place in paths:
                # Rounding may bring the branches to 1 or above, and the logarithm of nothing would be no number.
                values[None] = torch.log1p(-likely.exp().sum().clamp(max=1 - 1e-12))
            log_sum = torch.stack(list(values.values())).logsumexp(0)
            for index, path in enumerate(paths):
                if path[: len(place)] == place:
                    total[index] += values[path[len(place)] if len(path) > len(place) else None] - log_sum
        return total

    def answer(self, label: str, logits: Sequence[Any]) -> list[Generation]:
        """Choose for each sample: the likeliest, or drawn at the request's temperature."""
        scores, prompt = self.log_probabilities(logits), self.candidates.prompt
        generations = []
        for number in range(self.sampling.samples):
            noisy = scores[None] / (self.sampling.temperature or 1)
            if self.sampling.temperature:
                noisy = add_gumbel_noise(noisy, [random_stream(self.sampling.seed, number, prompt, "cpu")])
            index = int(noisy.argmax())
            tokens = len(self.candidates.paths[index])
            generations.append(Generation(self.texts[index], "stop", label, 0 if number else len(prompt), tokens))
        return generations


@dataclass(frozen=True)
class ScoreJob(_ReadJob):
    """Log-probabilities of each text's tokens, nats."""

    method: ReadBy
    why: str

    def answer(self, label: str, logits: Sequence[Any]) -> list[Generation]:
        """Pick the probabilities of the texts' tokens out of the scores at each place."""
        values: dict[TokenPath, dict[int, float]] = {}
        for place, scores in zip(self.places, logits, strict=True):
            tokens = self.candidates.forks[place]
            logprobs = scores[list(tokens)].double() - scores.logsumexp(-1).double()
            values[place] = dict(zip(tokens, logprobs.tolist(), strict=True))
        computed = count_computed(self.candidates, self.method)
        reading = build_logprobs(self.candidates, self.candidates.spell(values), self.method, self.why, computed)
        return [build_reading(reading, self.texts, label)]


def make_choice_job(model: LocalModel, text: str, choices: Sequence[str], sampling: Sampling) -> ChoiceJob:
    """Tokenise a prompt with each of its choices."""
    encoded = model.encode([text + choice for choice in choices])
    prompt = common_opening(encoded)
    paths = tuple(tuple(tokens[len(prompt) :]) for tokens in encoded)
    if len(set(paths)) < len(paths):
        raise InvalidRequestError(f"{model.label}: its tokenizer cannot tell these choices apart: {list(choices)}")
    check_context(model, len(prompt), max(1, *map(len, paths)))
    return ChoiceJob(tuple(choices), Candidates(tuple(prompt), paths), sampling)


def make_score_job(model: LocalModel, texts: tuple[str, ...], candidates: Candidates, read_by: str) -> ScoreJob:
    """Check that the texts fit; raises `LogprobsUnavailableError` for a method that there is not."""
    check_context(model, len(candidates.prompt), max(map(len, candidates.paths)))
    return ScoreJob(texts, candidates, *choose_method(METHODS, candidates, read_by))


def read(model: LocalModel, jobs: Sequence[ChoiceJob | ScoreJob]) -> list[list[Generation]]:
    """Answer each job, with one forward pass for all."""
    rows: list[list[int]] = []
    points: list[tuple[int, int]] = []
    for job in jobs:
        length = len(job.candidates.prompt)
        for place in job.places:
            row = next(number for number, row in enumerate(job.rows) if row[: len(place)] == place)
            points.append((len(rows) + row, length + len(place) - 1))
        rows += [[*job.candidates.prompt, *row] for row in job.rows]
    logits = iter(model.logits_at(rows, points) if rows else ())
    # In 32 bits one after the other: all of them at once would fill the memory.
    return [job.answer(model.label, [next(logits).float() for _ in job.places]) for job in jobs]
