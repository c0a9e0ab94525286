"""The questions of a cell on their way through the workers: who gets which, and what becomes of those of one that dies.

Questions are handed out a little ahead of what each worker asks, so that none waits and a slow one gets fewer. Answers
come back in batches, for the progress alone: they count once they lie in the worker's part of the run's folder.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from medexam.errors import EngineError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.ray.cluster import Cluster, Node
from medexam.experiments.run.ray.messages import Report
from medexam.experiments.run.scheduler import GRACE_S, FailureBudget, QuestionObserver
from medexam.experiments.store.prediction_lines import check_own, scan_predictions
from medexam.experiments.store.shards import shard_path
from medexam.predictions import Prediction
from medexam.questions import Question
from medexam.serve.pool.prefix_cache import PrefixCount

T = TypeVar("T")

FIRST_CONCURRENCY = 16
"""How many questions a worker is taken to hold in flight until it says so."""
AHEAD = 3
"""A worker's hands hold so many times what it has in flight: that, and two chunks that wait."""
_LAST_WORD_S = 2.0
"""Seconds that workers get to put their answers on the disk after a second Ctrl-C."""

_log = logging.getLogger(__name__)


@dataclass
class Member:
    """A worker, as the driver sees it."""

    name: str
    node: Node
    actor: Any
    host: str = ""
    pid: int = 0
    hand: dict[str, Question] = field(default_factory=dict)
    """Questions that it was given and has not told to be done."""
    begun: int = 0
    """How many of them it has begun."""
    waiting: int = 0
    concurrency: int = FIRST_CONCURRENCY
    over: bool = False
    """Whether it begins no more questions of the cell."""
    lost: bool = False
    asked: int = 0
    """Questions of all cells that it has done."""
    counted: PrefixCount | None = None
    endpoints: tuple[str, ...] = ()


