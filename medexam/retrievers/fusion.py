"""One ranking out of several: reciprocal rank fusion. It looks at ranks alone, so that scores need no common unit."""

from collections.abc import Sequence
from math import fsum

from medexam.retrievers.base import Hit, Passage, Retriever
from medexam.retrievers.corpora import Corpus
from medexam.specs.identity import digest

DEPTH = 100
"""How many passages each member is asked for by default; no more than these can be ranked."""


class FusionRetriever:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): the sum of 1 / (constant + rank) over members.

    A member that does not return a passage adds nothing to its score. The paper's constant is 60, MedRAG's 100.
    """

    def __init__(
        self, members: Sequence[Retriever], corpus: Corpus, *, constant: int = 100, depth: int | None = None
    ) -> None:
        """Fuse members that all search `corpus`, whose order settles equal scores.

        `depth` is how many passages each member is asked for; None: `DEPTH`, or the whole corpus where it is smaller.
        Raises `ValueError` if `depth` is not from 1 to the corpus's number of passages.
        """
        size = len(corpus.passages)
        self.depth = min(DEPTH, size) if depth is None else depth
        if not 1 <= self.depth <= size:
            raise ValueError(f"depth is {depth}: it must be from 1 to the {size} passages of corpus {corpus.name}")
        self.corpus = corpus
        self.members = tuple(members)
        self.constant = constant
        self.digest = digest(
            {
                "method": "reciprocal rank fusion",
                "corpus": corpus.fingerprint,
                "members": [member.digest for member in members],
                "constant": constant,
                "depth": self.depth,
            }
        )
        self._order = {passage.id: position for position, passage in enumerate(corpus.passages)}

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first; see `Retriever.search`.

        Raises `ValueError` also if `k` is larger than the depth.
        """
        if not 1 <= k <= self.depth:
            raise ValueError(f"k is {k}: it must be from 1 to the depth of fusion, which is {self.depth}")
        if not queries:
            return []
        hits_by_member = [member.search(queries, self.depth) for member in self.members]
        return [self._fuse(rankings, k) for rankings in zip(*hits_by_member, strict=True)]

    def _fuse(self, rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
        parts: dict[str, list[float]] = {}
        passages: dict[str, Passage] = {}
        for hits in rankings:
            for hit in hits:
                passages.setdefault(hit.passage.id, hit.passage)
                parts.setdefault(hit.passage.id, []).append(1 / (self.constant + hit.rank))
        # fsum: the same parts make the same score whichever member they come from, so that ties are ties
        scores = {key: fsum(terms) for key, terms in parts.items()}
        best = sorted(scores, key=lambda key: (-scores[key], self._order[key]))[:k]
        return [Hit(passages[key], scores[key], rank) for rank, key in enumerate(best, start=1)]
