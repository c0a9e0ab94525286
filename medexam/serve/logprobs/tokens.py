"""Log-probabilities of continuations: where a text's tokens begin, and which method of asking is cheapest.

Three methods, from the same tokens to the same numbers:

- `echo`: the prompt with each continuation behind it, and the probability of every token of that. Servers compute the
  prompt anew each time, because a prefix cache keeps no probabilities.
- `trie`: continuations that begin alike share those tokens, so all of them are the paths of a tree. At each place of
  the tree where a continuation has a further token, the probabilities of the next tokens are asked for; the prompt
  comes from the cache.
- `label`: the tree with one place, for continuations of one token each, such as the numbers of options.

This module knows tokens; its neighbours know how a server or a model is asked.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from medexam.errors import InvalidRequestError, LogprobsUnavailableError
from medexam.model_calls import Continuation, ContinuationLogprobs, Generation, ReadBy

TokenPath = tuple[int, ...]
_NO_PROBABILITY = -9999.0
"""What vLLM writes for a token that has no probability, such as one that a mask forbids."""

_PROMPT = 10
"""Cost of scheduling a prompt and sampling after it, in tokens; measured on vLLM."""

_REQUEST = 40
"""Cost of a separate request, in tokens: a millisecond or two of the client's and the server's time."""

STRIDE = 8
"""The most places that one prompt of a walk tries to read. Longer ones fail more often than they save a prompt."""

_REACHED = 4
"""Places that a prompt of a walk reads on average; measured on SmolLM2 and the options of exams in medicine."""


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

    @property
    def are_single_tokens(self) -> bool:
        """Whether each continuation is one token."""
        return all(len(path) == 1 for path in self.paths)

    def spell(self, values: Mapping[TokenPath, Mapping[int, float]]) -> list[list[float]]:
        """Spell out the log-probabilities of each continuation's tokens, from those of the tokens at each fork."""
        return [[values[path[:depth]][token] for depth, token in enumerate(path)] for path in self.paths]


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


@dataclass(frozen=True)
class ReadMethods:
    """The methods by which a model can be read, and what it caches."""

    methods: frozenset[ReadBy]
    block: int | None
    """Tokens of a block of the prefix cache, None if there is none; 0 if all places of a tree are read together, each
    token once."""
    walkable: bool = False
    """Whether one prompt can read several places of a tree; see `walks`."""

    def choose(self, candidates: Candidates, read_by: str) -> tuple[ReadBy, str]:
        """Choose the method that was asked for, or for `auto` the cheapest one, and say why.

        Raises `LogprobsUnavailableError` if it is not supported.
        """
        methods = [method for method in sorted(self.methods) if method != "label" or candidates.are_single_tokens]
        if read_by != "auto":
            for method in methods:
                if method == read_by:
                    return method, "asked for"
            reason = (
                "a continuation has several tokens" if read_by in self.methods else "this server does not honour it"
            )
            raise LogprobsUnavailableError(
                f"log-probabilities cannot be read by {read_by!r}: {reason}; set program.read_by to "
                f"{' or '.join(map(repr, methods)) or 'nothing that this server offers'}, or to 'auto'"
            )
        if not methods:
            raise LogprobsUnavailableError(
                "this server offers no way to read log-probabilities of several tokens: its completions endpoint "
                "honours neither echo nor logprob_token_ids; serve the model with vLLM, or use the embedded engine"
            )
        costs: dict[ReadBy, int] = {method: self.cost(candidates, method) for method in methods}
        # Of equal costs the method with fewer prompts: label before trie before echo.
        best = min(costs, key=lambda method: (costs[method], ("label", "trie", "echo").index(method)))
        listing = ", ".join(f"{method} {cost}" for method, cost in sorted(costs.items(), key=lambda pair: pair[1]))
        return best, f"cost in tokens: {listing}"

    def computed(self, candidates: Candidates, method: ReadBy) -> int:
        """Count the tokens that the model has to compute."""
        length = len(candidates.prompt)
        if method == "echo":
            return sum(length + len(path) for path in set(candidates.paths))
        if self.block == 0:
            return length + len(candidates.forks) - 1
        root, *others = (self._recomputed(candidates, place) for place in candidates.forks)
        if self.walks(candidates):
            return root + (sum(others) + len(others) * (STRIDE - 1)) // _REACHED
        return root + sum(others)

    def walks(self, candidates: Candidates) -> bool:
        """Return whether the places of a tree behind its root are read by walks along each continuation.

        A walk reads several places with one prompt (see `medexam.serve.logprobs.vllm`), but needs a request of its own;
        prompts for single places share one request. Walks are cheaper if much of a prompt is computed anew.
        """
        _, *others = candidates.forks
        if not self.walkable or not others:
            return False
        # Both sides times `_REACHED`, which keeps them integers: a walk reads that many places with one prompt.
        single_cost = sum(self._recomputed(candidates, place) + 1 + _PROMPT for place in others)
        return single_cost + len(others) * (2 * (STRIDE - 1) + _REQUEST) < _REACHED * single_cost

    def _recomputed(self, candidates: Candidates, place: TokenPath) -> int:
        """Count the tokens that are computed anew for the probabilities of the next tokens at a place of the tree."""
        length = len(candidates.prompt)
        # The cache holds whole blocks of the prompt, once the root was read; a prompt's last token is always computed.
        cached_tokens = length // self.block * self.block if self.block and place else 0
        return length + len(place) - min(cached_tokens, length + len(place) - 1)

    def cost(self, candidates: Candidates, method: ReadBy) -> int:
        """Estimate what a method costs, in tokens to compute.

        A row of probabilities over the vocabulary counts as one token more, and a separate prompt as `_PROMPT` more.
        """
        read = self.computed(candidates, method)
        if method == "echo":
            return 2 * read + _PROMPT * len(set(candidates.paths))
        places = len(candidates.forks)
        if self.block == 0:
            return read + places
        if self.walks(candidates):
            return read + 1 + _PROMPT + (places - 1) * (STRIDE + _PROMPT + _REQUEST) // _REACHED
        return read + places * (1 + _PROMPT)


