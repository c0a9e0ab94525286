"""A retriever: a class with `search`, made with `retriever.args`."""

from collections.abc import Mapping, Sequence

from medexam.retrievers import Hit, Passage


class Glossary:
    """Finds the entries whose term stands in the query, longer terms first; all others follow in their order."""

    digest = "glossary"

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._passages = [Passage(term, term, text, "glossary") for term, text in entries.items()]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first."""
        return [self._best(query.lower(), k) for query in queries]

    def _best(self, query: str, k: int) -> list[Hit]:
        scored = [(len(one.id) if one.id.lower() in query else 0, one) for one in self._passages]
        best = sorted(scored, key=lambda pair: -pair[0])[:k]
        return [Hit(passage, float(score), rank) for rank, (score, passage) in enumerate(best, start=1)]
