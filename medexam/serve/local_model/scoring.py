"""Scores continuations with a model in this process: many prompts a pass, and what continuations share is read once.

The tree of a prompt's continuations is one row: the prompt, then every place of the tree where a continuation has a
further token. A place attends to the prompt and to the places that lead to it and to nothing else, so the row costs the
tokens of the prompt and of each distinct beginning, once. Models whose attention takes no such mask read one row for
each continuation; whether a model takes it is found by comparing both on its first request.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

import torch

from medexam.model_calls import ReadBy
from medexam.serve.local_model.model import LocalModel
from medexam.serve.logprobs.tokens import Candidates, TokenPath

_AGREE = 0.2
"""The largest mean difference, in nats, of tokens read twice by different methods: float32 differs by less than 0.001,
bfloat16 by up to 0.1, and a model that ignores the mask by more than 0.5."""
_ROWS = 128
"""Rows of logits that are summed at once: their copy in 32 bits has the size of the vocabulary for each."""


class TreeRow(Candidates):
    """A prompt and the tree of what may follow it, as one row of a batch."""

    @cached_property
    def places(self) -> list[TokenPath]:
        """The places that need a token of their own, parents before children."""
        return [place for place in self.forks if place]

    @property
    def tokens(self) -> list[int]:
        """The row's tokens."""
        return [*self.prompt, *(place[-1] for place in self.places)]

    @property
    def is_chain(self) -> bool:
        """Whether each place follows the one before it, as in plain text."""
        return all(len(place) == depth for depth, place in enumerate(self.places, start=1))

    def position(self, place: TokenPath) -> int:
        """Find the index in the row of the token after which the place's probabilities are read."""
        return len(self.prompt) + self._order[place] if place else len(self.prompt) - 1

    @cached_property
    def _order(self) -> dict[TokenPath, int]:
        return {place: index for index, place in enumerate(self.places)}


@dataclass(frozen=True)
class ScoreJob:
    """Continuations to score."""

    texts: tuple[str, ...]
    candidates: Candidates
    method: ReadBy
    why: str

    @property
    def size(self) -> tuple[int, int]:
        """Tokens of its longest row, and rows."""
        return max(len(row.tokens) for row in self.rows), len(self.rows)

    @property
    def group(self) -> ReadBy:
        """Trees take an attention mask of their own, which plain rows do without."""
        return self.method

    @cached_property
    def rows(self) -> list[TreeRow]:
        """One row for the whole tree, or for `echo` one for each continuation."""
        if self.method != "echo":
            return [TreeRow(self.candidates.prompt, self.candidates.paths)]
        return [TreeRow(self.candidates.prompt, (path,)) for path in dict.fromkeys(self.candidates.paths)]


def score(model: LocalModel, jobs: Sequence[ScoreJob]) -> list[list[list[float]]]:
    """Compute for each job the log-probabilities of each continuation's tokens, nats, with one forward pass for all."""
    rows = [row for job in jobs for row in job.rows]
    values = iter(read_tree_rows(model, rows))
    results = []
    for job in jobs:
        values_by_place: dict[TokenPath, dict[int, float]] = {}
        for _ in job.rows:
            for place, logprobs in next(values).items():
                values_by_place.setdefault(place, {}).update(logprobs)
        results.append(job.candidates.spell(values_by_place))
    return results


def takes_trees(model: LocalModel, candidates: Candidates) -> bool:
    """Return whether the model reads a tree in one row as it reads each path alone."""
    try:
        (tree_values,), (path_values,) = (
            score(model, [ScoreJob((), candidates, method, "")]) for method in ("trie", "echo")
        )
    except (TypeError, ValueError, RuntimeError, NotImplementedError):
        return False
    pairs = [pair for path in zip(tree_values, path_values, strict=True) for pair in zip(*path, strict=True)]
    return fmean(abs(tree_value - path_value) for tree_value, path_value in pairs) < _AGREE


def read_tree_rows(model: LocalModel, rows: Sequence[TreeRow]) -> list[dict[TokenPath, dict[int, float]]]:
    """Read for each row the log-probabilities at its places."""
    inputs, shared = model.open_batch([row.tokens for row in rows], [list(row.prompt) for row in rows])
    width = inputs["input_ids"].shape[1]
    if not all(row.is_chain for row in rows):
        inputs["attention_mask"] = _see_ancestors(rows, width, shared, model.device)
    depths = [_depths(row, shared, width) for row in rows]
    inputs["position_ids"] = torch.tensor(depths, device=model.device)
    positions = [(index, row.position(place) - shared) for index, row in enumerate(rows) for place in row.forks]
    logits = model.logits_at(inputs, positions)
    token_sets = [tokens for row in rows for tokens in row.forks.values()]
    logprobs = iter(_pick(logits, token_sets))
    return [
        {place: dict(zip(tokens, next(logprobs), strict=True)) for place, tokens in row.forks.items()} for row in rows
    ]


def _pick(logits: Any, token_sets: Sequence[tuple[int, ...]]) -> Iterator[list[float]]:
    """Yield the log-probabilities of some tokens in each row of logits `[rows, vocabulary]`."""
    for start in range(0, len(token_sets), _ROWS):
        chunk = logits[start : start + _ROWS].float()
        sums = chunk.logsumexp(-1).double()
        for offset, tokens in enumerate(token_sets[start : start + _ROWS]):
            yield (chunk[offset, list(tokens)].double() - sums[offset]).tolist()


def _depths(row: TreeRow, shared: int, width: int) -> list[int]:
    """List the position of each token in its own text, the shared opening left out."""
    length = len(row.prompt)
    # Siblings share a position: each is the next token of its own text.
    depths = [*range(shared, length), *(length + len(place) - 1 for place in row.places)]
    return depths + [0] * (width - len(depths))


def _see_ancestors(rows: Sequence[TreeRow], width: int, shared: int, device: Any) -> Any:
    """Mark which token attends to which, `[rows, 1, width, shared + width]`, True if it does."""
    mask = torch.ones(width, shared + width, dtype=torch.bool).tril(shared).repeat(len(rows), 1, 1)
    for index, row in enumerate(rows):
        length = len(row.prompt)
        if row.is_chain:
            continue
        # Siblings stand beside each other in the row: under the triangle alone each would attend to those before it, as
        # if they were its text.
        mask[index, length - shared :, length:] = False
        for place in row.places:
            position = row.position(place)
            for depth in range(1, len(place) + 1):
                mask[index, position - shared, row.position(place[:depth])] = True
    # A padding token attends to itself, or its weights would have nothing to sum to 1 and become NaN.
    diagonal = torch.arange(width)
    mask[:, diagonal, shared + diagonal] = True
    return mask[:, None].to(device)
