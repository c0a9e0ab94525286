"""Looking up texts while a question is asked, as a step among its calls."""

from collections.abc import Sequence
from typing import Protocol

import dspy

from medexam.retrievers.base import Hit


class PassageSearch(Protocol):
    """Looks up any texts, whenever they come up."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find at most `k` passages of each query, most relevant first."""
        ...

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the same without blocking; queries that come together from several questions share a pass."""
        ...


class LookUp(dspy.Module):
    """A step that asks no model: called with `queries=`, it returns `found`, the hits of each."""

    asks_model = False

    def __init__(self, search: PassageSearch, k: int) -> None:
        super().__init__()
        self._search = search
        self._k = k

    def forward(self, queries: Sequence[str]) -> dspy.Prediction:
        """Look up."""
        return dspy.Prediction(found=self._search.search(queries, self._k))

    async def aforward(self, queries: Sequence[str]) -> dspy.Prediction:
        """Look up without blocking."""
        return dspy.Prediction(found=await self._search.asearch(queries, self._k))
