"""The tokens that prompts share, computed once.

All prompts of an exam begin with the same instructions and demonstrations. Their keys and values are the same in every
prompt, since no token attends to a later one, so they are computed for one row and used for all rows of a batch. This
module knows tokens and attention caches; it knows nothing of text.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from medexam.serve.logprobs.tokens import common_opening

Layers = list[tuple[Any, Any]]
"""Keys and values of each layer, `[1, heads, tokens, head size]`."""

MIN_SHARED = 16
"""Tokens below which a shared opening is not worth the copying of its keys and values: on a CPU it breaks even at about
6 and gains a tenth at 16."""
_GOOD_ENOUGH = 0.8
"""A known opening is used, instead of computing the whole one anew, if it covers this share of it: otherwise two rows
that happen to have a few more words in common would replace it."""


class PrefixCache:
    """The last few openings that batches shared."""

    def __init__(self, compute: Callable[[list[int]], Layers], *, size: int = 4):
        self._compute = compute
        self._size = size
        self._cache: OrderedDict[tuple[int, ...], Layers] = OrderedDict()

    def share(self, rows: Sequence[list[int]]) -> tuple[int, Layers]:
        """Find how many leading tokens the rows need not compute, and their keys and values; `(0, [])` for none.

        At least one token of every row is left to compute.
        """
        opening = shared_opening(rows)
        prefix, length = self._best_prefix(opening)
        target = len(opening) if len(rows) > 1 else length
        if max(target, length) < MIN_SHARED:
            return 0, []
        if prefix is None or length < target * _GOOD_ENOUGH:
            prefix, length = tuple(opening), len(opening)
            self._cache[prefix] = self._compute(opening)
        self._cache.move_to_end(prefix)
        while len(self._cache) > self._size:
            self._cache.popitem(last=False)
        return length, [(keys[..., :length, :], values[..., :length, :]) for keys, values in self._cache[prefix]]

    def _best_prefix(self, opening: list[int]) -> tuple[tuple[int, ...] | None, int]:
        best, length = None, 0
        for prefix in self._cache:
            common = len(common_opening([prefix, opening]))
            if common > length:
                best, length = prefix, common
        return best, length


def shared_opening(rows: Sequence[list[int]]) -> list[int]:
    """Find the longest opening common to all rows that leaves each row at least one token of its own."""
    return common_opening(rows)[: min(len(row) for row in rows) - 1]