@dataclass
class Round:
    """The questions of one cell, on their way through the workers."""

    cluster: Cluster
    planned: AnyCell
    folder: Path
    members: list[Member]
    observer: QuestionObserver
    failures: FailureBudget
    queue: deque[Question] = field(init=False)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, whenever questions come back or a worker has told something."""
    uncounted: int = 0
    """Questions begun by workers that died: the observer has heard of them and hears of them once."""
    stopping: bool = False
    counted: set[str] = field(default_factory=set)
    """Keys of the questions that are done."""

    def __post_init__(self) -> None:
        self.queue = deque(self.planned.pending)

    @property
    def active(self) -> list[Member]:
        """Those that still ask."""
        return [one for one in self.members if not one.over and not one.lost]

    async def run(self) -> None:
        """Until all is asked or nobody asks any more."""
        driving = [asyncio.create_task(self._drive(one)) for one in self.members]
        try:
            await asyncio.wait(driving, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError:
            self.observer.stopping(sum(one.begun for one in self.active))
            await self._halt(GRACE_S)
            raise
        else:
            if any(one.done() and one.exception() for one in driving):
                await self._halt(GRACE_S)
        finally:
            for task in driving:
                task.cancel()
            ended = await asyncio.gather(*driving, return_exceptions=True)
        for fault in ended:
            if isinstance(fault, Exception):
                raise fault
        if self.queue and all(one.lost for one in self.members):
            raise EngineError(
                f"{self.planned.folder.name}: every worker of the Ray cluster is gone; {len(self.queue)} questions "
                "are still pending: run the same again"
            )

    async def _halt(self, grace_s: float) -> None:
        """Have all workers begin nothing more and wait so long for what is in flight; a second Ctrl-C does not wait."""
        self.stopping = True
        halting = asyncio.create_task(self._stop_all(grace_s))
        try:
            await asyncio.shield(halting)
        except asyncio.CancelledError:
            await asyncio.wait([asyncio.create_task(self._stop_all(0.0)), halting], timeout=_LAST_WORD_S)
            raise

    async def _stop_all(self, grace_s: float | None) -> None:
        for member, report in await ask_all(self.active, lambda one: one.actor.stop.remote(grace_s)):
            if isinstance(report, Report):
                self._hear(member, report)
                member.over = True
        self._tell()

    async def _drive(self, member: Member) -> None:
        """Keep one worker's hands full until nothing is left to ask."""
        from ray.exceptions import RayActorError

        try:
            while not member.over:
                given = self._deal(member)
                if not given and not member.hand:
                    if not await self._find_work(member):
                        return
                    continue
                report = await answer(member.actor.exchange.remote(given, bool(self.queue)))
                self._hear(member, report)
                if report.hopeless is not None:
                    raise EngineError(f"{self.planned.folder.name}: {report.hopeless}")
                if report.fault is not None:
                    raise report.fault
                if report.over:
                    self._retire(member)
                elif self.failures.exhausted and not self.stopping:
                    self.stopping = True
                    await self._stop_all(None)
        except RayActorError:
            await self._bury(member)
        finally:
            self._tell()

    def _deal(self, member: Member) -> list[Question]:
        """The next questions of a worker: it keeps two chunks ahead, and towards the end all get equal shares."""
        if self.stopping:
            return []
        room = AHEAD * member.concurrency - len(member.hand)
        share = math.ceil(len(self.queue) / (2 * len(self.active)))
        given = [self.queue.popleft() for _ in range(min(room, share))]
        member.hand |= {question.key: question for question in given}
        member.waiting += len(given)
        return given

    async def _find_work(self, member: Member) -> bool:
        """For a worker with empty hands: take from the fullest, or wait; False where nothing can come any more."""
        others = [one for one in self.active if one is not member and one.hand]
        if self.stopping or not (others or self.queue):
            return False
        fullest = max(others, key=lambda one: one.waiting, default=None)
        if fullest is not None and fullest.waiting > 1:
            wanted = fullest.waiting // 2
            fullest.waiting -= wanted
            keys = await answer(fullest.actor.take_back.remote(wanted))
            self.queue.extendleft(fullest.hand.pop(key) for key in keys if key in fullest.hand)
            if keys:
                return True
        await self.changed.wait()
        return True

    def _hear(self, member: Member, report: Report) -> None:
        """Take what a worker tells."""
        again = min(self.uncounted, report.begun)
        self.uncounted -= again
        for _ in range(report.begun - again):
            self.observer.asked()
        member.begun += report.begun
        for prediction in report.done:
            check_own(prediction, self.planned.spec_digest, f"an answer of the worker on {member.host}")
            self._count(member, prediction)
        member.waiting, member.concurrency = report.waiting, report.concurrency
        self._tell()

    def _count(self, member: Member, prediction: Prediction) -> None:
        member.hand.pop(prediction.question, None)
        if prediction.question in self.counted:
            return
        self.counted.add(prediction.question)
        member.begun -= 1
        member.asked += 1
        self.failures.add(prediction)
        self.observer.answered(prediction)

    def _retire(self, member: Member) -> None:
        """A worker asks no more: what it has not done is for the others."""
        member.over = True
        self.queue.extendleft(reversed(member.hand.values()))
        member.hand = {}

    async def _bury(self, member: Member) -> None:
        """A worker died: what lies in its part is done, the rest of its hands is for the others."""
        lose(self.cluster, member, "while it asked; what it had not answered goes to the others")
        path = shard_path(self.folder, member.name)
        own = self.planned.spec_digest
        for prediction in await asyncio.to_thread(lambda: [one for _, one in scan_predictions(path, own)]):
            self._count(member, prediction)
        self.uncounted += member.begun
        self._retire(member)

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


async def answer(reference: Awaitable[T]) -> T:
    """What a worker answers; what it raised is raised here as it was."""
    from ray.exceptions import RayTaskError

    try:
        return await reference
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        raise (cause if isinstance(cause, Exception) else error) from None


async def ask_all(members: Sequence[Member], call: Any) -> list[tuple[Member, Any]]:
    """What each of the members answers or raises."""
    answers = await asyncio.gather(*(answer(call(one)) for one in members), return_exceptions=True)
    for one in answers:
        if isinstance(one, BaseException) and not isinstance(one, Exception):
            raise one
    return list(zip(members, answers, strict=True))


def lose(cluster: Cluster, member: Member, when: str) -> None:
    """A worker that died, or cannot be reached any more, asks nothing again."""
    member.lost = True
    cluster.ray.kill(member.actor)
    _log.warning("medexam: warning: the worker on %s died %s", member.host, when)
