"""Choosing one string among several by what the model would write next.

The prompt is tokenised together with each choice, never apart from it: a space before a digit may be a token of its
own or part of the digit's, and only the whole text shows which. What all tokenisations have in common is the prompt
that the model reads; the rest of each is a path in a small tree.

- If the paths differ at their first token, the choice is the likeliest of those tokens: one forward pass.
- If they do not, as with `1` and `10` if digits are single tokens, every fork of the tree is read. At a fork each
  branch has its token's probability, and a choice that is complete there has what the branches leave over: `1` has the
  probability that no `0` follows. The probabilities of a fork are scaled to sum to 1, as a grammar does that allows
  nothing else, and a choice's probability is their product. The likeliest whole choice is taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from medexam.errors import InvalidRequestError
from medexam.model_calls import Sampling
from medexam.serve.local_model.model import LocalModel
from medexam.serve.local_model.sampling import TokenSampling, add_gumbel_noise, random_stream, seeds
from medexam.serve.logprobs.tokens import TokenPath, common_opening


@dataclass(frozen=True)
class ChoiceJob:
    """A request with choices, tokenised."""

    choices: Sequence[str]
    prompt: list[int]
    """The tokens that all choices have in common."""
    paths: list[TokenPath]
    """The further tokens of each choice."""
    sampling: TokenSampling
    seed: int | None
    samples: int = 1
    """How often it is drawn."""

    @property
    def size(self) -> tuple[int, int]:
        """Tokens of a row, and rows."""
        return len(self.prompt), max(1, len(self.forks))

    @property
    def group(self) -> None:
        """All choices may share a batch."""

    @property
    def forks(self) -> list[TokenPath]:
        """The places in the tree where more than one thing can come next; the shortest first."""
        places = {path[:length] for path in self.paths for length in range(len(path) + 1)}
        forks = [place for place in places if len(self._branches(place)) > 1]
        return sorted(forks, key=lambda place: (len(place), place))

    @property
    def rows(self) -> list[list[int]]:
        """What the model reads, one row for each fork."""
        return [[*self.prompt, *fork] for fork in self.forks]

    def log_probabilities(self, logits: Sequence[Any]) -> Any:
        """Compute the log-probability of each choice from the scores at each fork, `[choices]`, in 64 bits."""
        total = torch.zeros(len(self.paths), dtype=torch.float64)
        for fork, scores in zip(self.forks, logits, strict=True):
            branches = self._branches(fork)
            tokens = [token for token in branches if token is not None]
            likely = scores.double().log_softmax(-1)[tokens].cpu()
            values: dict[int | None, Any] = dict(zip(tokens, likely, strict=True))
            if None in branches:
                # Rounding may bring the branches to 1 or above, and the logarithm of nothing would be no number.
                values[None] = torch.log1p(-likely.exp().sum().clamp(max=1 - 1e-12))
            log_sum = torch.stack(list(values.values())).logsumexp(0)
            for index, path in enumerate(self.paths):
                if path[: len(fork)] == fork:
                    total[index] += values[_step(path, fork)] - log_sum
        return total

    def pick(self, logits: Sequence[Any]) -> list[int]:
        """Pick the index of the choice for each sample: the likeliest, or drawn at the request's temperature."""
        scores = self.log_probabilities(logits)
        if not self.sampling.temperature:
            return [int(scores.argmax())] * self.samples
        streams = [random_stream(seed, self.prompt, "cpu") for seed in seeds(self.seed, self.samples)]
        rows = (scores / self.sampling.temperature).expand(self.samples, -1)
        return [int(index) for index in add_gumbel_noise(rows, streams).argmax(-1)]

    def _branches(self, place: TokenPath) -> list[int | None]:
        """List what can come after a place: tokens, and None if a choice is complete; each once, in order of choice."""
        return list(dict.fromkeys(_step(path, place) for path in self.paths if path[: len(place)] == place))


def make_choice_job(model: LocalModel, text: str, choices: Sequence[str], sampling: Sampling) -> ChoiceJob:
    """Tokenise a prompt with each of its choices."""
    encoded = model.encode([text + choice for choice in choices])
    common = common_opening(encoded)
    paths = [tuple(tokens[len(common) :]) for tokens in encoded]
    if len(set(paths)) < len(paths):
        raise InvalidRequestError(f"{model.label}: its tokenizer cannot tell these choices apart: {list(choices)}")
    drawing = TokenSampling.of(sampling, model.min_p)
    return ChoiceJob(choices, common, paths, drawing, sampling.seed, sampling.samples)


def pick_choices(model: LocalModel, jobs: Sequence[ChoiceJob]) -> list[list[int]]:
    """Pick the indices of each job's choices, one for each sample, with one forward pass for the whole batch."""
    rows = [row for job in jobs for row in job.rows]
    logits = list(model.next_logits(rows)) if rows else []
    indices: list[list[int]] = []
    for job in jobs:
        count = len(job.forks)
        indices.append(job.pick(logits[:count]))
        logits = logits[count:]
    return indices


def _step(path: TokenPath, place: TokenPath) -> int | None:
    return path[len(place)] if len(path) > len(place) else None
