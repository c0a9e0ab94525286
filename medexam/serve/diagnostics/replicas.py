"""Whether several servers are one: the same model, and the same log-probabilities of the same tokens.

Servers of one model differ by what they were started with: another revision, number type or kind of GPU. A run that
spreads its questions over them would then ask several models. This module compares; it judges nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from medexam.errors import LogprobsUnavailableError
from medexam.frozen_model import FrozenModel
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.probe import PROBE_TIMEOUT_S
from medexam.serve.logprobs.vllm import echo_fields, read_echo, read_fork
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import reply_object
from medexam.serve.network.retry import ask_again

_PROMPTS = (
    "Insulin is made in the islets of the pancreas, and glucagon as well.",
    "La hormona que baja la glucosa en la sangre es la insulina: 5,6 mmol/l.",
    "Which of these organs makes insulin?\n1. The liver.\n2. The pancreas.\nAnswer: 2",
)
_ALIKE = ("model", "source", "server_version", "max_context", "named_logprobs", "prefix_block")
"""What replicas of one model should have in common."""


@dataclass(frozen=True)
class ReplicaSample:
    """How one server reads a few fixed prompts."""

    ids: tuple[tuple[int, ...], ...]
    """The tokens of each prompt."""
    logprobs: tuple[float, ...]
    """Log-probabilities of tokens, nats; which ones, the ids and the way of reading tell."""
    way: str
    """How they were read: `echo` or `label`."""


class ReplicaComparison(FrozenModel):
    """How far servers agree."""

    endpoints: tuple[str, ...]
    differing: dict[str, tuple[Any, ...]]
    """What they do not have in common, by name, with the value of each server."""
    same_tokens: bool | None
    """Whether they cut the same texts into the same tokens; None where less than two tell."""
    difference: float | None
    """The largest difference between their log-probabilities of one token, nats; None where less than two tell, or
    where the tokens differ."""
    tokens: int
    """Tokens whose log-probabilities were compared."""


async def take_sample(client: httpx.AsyncClient, endpoint: Endpoint, seen: Capabilities) -> ReplicaSample | None:
    """Read the fixed prompts; None where the server tells no log-probabilities. Raises `dspy.lm15` errors."""
    if not seen.reads:
        return None
    ids = tuple([await _tokens(client, endpoint, seen.model, prompt) for prompt in _PROMPTS])
    if seen.echo_logprobs is not None:
        way, fields = "echo", echo_fields(seen.echo_logprobs)
    else:
        named = sorted({token for prompt in ids for token in prompt})[: seen.named_logprobs]
        way = "label"
        fields = {"max_tokens": 1, "logprobs": 1, "logprob_token_ids": named, "return_tokens_as_token_ids": True}
    logprobs: list[float] = []
    for prompt in ids:
        body = {"model": seen.model, "prompt": [list(prompt)], "temperature": 0, **fields}
        reply = await _post(client, f"{endpoint.base}/completions", body)
        choice = (reply.get("choices") or [{}])[0]
        try:
            if way == "echo":
                logprobs += read_echo(choice, prompt)[1:]
            else:
                logprobs += read_fork(choice, None, fields["logprob_token_ids"], "label").values()
        except LogprobsUnavailableError:
            return None
    return ReplicaSample(ids, tuple(logprobs), way)


def compare_replicas(
    seen: Sequence[Capabilities], samples: Mapping[str, ReplicaSample | None]
) -> ReplicaComparison | None:
    """How far the servers that answered agree; None where there is one. `samples` are by endpoint."""
    if len(seen) < 2:
        return None
    differing = {}
    for name in _ALIKE:
        values = tuple(getattr(one, name) for one in seen)
        if len(set(values)) > 1:
            differing[name] = values
    told = [sample for one in seen if (sample := samples.get(one.endpoint)) is not None]
    alike = [sample for sample in told if sample.way == told[0].way]
    same = len({sample.ids for sample in told}) == 1 if len(told) > 1 else None
    values_by_token = list(zip(*(sample.logprobs for sample in alike), strict=True)) if same and len(alike) > 1 else []
    return ReplicaComparison(
        endpoints=tuple(one.endpoint for one in seen),
        differing=differing,
        same_tokens=same,
        difference=max((max(values) - min(values) for values in values_by_token), default=None),
        tokens=len(values_by_token),
    )


async def _tokens(client: httpx.AsyncClient, endpoint: Endpoint, model: str, prompt: str) -> tuple[int, ...]:
    body = {"model": model, "prompt": prompt, "add_special_tokens": True}
    return tuple((await _post(client, f"{endpoint.root}/tokenize", body)).get("tokens") or ())


async def _post(client: httpx.AsyncClient, address: str, body: Mapping[str, Any]) -> dict[str, Any]:
    async def attempt() -> dict[str, Any]:
        return await reply_object(client.post(address, json=body), address)

    return await ask_again(attempt, timeout_s=PROBE_TIMEOUT_S)
