"""Log-probabilities of continuations: where a text's tokens begin, and by which method they are read.

Two methods, from the same tokens to the same numbers:

- `echo`: the prompt with each continuation behind it, and the probability of every token of that.
- `label`: the prompt once, and the probabilities of its next tokens, for continuations of one token each, such as the
  numbers of options.

Prompts are sent as token ids, so that a server cannot tokenise them differently, and each reply must name the tokens
that were asked for: servers ignore fields they do not know and still answer. This module knows tokens and the fields of
vLLM's completions endpoint; the engines know how a server or a model is asked.
"""

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from medexam.errors import InvalidRequestError, LogprobsUnavailableError
from medexam.model_calls import Continuation, ContinuationLogprobs, ContinuationRequest, Generation, ReadBy
from medexam.serve.network.http_calls import reading_reply

_reading = reading_reply(LogprobsUnavailableError, "; `medexam doctor ENDPOINT` shows what it honours")
TokenPath = tuple[int, ...]
_TOKEN = "token_id:"  # noqa: S105 - no secret
"""Precedes a token's id if the server is asked to name tokens by their ids."""
_SPACES = str.maketrans({"\u2581": " ", "\u0120": " ", "\u010a": "\n"})
"""How tokenizers write a space and the end of a line in a token's text."""
_NO_PROBABILITY = -9999.0
"""What vLLM writes for a token that has no probability, such as one that a mask forbids."""


@dataclass(frozen=True)
class Candidates:
    """A prompt and what may follow it, as tokens."""

    prompt: TokenPath
    paths: tuple[TokenPath, ...]
    """The tokens of each continuation, at least one each; two may be equal, and one may begin another."""

    @cached_property
    def forks(self) -> dict[TokenPath, tuple[int, ...]]:
        """Each place where a continuation has a further token, in order of depth -> those tokens, each once."""
        # Dictionaries as ordered sets: two continuations that go on with one token are asked for it once.
        tokens_by_place: dict[TokenPath, dict[int, None]] = {}
        for path in self.paths:
            for depth, token in enumerate(path):
                tokens_by_place.setdefault(path[:depth], {})[token] = None
        return {place: tuple(tokens_by_place[place]) for place in sorted(tokens_by_place, key=len)}


def split_tokens(
    prompt: Sequence[int], sequences: Sequence[Sequence[int]], *, given_opening: bool = False
) -> Candidates:
    """Build the candidates of a prompt, from its tokens and from those of the prompt together with each continuation.

    The model reads whole texts, so the tokens are those of the whole. If a token spans the end of the prompt in one of
    them, all candidates begin before it: their probabilities are then of the same text given the same tokens. With
    `given_opening` they begin where the continuations first differ. Raises `InvalidRequestError` if a continuation has
    no token, or no token precedes it.
    """
    opening = common_opening(sequences if given_opening else [prompt, *sequences])
    if any(len(tokens) == len(opening) for tokens in sequences):
        raise InvalidRequestError("a continuation has no token of its own: it is empty, or the tokenizer drops it")
    if not opening:
        raise InvalidRequestError(
            "there is no text before the continuations, so their first tokens have no probability"
        )
    return Candidates(tuple(opening), tuple(tuple(tokens[len(opening) :]) for tokens in sequences))


def common_opening(rows: Sequence[Sequence[int]]) -> list[int]:
    """Find the longest opening common to all rows."""
    return [column[0] for column in takewhile(lambda column: len({*column}) == 1, zip(*rows, strict=False))]


def choose_method(methods: frozenset[ReadBy], candidates: Candidates, read_by: str) -> tuple[ReadBy, str]:
    """Choose of a server's `methods` the one that was asked for, or for `auto` the cheapest, and say why.

    Raises `LogprobsUnavailableError` if there is none.
    """
    usable = [method for method in ("label", "echo") if method in methods]
    if any(len(path) > 1 for path in candidates.paths):
        usable = [method for method in usable if method != "label"]
    if read_by == "auto" and usable:
        return ("label", "single tokens") if usable[0] == "label" else ("echo", "texts, or nothing else is honoured")
    if read_by in usable:
        return ("label" if read_by == "label" else "echo"), "asked for"
    raise LogprobsUnavailableError(
        f"there is no way to read log-probabilities of several tokens, or of these by {read_by!r}: this server does "
        f"not honour it; set program.read_by to {' or '.join(map(repr, usable)) or 'auto'}, or serve it with vLLM"
    )


