"""Looking up texts that only come up while questions are asked: what a model writes, or a user's own module.

Texts that come while others are looked up wait and share the next pass, so that an encoder has full batches and a
lexical index is entered once for many questions.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from threading import Lock

from medexam.experiments.plan.passage_lookup import Retrieval
from medexam.retrievers.base import Hit


@dataclass
class _Wanted:
    queries: Sequence[str]
    k: int
    found: "Future[list[list[Hit]]]" = field(default_factory=Future)


class TextSearch:
    """Looks up any text in the corpus of a run, from any thread and for many at once; a `PassageSearch`."""

    def __init__(self, retrieval: Retrieval) -> None:
        self._retrieval = retrieval
        self._waiting: list[_Wanted] = []
        self._lock = Lock()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` passages of each query, most relevant first."""
        return self._ask(queries, k).result()

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The same without blocking."""
        return await asyncio.wrap_future(self._ask(queries, k))

    def _ask(self, queries: Sequence[str], k: int) -> "Future[list[list[Hit]]]":
        wanted = _Wanted(queries, k)
        with self._lock:
            self._waiting.append(wanted)
        _thread().submit(self._search_waiting)
        return wanted.found

    def _search_waiting(self) -> None:
        """One pass for all that waits; those who gave up meanwhile are left out."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        by_depth: defaultdict[int, list[_Wanted]] = defaultdict(list)
        for wanted in waiting:
            if wanted.found.set_running_or_notify_cancel():
                by_depth[wanted.k].append(wanted)
        for k, group in by_depth.items():
            try:
                found = self._retrieval.look_up([query for one in group for query in one.queries], k)
            except Exception as error:
                for one in group:
                    one.found.set_exception(error)
            else:
                for one in group:
                    one.found.set_result([found[query] for query in one.queries])


@cache
def _thread() -> ThreadPoolExecutor:
    """One thread for all: retrievers promise nothing of several."""
    return ThreadPoolExecutor(1, thread_name_prefix="medexam-search")
