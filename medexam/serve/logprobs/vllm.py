"""Log-probabilities of continuations from vLLM's completions endpoint, each reply checked.

Prompts are sent as token ids, so that the server cannot tokenise them differently, and each reply must name the tokens
that were asked for: servers ignore fields they do not know and still answer. This module knows the wire;
`medexam.serve.logprobs.tokens` knows where tokens begin.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from medexam.errors import LogprobsUnavailableError
from medexam.model_calls import ContinuationLogprobs, ContinuationRequest, ReadBy
from medexam.serve.logprobs.tokens import (
    Candidates,
    TokenPath,
    build_logprobs,
    choose_method,
    count_computed,
    split_tokens,
    unusable_reply,
)
from medexam.serve.network.http_calls import MISFORMED

_TOKEN = "token_id:"  # noqa: S105 - no secret
"""Precedes a token's id if the server is asked to name tokens by their ids."""


class Tokenizer(Protocol):
    """Turns text into the tokens of the served model."""

    async def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Tokenise the text; `special` adds the tokens that open every text, which a chat template writes itself."""
        ...

    async def aclose(self) -> None:
        """Close what was opened."""
        ...


Submit = Callable[[str, TokenPath], Awaitable[Any]]
"""Sends a completions request (body as JSON, prompt); returns its choice."""


async def read_continuations(
    submit: Submit,
    tokenizer: Tokenizer,
    methods: frozenset[ReadBy],
    prompt: str,
    request: ContinuationRequest,
    echo: int,
) -> ContinuationLogprobs:
    """Read the log-probabilities after a prompt; `echo` is the number of alternatives to ask for with an echo."""
    texts = [prompt, *(prompt + text for text in request.texts)]
    special = not request.template
    opening, *sequences = await asyncio.gather(*(tokenizer.tokens(text, special=special) for text in texts))
    candidates = split_tokens(opening, sequences, given_opening=request.given_opening)
    method, why = choose_method(methods, candidates, request.read_by)
    values = await (_label(submit, candidates) if method == "label" else _echo(submit, candidates, echo))
    return build_logprobs(candidates, values, method, why, count_computed(candidates, method))


async def _echo(submit: Submit, candidates: Candidates, alternatives: int) -> list[list[float]]:
    body, paths = json.dumps(echo_fields(alternatives), sort_keys=True), list(dict.fromkeys(candidates.paths))
    sequences = [candidates.prompt + path for path in paths]
    replies = await asyncio.gather(*(submit(body, sequence) for sequence in sequences))
    values = map(read_echo, replies, sequences)
    by_path = {path: row[len(candidates.prompt) :] for path, row in zip(paths, values, strict=True)}
    return [by_path[path] for path in candidates.paths]


async def _label(submit: Submit, candidates: Candidates) -> list[list[float]]:
    tokens = sorted({token for (token,) in candidates.paths})
    fields = {"max_tokens": 1, "logprobs": 1, "logprob_token_ids": tokens, "temperature": 0}
    values = read_label(await submit(json.dumps(fields, sort_keys=True), candidates.prompt), candidates.prompt, tokens)
    return [[values[token]] for (token,) in candidates.paths]


def echo_fields(alternatives: int) -> dict[str, Any]:
    """Build the fields that ask for a prompt's log-probabilities, with this number of alternatives to each token."""
    return {
        "echo": True,
        "logprobs": alternatives,
        "max_tokens": 0,
        "temperature": 0,
        "return_tokens_as_token_ids": True,
    }


@contextmanager
def _in_form() -> Iterator[None]:
    """Raise `LogprobsUnavailableError` where a part of a reply is of another type than the protocol's."""
    try:
        yield
    except MISFORMED as error:
        raise LogprobsUnavailableError(
            f"the server's log-probabilities cannot be read: {error}; `medexam doctor ENDPOINT` shows what it honours"
        ) from error


@_in_form()
def read_echo(reply: dict[str, Any], prompt: TokenPath) -> list[float]:
    """Read the log-probability of each token of an echoed prompt, nats, that of the first as NaN.

    Raises `LogprobsUnavailableError` if the reply does not echo the prompt token by token.
    """
    request = f"an echo of {len(prompt)} tokens with their log-probabilities"
    logprobs = reply.get("logprobs") or {}
    values, names = logprobs.get("token_logprobs"), logprobs.get("tokens")
    if not values or not names:
        raise unusable_reply("echo", request, "none")
    if len(values) < len(prompt) or len(names) != len(values):
        raise unusable_reply("echo", request, f"{len(values)} log-probabilities of {len(names)} tokens")
    _check_prompt(reply, prompt, "echo")
    for token, name in zip(prompt, names, strict=False):
        if name.startswith(_TOKEN) and name != f"{_TOKEN}{token}":
            raise unusable_reply("echo", f"token {token}", name)
    missing = [place for place, value in enumerate(values[1 : len(prompt)], start=1) if value is None]
    if missing:
        raise unusable_reply("echo", request, f"none for token {missing[0]}")
    return [float("nan"), *(float(value) for value in values[1 : len(prompt)])]


@_in_form()
def read_label(reply: dict[str, Any], prompt: TokenPath | None, tokens: Sequence[int]) -> dict[int, float]:
    """Read the log-probabilities of some next tokens after a prompt, nats; `prompt` None: its tokens are not known.

    Raises `LogprobsUnavailableError` if one of the tokens is missing.
    """
    if prompt is not None:
        _check_prompt(reply, prompt, "label")
    logprobs = ((reply.get("logprobs") or {}).get("top_logprobs") or [None])[0] or {}
    lacking = [token for token in tokens if logprobs.get(f"{_TOKEN}{token}") is None]
    if lacking:
        raise unusable_reply(
            "label",
            f"logprob_token_ids {list(tokens)[:8]}",
            f"the log-probabilities of {list(logprobs)[:8] or 'nothing'}, without token {lacking[0]}",
        )
    return {token: float(logprobs[f"{_TOKEN}{token}"]) for token in tokens}


def _check_prompt(reply: dict[str, Any], prompt: TokenPath, method: str) -> None:
    """Check that the prompt that the server read is the one that was sent, if the server returns it."""
    read = reply.get("prompt_token_ids")
    if read is not None and tuple(read) != prompt:
        raise unusable_reply(method, f"a prompt of {len(prompt)} tokens", f"one of {len(read)} others")