def build_logprobs(
    candidates: Candidates,
    logprobs: Sequence[Sequence[float]],
    method: ReadBy,
    why: str,
    texts: Sequence[str],
    model: str,
    computed: int | None = None,
) -> Generation:
    """Pack the log-probabilities of all candidates, as a reply that is the likeliest of their texts.

    `computed` are the tokens that the model had to compute; None: as many as the method takes. Raises
    `LogprobsUnavailableError` for numbers that can be none.
    """
    if computed is None:
        length = len(candidates.prompt)
        computed = length if method == "label" else sum(length + len(path) for path in set(candidates.paths))
    for path, values in zip(candidates.paths, logprobs, strict=True):
        request = f"the log-probability of each of {len(path)} tokens"
        if len(values) != len(path):
            raise _unusable_reply(method, request, f"{len(values)} numbers")
        for value in values:
            # Rounding may bring the probability of a certain token slightly above 1.
            if not math.isfinite(value) or value > 1e-3 or value == _NO_PROBABILITY:
                raise _unusable_reply(method, request, str(value))
    if len(set(candidates.paths)) > 1 and len(different := {value for values in logprobs for value in values}) == 1:
        request = f"the probability of {len(candidates.paths)} continuations"
        raise _unusable_reply(method, request, f"{different.pop()} for all of them")
    pairs = zip(candidates.paths, logprobs, strict=True)
    rows = tuple(Continuation(tokens=path, logprobs=tuple(values)) for path, values in pairs)
    reading = ContinuationLogprobs(continuations=rows, read_by=method, why=why, computed_tokens=computed)
    totals = [row.total for row in rows]
    return Generation(texts[totals.index(max(totals))], "stop", model, computed, 0, logprobs=reading)


def _unusable_reply(method: str, request: str, reply: str) -> LogprobsUnavailableError:
    others = {"echo": "label", "label": "echo"}
    return LogprobsUnavailableError(
        f"reading log-probabilities by {method!r}: the request was for {request}, and the reply was {reply}; try "
        f"program.read_by={others[method]}, and `medexam doctor ENDPOINT` to see what this server honours"
    )


async def read_continuations(
    submit: Callable[[str, TokenPath], Awaitable[Any]],
    tokens: Callable[..., Awaitable[list[int]]],
    methods: frozenset[ReadBy],
    prompt: str,
    request: ContinuationRequest,
    alternatives: int,
    model: str,
) -> Generation:
    """Read the log-probabilities after a prompt from a server.

    `submit` sends a completions request (body as JSON, prompt) and returns its choice; `tokens` tokenises a text, with
    `special` the tokens too that open every text, which a chat template writes itself. `alternatives` are asked for
    with an echo.
    """
    texts = [prompt, *(prompt + text for text in request.texts)]
    opening, *sequences = await asyncio.gather(*(tokens(text, special=not request.template) for text in texts))
    candidates = split_tokens(opening, sequences, given_opening=request.given_opening)
    method, why = choose_method(methods, candidates, request.read_by)
    if method == "label":
        ids = sorted({token for (token,) in candidates.paths})
        fields = {"max_tokens": 1, "logprobs": 1, "logprob_token_ids": ids, "temperature": 0}
        reply = await submit(json.dumps(fields, sort_keys=True), candidates.prompt)
        by_token = read_label(reply, candidates.prompt, ids)
        values = [[by_token[token]] for (token,) in candidates.paths]
    else:
        body = json.dumps(echo_fields(alternatives), sort_keys=True)
        paths = dict(zip(candidates.paths, texts[1:], strict=True))
        sequences_sent = [candidates.prompt + path for path in paths]
        replies = await asyncio.gather(*(submit(body, sequence) for sequence in sequences_sent))
        rows = dict(zip(paths, map(read_echo, replies, sequences_sent, paths.values()), strict=True))
        values = [rows[path][len(candidates.prompt) :] for path in candidates.paths]
    return build_logprobs(candidates, values, method, why, request.texts, model)


