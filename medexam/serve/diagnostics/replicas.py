"""Whether several servers are one: the same model, and the same log-probabilities of the same tokens.

Servers of one model differ by what they were started with: another revision, number type or kind of GPU. A run that
spreads its questions over them would then ask several models. This module compares; it judges nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from medexam.errors import LogprobsUnavailableError
from medexam.frozen_model import FrozenModel
from medexam.model_calls import ContinuationLogprobs
from medexam.serve.contract import Engine
from medexam.serve.diagnostics.read_check import read_texts
from medexam.serve.discovery.capabilities import Capabilities

_TEXTS = (
    " Insulin is made in the islets of the pancreas, and glucagon as well.",
    " La hormona que baja la glucosa en la sangre es la insulina: 5,6 mmol/l.",
    " Which of these organs makes insulin?\n1. The liver.\n2. The pancreas.\nAnswer: 2",
)
_ALIKE = ("model", "source", "server_version", "max_context", "named_logprobs")
"""What replicas of one model should have in common."""


class ReplicaComparison(FrozenModel):
    """How far servers agree."""

    endpoints: tuple[str, ...]
    differing: dict[str, tuple[Any, ...]]
    """What they do not have in common, by name, with the value of each server."""
    same_tokens: bool | None
    """Whether they cut the same texts into the same tokens; None if less than two report them."""
    difference: float | None
    """The largest difference between their log-probabilities of one token, nats; None if less than two report them, or
    if the tokens differ."""
    tokens: int
    """Tokens whose log-probabilities were compared."""


async def take_sample(engine: Engine) -> ContinuationLogprobs | None:
    """Read a few fixed texts; None if the server reports no log-probabilities. Raises `CallError`s."""
    try:
        return await read_texts(engine, _TEXTS, "auto")
    except LogprobsUnavailableError:
        return None


def compare_replicas(
    capabilities: Sequence[Capabilities], samples: Mapping[str, ContinuationLogprobs | None]
) -> ReplicaComparison | None:
    """Compare how far the servers that answered agree; None for a single one. `samples` are by endpoint."""
    if len(capabilities) < 2:
        return None
    values = {name: tuple(getattr(server, name) for server in capabilities) for name in _ALIKE}
    readings = [sample for server in capabilities if (sample := samples.get(server.endpoint)) is not None]
    same_tokens = (
        len({tuple(text.tokens for text in reading.continuations) for reading in readings}) == 1
        if len(readings) > 1
        else None
    )
    # Ways of reading differ by more than replicas may.
    peers = [reading for reading in readings if same_tokens and reading.read_by == readings[0].read_by]
    logprob_lists = [[value for text in reading.continuations for value in text.logprobs] for reading in peers]
    by_token = list(zip(*logprob_lists, strict=True)) if len(logprob_lists) > 1 else []
    return ReplicaComparison(
        endpoints=tuple(server.endpoint for server in capabilities),
        differing={name: server_values for name, server_values in values.items() if len(set(server_values)) > 1},
        same_tokens=same_tokens,
        difference=max((max(logprobs) - min(logprobs) for logprobs in by_token), default=None),
        tokens=len(by_token),
    )