def build_logprobs(
    candidates: Candidates, logprobs: Sequence[Sequence[float]], method: ReadBy, why: str, computed: int
) -> ContinuationLogprobs:
    """Pack the log-probabilities of all candidates; raises `LogprobsUnavailableError` for numbers that can be none."""
    continuations = tuple(
        Continuation(tokens=path, logprobs=tuple(values))
        for path, values in zip(candidates.paths, logprobs, strict=True)
    )
    for continuation in continuations:
        _check_values(continuation, method)
    values = {value for continuation in continuations for value in continuation.logprobs}
    if len(set(candidates.paths)) > 1 and len(values) == 1:
        raise unusable_reply(
            method, f"the probability of {len(candidates.paths)} continuations", f"{values.pop()} for all of them"
        )
    return ContinuationLogprobs(continuations=continuations, read_by=method, why=why, computed_tokens=computed)


def build_reading(logprobs: ContinuationLogprobs, texts: Sequence[str], model: str) -> Generation:
    """Build an engine's generation of log-probabilities, whose reply is the likeliest continuation."""
    totals = [continuation.total for continuation in logprobs.continuations]
    reply = texts[totals.index(max(totals))]
    return Generation(reply, "stop", model, logprobs.computed_tokens, 0, reading=logprobs)


def unusable_reply(method: str, request: str, reply: str) -> LogprobsUnavailableError:
    """Build the error for a reply that is not what was asked for."""
    others = {"echo": "trie", "trie": "echo", "label": "echo"}
    return LogprobsUnavailableError(
        f"reading log-probabilities by {method!r}: the request was for {request}, and the reply was {reply}; try "
        f"program.read_by={others[method]}, and `medexam doctor ENDPOINT` to see what this server honours"
    )


def _check_values(continuation: Continuation, method: ReadBy) -> None:
    request = f"the log-probability of each of {len(continuation.tokens)} tokens"
    if len(continuation.logprobs) != len(continuation.tokens):
        raise unusable_reply(method, request, f"{len(continuation.logprobs)} numbers")
    for value in continuation.logprobs:
        # Rounding may bring the probability of a certain token slightly above 1. vLLM writes a number for none.
        if not math.isfinite(value) or value > 1e-3 or value == _NO_PROBABILITY:
            raise unusable_reply(method, request, str(value))


def group_forks(
    forks: Iterable[tuple[TokenPath, tuple[int, ...]]], most: int
) -> list[tuple[list[TokenPath], list[int]]]:
    """Group forks that can share one request: their tokens together are at most `most`, unless one fork has more."""
    groups: list[tuple[list[TokenPath], list[int]]] = []
    for place, tokens in forks:
        if groups and len({*groups[-1][1], *tokens}) <= most:
            places, group_tokens = groups[-1]
            places.append(place)
            group_tokens += [token for token in tokens if token not in group_tokens]
        else:
            groups.append(([place], list(tokens)))
    return groups


def common_opening(rows: Sequence[Sequence[int]]) -> list[int]:
    """Find the longest opening common to all rows: that of the first and last in sorted order, which differ most."""
    first, last = list(min(rows, key=list)), list(max(rows, key=list))
    length = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    return first[: min(len(first), len(last)) if length is None else length]
