"""Log-probabilities of continuations: where a text's tokens begin, and by which method they are read.

Two methods, from the same tokens to the same numbers:

- `echo`: the prompt with each continuation behind it, and the probability of every token of that.
- `label`: the prompt once, and the probabilities of its next tokens, for continuations of one token each, such as the
  numbers of options.

This module knows tokens; its neighbours know how a server or a model is asked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from medexam.errors import InvalidRequestError, LogprobsUnavailableError
from medexam.model_calls import Continuation, ContinuationLogprobs, Generation, ReadBy

TokenPath = tuple[int, ...]
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


def choose_method(methods: frozenset[ReadBy], candidates: Candidates, read_by: str) -> tuple[ReadBy, str]:
    """Choose of a server's `methods` the one that was asked for, or for `auto` the cheapest, and say why.

    Raises `LogprobsUnavailableError` if there is none.
    """
    usable = [method for method in sorted(methods) if method != "label" or candidates.are_single_tokens]
    if read_by == "auto" and usable:
        return ("label", "single tokens") if "label" in usable else ("echo", "texts, or nothing else is honoured")
    if read_by == "auto":
        raise LogprobsUnavailableError(
            "this server offers no way to read log-probabilities of several tokens: its completions endpoint does not "
            "honour echo; serve the model with vLLM, or use the embedded engine"
        )
    for method in usable:
        if method == read_by:
            return method, "asked for"
    reason = "a continuation has several tokens" if read_by in methods else "this server does not honour it"
    raise LogprobsUnavailableError(
        f"log-probabilities cannot be read by {read_by!r}: {reason}; set program.read_by to "
        f"{' or '.join(map(repr, usable)) or 'nothing that this server offers'}, or to 'auto'"
    )


def count_computed(candidates: Candidates, method: ReadBy) -> int:
    """Count the tokens that the model has to compute."""
    length = len(candidates.prompt)
    return length if method == "label" else sum(length + len(path) for path in set(candidates.paths))


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
    others = {"echo": "label", "label": "echo"}
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


def common_opening(rows: Sequence[Sequence[int]]) -> list[int]:
    """Find the longest opening common to all rows: that of the first and last in sorted order, which differ most."""
    first, last = list(min(rows, key=list)), list(max(rows, key=list))
    length = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    return first[: min(len(first), len(last)) if length is None else length]
