"""Draws a token or a choice, for each request independently.

Every request has its own random stream, seeded with its seed and its prompt, so that what it draws does not depend on
the requests that share its batch. Gumbel noise is added to the scores and the highest sum taken, which draws exactly
from their softmax and works for a whole batch at once.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from medexam.model_calls import Sampling


@dataclass(frozen=True)
class TokenSampling:
    """What changes the distribution that tokens are drawn from."""

    temperature: float = 0.0
    """0 takes the likeliest."""
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None

    @classmethod
    def of(cls, sampling: Sampling, min_p: float | None) -> "TokenSampling":
        """Read what a dialogue and the model's spec ask for; at temperature 0, the default, nothing else matters."""
        if not sampling.temperature:
            return cls()
        return cls(sampling.temperature, sampling.top_p, sampling.top_k, min_p)


def seeds(seed: int | None, samples: int) -> list[int | None]:
    """List the seed of each of several replies: the first one's, then the next ones."""
    return [None if seed is None else seed + offset for offset in range(samples)]


def random_stream(seed: int | None, tokens: Sequence[int], device: Any) -> Any:
    """Build a `torch.Generator` of this seed and prompt; without a seed, a fresh one."""
    generator = torch.Generator(device=device)
    if seed is None:
        generator.seed()
    else:
        digest = hashlib.sha256(f"{seed}:{','.join(map(str, tokens))}".encode()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return generator


def add_gumbel_noise(scores: Any, streams: Sequence[Any]) -> Any:
    """Add noise to scores `[rows, n]`, row i's from stream i; the argmax of a row is a draw from its softmax."""
    noise = [torch.empty_like(row).exponential_(generator=stream) for row, stream in zip(scores, streams, strict=True)]
    return scores - torch.stack(noise).log()