def echo_fields(alternatives: int) -> dict[str, Any]:
    """Build the fields that ask for a prompt's log-probabilities, with this number of alternatives to each token."""
    return {
        "echo": True,
        "logprobs": alternatives,
        "max_tokens": 0,
        "temperature": 0,
        "return_tokens_as_token_ids": True,
    }


@_reading
def read_echo(reply: Mapping[str, Any], prompt: TokenPath, text: str) -> list[float]:
    """Read the log-probability of each token of an echoed prompt, nats, that of the first as NaN.

    Raises `LogprobsUnavailableError` if the reply does not echo the prompt token by token. Tokens that the server names
    by their texts must spell `text`, so that no number is another token's.
    """
    request = f"an echo of {len(prompt)} tokens with their log-probabilities"
    logprobs = reply.get("logprobs") or {}
    values, names = logprobs.get("token_logprobs"), logprobs.get("tokens")
    if not values or not names:
        raise _unusable_reply("echo", request, "none")
    if len(values) < len(prompt) or len(names) != len(values):
        raise _unusable_reply("echo", request, f"{len(values)} log-probabilities of {len(names)} tokens")
    _check_prompt(reply, prompt, "echo")
    for token, name in zip(prompt, names, strict=False):
        if name.startswith(_TOKEN) and name != f"{_TOKEN}{token}":
            raise _unusable_reply("echo", f"token {token}", name)
    tokens = names[: len(prompt)]
    if reply.get("prompt_token_ids") is None and not all(name.startswith(_TOKEN) for name in tokens):
        # At most two tokens open every text. A part of a character is written as a replacement.
        spelled = ["".join(tokens[first:]).translate(_SPACES).lstrip(" ") for first in range(3)]
        patterns = (re.sub("\ufffd+", "[^\x00-\x7f]+", re.escape(words)) for words in spelled)
        if not any(re.fullmatch(pattern, text.lstrip(" ")) for pattern in patterns):
            raise _unusable_reply("echo", request, f"{len(tokens)} tokens that spell another text")
    missing = [place for place, value in enumerate(values[1 : len(prompt)], start=1) if value is None]
    if missing:
        raise _unusable_reply("echo", request, f"none for token {missing[0]}")
    return [float("nan"), *(float(value) for value in values[1 : len(prompt)])]


@_reading
def read_label(reply: Mapping[str, Any], prompt: TokenPath | None, tokens: Sequence[int]) -> dict[int, float]:
    """Read the log-probabilities of some next tokens after a prompt, nats; `prompt` None: its tokens are not known.

    Raises `LogprobsUnavailableError` if one of the tokens is missing.
    """
    _check_prompt(reply, prompt, "label")
    logprobs = ((reply.get("logprobs") or {}).get("top_logprobs") or [None])[0] or {}
    lacking = [token for token in tokens if logprobs.get(f"{_TOKEN}{token}") is None]
    if lacking:
        raise _unusable_reply(
            "label",
            f"logprob_token_ids {list(tokens)[:8]}",
            f"the log-probabilities of {list(logprobs)[:8] or 'nothing'}, without token {lacking[0]}",
        )
    return {token: float(logprobs[f"{_TOKEN}{token}"]) for token in tokens}


def _check_prompt(reply: Mapping[str, Any], prompt: TokenPath | None, method: str) -> None:
    """Check that the prompt that the server read is the one that was sent, if the server returns it."""
    read = reply.get("prompt_token_ids")
    if prompt is not None and read is not None and tuple(read) != prompt:
        raise _unusable_reply(method, f"a prompt of {len(prompt)} tokens", f"one of {len(read)} others")
