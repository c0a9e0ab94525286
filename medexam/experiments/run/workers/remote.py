"""Workers as the driver sees them, wherever they run: what it calls, what it knows of each, and when one is lost.

A launcher starts workers and says nothing of what they ask: `processes.py` starts processes of this machine, and
`medexam.experiments.run.ray.launcher` actors of a Ray cluster.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from medexam.experiments.run.workers.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")

FIRST_CONCURRENCY = 16
"""How many questions a worker is taken to hold in flight until it says so."""

_log = logging.getLogger(__name__)


class WorkerLostError(Exception):
    """A worker ended, or cannot be reached; the message is the last that is known of it."""


class Handle(Protocol):
    """Reaches one worker."""

    async def call(
        self, method: Callable[Concatenate[Worker, P], Coroutine[Any, Any, T]], *arguments: P.args, **keywords: P.kwargs
    ) -> T:
        """Return what the worker's method returns; raise what it raised, or `WorkerLostError` if the worker is gone."""
        ...

    def kill(self) -> None:
        """End the worker at once."""


@dataclass
class RemoteWorker:
    """A worker, as the driver sees it."""

    name: str
    """That of its shards."""
    host: str
    """Its machine."""
    handle: Handle
    pid: int | None = None
    """None until it has answered for the first time."""
    lost: bool = False
    """Whether it died; it asks nothing again."""
    question_count: int = 0
    """Questions of the cell that it has done."""
    concurrency: int = FIRST_CONCURRENCY
    questions: dict[str, Any] = field(default_factory=dict)
    """Questions of the cell that it has not reported as done, by key."""
    in_flight: int = 0
    """How many of them it has begun."""
    waiting: int = 0
    over: bool = False
    """Whether it begins no more questions of the cell."""

    def begin_cell(self) -> None:
        """Forget the cell before."""
        self.questions, self.in_flight, self.waiting, self.over = {}, 0, 0, False

    def lose(self, when: str) -> None:
        """Count it as dead and kill it: a worker that is only out of reach must not continue asking."""
        self.lost = True
        self.handle.kill()
        _log.warning("medexam: warning: the worker on %s (process %s) died %s", self.host, self.pid, when)


class Launcher(Protocol):
    """Starts the workers of a run."""

    async def launch(self) -> list[RemoteWorker]:
        """Start the workers and return them. They may still be starting: the first call of each waits for it."""
        ...

    def share(self, value: T) -> T:
        """Return what stands for `value` among the arguments of calls, so that it is serialized once for all."""
        ...

    def describe(self) -> dict[str, Any]:
        """Describe the workers for `environment.json`, `kind` first."""
        ...


async def ask_all(
    workers: Sequence[RemoteWorker], call: Callable[[RemoteWorker], Awaitable[Any]]
) -> list[tuple[RemoteWorker, Any]]:
    """Collect what each of the workers answers or raises."""
    answers = await asyncio.gather(*(call(worker) for worker in workers), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, Exception):
            raise answer
    return list(zip(workers, answers, strict=True))
