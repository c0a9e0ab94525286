"""Requests collected into waves: when every question that is being asked waits for a reply, what they wait for is
submitted.

A program is suspended where it asks, and continues when its reply is merged by `custom_id`. Programs with several calls
a question therefore go in as many waves. This module knows requests and waits; a `BatchService` works batches off.
"""

import asyncio
import copy
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from medexam.errors import CallError, ConfigurationError, MedExamError, ServerError
from medexam.serve import question_id
from medexam_companions.batches.batch_folder import MOST_REQUESTS, Batch, BatchFolder

SETTLE_S = 0.25
"""Seconds without a further request after which those that came are taken for a wave."""
MOST_BYTES = 200 * 10**6
"""Of one batch's file, as OpenAI takes them."""

BatchService = Callable[[Batch], Awaitable[None]]
"""Brings a batch to its end from whatever its record says, so that its results are on disk; raises `EngineError` for
what no other request of it would escape, and `CallError`s."""


class Waves:
    """The waves of one run, while it asks; it belongs to one event loop."""

    def __init__(
        self,
        folder: BatchFolder,
        service: BatchService,
        in_flight: Callable[[], int],
    ) -> None:
        """Set up the waves; `in_flight` says how many questions are being asked."""
        self._folder = folder
        self._service = service
        self._in_flight = in_flight
        self._unsent: dict[str, bytes] = {}
        self._futures: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._underway: set[str] = set()
        """`custom_id` of what was submitted and has not ended."""
        self._waiting: Counter[int] = Counter()
        """Question -> its requests that wait."""
        self._arrivals = 0
        self._arrived = asyncio.Event()
        self._following: set[asyncio.Task[None]] = set()

    async def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask with the next wave and return the reply's body; raises what the batch says instead."""
        key, line = self._folder.name_request(body)
        if key in self._folder.replies:
            return self._folder.replies.pop(key)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._futures[key] = future
        question = question_id()
        self._waiting[question] += 1
        if key not in self._underway:
            self._unsent[key] = line
        self._arrivals += 1
        self._arrived.set()
        try:
            return await future
        finally:
            del self._futures[key]
            self._unsent.pop(key, None)
            self._waiting[question] -= 1
            if not self._waiting[question]:
                del self._waiting[question]

    async def run(self) -> None:
        """Submit wave after wave, until this is cancelled; then batches are left as they are."""
        try:
            for batch in self._folder.underway:
                self._follow(batch, batch.read_ids())
            while True:
                await self._arrived.wait()
                await self._all_wait()
                self._arrived.clear()
                for keys in self._split():
                    batch = self._folder.write(self._unsent.pop(key) for key in keys)
                    self._follow(batch, keys)
        except MedExamError as fault:
            # Nobody would submit what waits now.
            for key in list(self._futures):
                self._fail(key, ConfigurationError(str(fault)))
        finally:
            for task in self._following:
                task.cancel()
            await asyncio.gather(*self._following, return_exceptions=True)

    async def _all_wait(self) -> None:
        """Wait until every question that is being asked waits for a reply, and no further request comes."""
        while True:
            arrivals = self._arrivals
            await asyncio.sleep(SETTLE_S)
            if arrivals == self._arrivals and len(self._waiting) >= self._in_flight():
                return

    def _split(self) -> Iterator[list[str]]:
        """Split the requests of a wave into batches that the service takes."""
        keys: list[str] = []
        size = 0
        for key, line in list(self._unsent.items()):
            if keys and (len(keys) == MOST_REQUESTS or size + len(line) >= MOST_BYTES):
                yield keys
                keys, size = [], 0
            keys.append(key)
            size += len(line) + 1
        if keys:
            yield keys

    def _follow(self, batch: Batch, keys: list[str]) -> None:
        self._underway |= set(keys)
        task = asyncio.create_task(self._merge(batch, keys))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _merge(self, batch: Batch, keys: list[str]) -> None:
        """Wait for a batch, and give each question that waits its reply."""
        try:
            await self._service(batch)
            results = await asyncio.to_thread(batch.read_results)
        except MedExamError as error:
            fault = error if isinstance(error, CallError) else ConfigurationError(str(error))
            for key in keys:
                self._fail(key, fault)
            return
        finally:
            self._underway -= set(keys)
        for key in keys:
            missing = ServerError(f"the batch ended as {batch.record.status} without a reply to this request")
            result = results.get(key) or missing
            if isinstance(result, CallError):
                self._fail(key, result)
            elif (future := self._futures.get(key)) is None:
                self._folder.replies[key] = result
            elif not future.done():
                future.set_result(result)

    def _fail(self, key: str, fault: CallError) -> None:
        future = self._futures.get(key)
        if future is not None and not future.done():
            # One exception that many tasks raise would collect the traceback of each.
            future.set_exception(copy.copy(fault))
