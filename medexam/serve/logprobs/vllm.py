"""Reading the log-probabilities of continuations from vLLM's completions endpoint, and believing no reply unchecked.

Prompts travel as token ids, so that the server cannot tokenise them anew, and each reply must name the tokens that were
asked for: servers ignore fields they do not know and still answer. This module knows the wire; where tokens begin and
which way is cheapest is `medexam.serve.logprobs.tokens`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from dspy.lm15 import InvalidRequestError

from medexam.continuations import ContinuationLogprobs, ContinuationRequest, ReadBy
from medexam.serve.logprobs.tokens import (
    STRIDE,
    Candidates,
    ReadMethods,
    TokenPath,
    build_reading,
    group_forks,
    refused,
    split_tokens,
)
from medexam.serve.pool.batcher import Batcher

_TOKEN = "token_id:"  # noqa: S105 - no secret
"""What stands before a token's id where the server is asked to name tokens by their ids."""


_LATER = 2.0
"""Nats by which a walk's token is held back for each token before it; of those tried, the most places a prompt."""
_WRITTEN = 2.0
"""The largest penalties that servers take for tokens that they wrote already."""


class Tokenizer(Protocol):
    """Turns text into the tokens of the served model."""

    async def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """The text's tokens; `special` adds those that open every text."""
        ...

    async def aclose(self) -> None:
        """Close what was opened."""
        ...


Send = Callable[[str, Sequence[TokenPath], Any], Awaitable[Sequence[Any]]]
"""Sends a completions request (its body as JSON, the prompts, the server or None for any); its choices in order."""


class ContinuationReader:
    """Reads continuations by the ways that the servers were seen to honour."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        offer: ReadMethods,
        send: Send,
        *,
        echo: int,
        named: int,
        prompts: Callable[[], int],
        enough: Callable[[], int],
    ) -> None:
        """Read by the ways of `offer`.

        `echo` is the number of alternatives to ask for with an echo and `named` the most tokens whose probabilities one
        request may name; `prompts` tells the most prompts that it may hold, and `enough` the number of prompts in
        flight that keep the servers busy.
        """
        self.offer = offer
        self._tokenizer = tokenizer
        self._send = send
        self._echo_body = json.dumps(echo_fields(echo), sort_keys=True)
        self._named = named
        self._gatherer: Batcher[str, TokenPath, Any] = Batcher(
            lambda body, items: send(body, items, None), cap=prompts, enough=enough, divisible=InvalidRequestError
        )
        self._prompts = prompts

    async def read(self, prompt: str, asked: ContinuationRequest, server: Any) -> ContinuationLogprobs:
        """The reading of one prompt; `server` is where what the prompt leaves in a cache can be found again."""
        candidates = await self.tokenise(prompt, asked)
        way, why = self.offer.choose(candidates, asked.read_by)
        if way == "echo":
            logprobs = await self._echo(candidates)
        else:
            logprobs = candidates.spell(await self._forks(candidates, way, server))
        return build_reading(candidates, logprobs, way, why, self.offer.computed(candidates, way))

    async def tokenise(self, prompt: str, asked: ContinuationRequest) -> Candidates:
        """The tokens of the prompt and of each continuation."""
        texts = [prompt, *(prompt + text for text in asked.texts)]
        special = not asked.template
        opening, *whole = await asyncio.gather(*(self._tokenizer.tokens(text, special=special) for text in texts))
        return split_tokens(opening, whole, given_opening=asked.given_opening)

    async def _echo(self, candidates: Candidates) -> list[list[float]]:
        start = len(candidates.prompt)
        paths = list(dict.fromkeys(candidates.paths))
        wholes = [candidates.prompt + path for path in paths]
        replies = await asyncio.gather(*(self._gatherer.submit(self._echo_body, whole) for whole in wholes))
        found = {
            path: read_echo(reply, whole)[start:] for path, whole, reply in zip(paths, wholes, replies, strict=True)
        }
        return [found[path] for path in candidates.paths]

    async def _forks(self, candidates: Candidates, way: ReadBy, server: Any) -> dict[TokenPath, dict[int, float]]:
        """The root alone, which leaves the prompt in the server's cache, then all other places."""
        (root, tokens), *others = candidates.forks.items()
        body = _fork_body(tokens)
        if others:
            replies = await self._send(body, [candidates.prompt], server)
        else:
            replies = [await self._gatherer.submit(body, candidates.prompt)]
        values = {root: read_fork(replies[0], candidates.prompt, tokens, way)}
        if self.offer.walks(candidates):
            await self._walk_all(candidates, way, server, values)
        else:
            await self._ask_each(candidates, others, way, server, values)
        return values

    async def _ask_each(
        self,
        candidates: Candidates,
        forks: Sequence[tuple[TokenPath, tuple[int, ...]]],
        way: ReadBy,
        server: Any,
        values: dict[TokenPath, dict[int, float]],
    ) -> None:
        """A prompt for each place, many a request."""

        async def ask(places: Sequence[TokenPath], named: Sequence[int]) -> None:
            prompts = [candidates.prompt + place for place in places]
            for place, prompt, reply in zip(
                places, prompts, await self._send(_fork_body(named), prompts, server), strict=True
            ):
                values[place] = read_fork(reply, prompt, candidates.forks[place], way)

        most = self._prompts()
        await asyncio.gather(
            *(
                ask(places[start : start + most], named)
                for places, named in group_forks(forks, self._named)
                for start in range(0, len(places), most)
            )
        )

    async def _walk_all(
        self, candidates: Candidates, way: ReadBy, server: Any, values: dict[TokenPath, dict[int, float]]
    ) -> None:
        """Along each continuation, several places a prompt.

        The server may write the next few tokens of a continuation and no others, and is drawn to their order. As long
        as it writes the continuation itself, each step gives the probabilities at one more place; where it goes astray,
        the next prompt goes on from there. The probe has seen that a mask leaves the probabilities alone.
        """

        async def walk(path: TokenPath) -> None:
            depth = 1
            while depth < len(path):
                ahead = path[depth : depth + STRIDE]
                prompt = candidates.prompt + path[:depth]
                (reply,) = await self._send(_walk_body(ahead), [prompt], server)
                for value in read_walk(reply, prompt, ahead, way):
                    values.setdefault(path[:depth], {})[path[depth]] = value
                    depth += 1

        await asyncio.gather(*(walk(path) for path in dict.fromkeys(candidates.paths)))


