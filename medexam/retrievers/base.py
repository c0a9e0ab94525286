"""What every retriever promises, and what passes through it. Programs know this module and nothing else of the wing."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from medexam.errors import EngineError

Progress = Callable[[int], None]
"""Called with the number of passages that have a vector."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a corpus, short enough to stand in a prompt."""

    id: str
    """Unique in its corpus and the same whenever it is read."""
    title: str
    """May be empty."""
    content: str
    source: str
    """The collection that it comes from, such as `medquad`; the corpus's own name where it does not say."""

    @property
    def text(self) -> str:
        """Title and content as one text."""
        return f"{self.title}\n{self.content}" if self.title else self.content


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a query found."""

    passage: Passage
    score: float
    """The higher the more relevant, in a unit of the retriever's own: scores of two retrievers cannot be compared."""
    rank: int
    """From 1."""


class Retriever(Protocol):
    """Finds passages, many queries at once."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first; passages with equal scores in the order of the corpus.

        Fewer than `k` only where a lexical method finds no more passages that share a word with the query. Raises
        `ValueError` where `k` is larger than the corpus.
        """


def import_library(name: str, extra: str = "retrieval") -> Any:
    """Import a library of an extra; raises `EngineError` with the install line where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EngineError(f"this retriever needs {name} ({error}): pip install 'medexam[{extra}]'") from None
