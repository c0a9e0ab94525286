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
    future: "Future[list[list[Hit]]]" = field(default_factory=Future)


class TextSearch:
    """Looks up any text in the corpus of a run, from any thread and for many at once; a `PassageSearch`."""

    def __init__(self, retrieval: Retrieval) -> None:
        self._retrieval = retrieval
        self._queue: list[_Wanted] = []
        self._lock = Lock()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find at most `k` passages of each query, most relevant first."""
        return self._ask(queries, k).result()

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the same without blocking."""
        return await asyncio.wrap_future(self._ask(queries, k))

    def _ask(self, queries: Sequence[str], k: int) -> "Future[list[list[Hit]]]":
        request = _Wanted(queries, k)
        with self._lock:
            self._queue.append(request)
        _thread().submit(self._search_waiting)
        return request.future

    def _search_waiting(self) -> None:
        """Search in one pass for all that waits; those who gave up meanwhile are left out."""
        with self._lock:
            requests, self._queue = self._queue, []
        by_depth: defaultdict[int, list[_Wanted]] = defaultdict(list)
        for request in requests:
            if request.future.set_running_or_notify_cancel():
                by_depth[request.k].append(request)
        for k, group in by_depth.items():
            try:
                hits_by_query = self._retrieval.look_up([query for request in group for query in request.queries], k)
            except Exception as error:
                for request in group:
                    request.future.set_exception(error)
            else:
                for request in group:
                    request.future.set_result([hits_by_query[query] for query in request.queries])


@cache
def _thread() -> ThreadPoolExecutor:
    """Start one thread for all: retrievers promise nothing of several."""
    return ThreadPoolExecutor(1, thread_name_prefix="medexam-search")