def echo_fields(alternatives: int) -> dict[str, Any]:
    """The fields that ask for a prompt's own log-probabilities, with so many alternatives to each token."""
    return {
        "echo": True,
        "logprobs": alternatives,
        "max_tokens": 0,
        "temperature": 0,
        "return_tokens_as_token_ids": True,
    }


def read_echo(reply: Any, prompt: TokenPath) -> list[float]:
    """The log-probability of each token of an echoed prompt, nats, that of the first as NaN.

    Raises `LogprobsUnavailableError` where the reply does not echo the prompt token by token.
    """
    asked = f"an echo of {len(prompt)} tokens with their log-probabilities"
    logprobs = _part(reply, "logprobs")
    values, names = _part(logprobs, "token_logprobs"), _part(logprobs, "tokens")
    if not values or not names:
        raise refused("echo", asked, "none")
    if len(values) < len(prompt) or len(names) != len(values):
        raise refused("echo", asked, f"{len(values)} log-probabilities of {len(names)} tokens")
    _check_prompt(reply, prompt, "echo")
    for token, name in zip(prompt, names, strict=False):
        if name.startswith(_TOKEN) and name != f"{_TOKEN}{token}":
            raise refused("echo", f"token {token}", name)
    missing = [place for place, value in enumerate(values[1 : len(prompt)], start=1) if value is None]
    if missing:
        raise refused("echo", asked, f"none for token {missing[0]}")
    return [float("nan"), *(float(value) for value in values[1 : len(prompt)])]


def read_fork(reply: Any, prompt: TokenPath | None, tokens: Sequence[int], way: ReadBy) -> dict[int, float]:
    """The log-probabilities of some next tokens after a prompt, nats; None is a prompt whose tokens are not known.

    Raises `LogprobsUnavailableError` where one of the tokens is not there.
    """
    if prompt is not None:
        _check_prompt(reply, prompt, way)
    places = _part(_part(reply, "logprobs"), "top_logprobs")
    return _read_place((places or [None])[0] or {}, tokens, way)


def read_walk(reply: Any, prompt: TokenPath, ahead: TokenPath, way: ReadBy) -> list[float]:
    """The log-probabilities of the tokens `ahead` of a prompt, nats: the first, and each behind one that was written.

    Raises `LogprobsUnavailableError` where one of them is not there.
    """
    _check_prompt(reply, prompt, way)
    logprobs = _part(reply, "logprobs")
    places, written = _part(logprobs, "top_logprobs") or [{}], _part(logprobs, "tokens") or []
    found: list[float] = []
    for at, token in enumerate(ahead[: len(places)]):
        found.append(_read_place(places[at] or {}, (token,), way)[token])
        if written[at : at + 1] != [f"{_TOKEN}{token}"]:
            break
    return found


def _read_place(known: Mapping[str, float], tokens: Sequence[int], way: ReadBy) -> dict[int, float]:
    lacking = [token for token in tokens if known.get(f"{_TOKEN}{token}") is None]
    if lacking:
        raise refused(
            way,
            f"logprob_token_ids {list(tokens)[:8]}",
            f"the log-probabilities of {list(known)[:8] or 'nothing'}, without token {lacking[0]}",
        )
    return {token: float(known[f"{_TOKEN}{token}"]) for token in tokens}


def _check_prompt(reply: Any, prompt: TokenPath, way: str) -> None:
    """Where the server tells which prompt it read, it must be the one that was sent."""
    read = _part(reply, "prompt_token_ids")
    if read is not None and tuple(read) != prompt:
        raise refused(way, f"a prompt of {len(prompt)} tokens", f"one of {len(read)} others")


def _fork_body(tokens: Sequence[int]) -> str:
    fields = {"max_tokens": 1, "logprobs": 1, "logprob_token_ids": sorted(tokens), "temperature": 0}
    return json.dumps(fields, sort_keys=True)


def _walk_body(ahead: TokenPath) -> str:
    """Draws to the order of the tokens: a token weighs the less the later it stands, and the less for being written."""
    tokens = sorted(set(ahead))
    fields = {
        "max_tokens": len(ahead),
        "logprobs": 1,
        "logprob_token_ids": tokens,
        "allowed_token_ids": tokens,
        "logit_bias": {str(token): -_LATER * ahead.index(token) for token in tokens},
        "presence_penalty": _WRITTEN,
        "frequency_penalty": _WRITTEN,
        "temperature": 0,
    }
    return json.dumps(fields, sort_keys=True)


def _part(whole: Any, name: str) -> Any:
    """A field of a reply, whichever of a mapping and an object it is; None where it is not there."""
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)
