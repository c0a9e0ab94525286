"""Looking up texts while a question is asked."""

from collections.abc import Sequence
from typing import Protocol

from medexam.retrievers.base import Hit


class PassageSearch(Protocol):
    """Looks up any texts, whenever they come up."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find at most `k` passages of each query, most relevant first."""
        ...

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the same without blocking; queries that come together from several questions share a pass."""
        ...
