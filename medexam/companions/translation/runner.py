"""Carrying out translations: the questions go through the machinery that runs are asked with.

As many are in flight as the engine can take. Each reply is on the disk within half a second, Ctrl-C waits for those in
flight, and what failed is pending.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from medexam import Limits
from medexam.companions.translation.folder import ENVIRONMENTS, MODEL_FILES, Role, TranslationFolder
from medexam.companions.translation.plan import TranslationTask, text_digest
from medexam.toolkit.asking import (
    Answerer,
    Engine,
    QuestionObserver,
    Scheduler,
    Spending,
    Stop,
    Work,
    build_engine,
    build_lm,
    in_bulk,
    quiet_dspy,
    run_interruptibly,
)
from medexam.toolkit.files import gc_paused
from medexam.toolkit.runs import Invocation, admit, build_environment
from medexam.toolkit.specs import EngineNeeds, ModelSpec


class TranslationObserver(QuestionObserver, Protocol):
    """Watches a translation, such as a progress bar."""

    def engine_starts(self, model: ModelSpec) -> None:
        """Note that a model is being loaded or a server probed; it may take a while."""

    def task_starts(self, task: TranslationTask) -> None:
        """Note that a set-up begins to ask its pending questions."""


def run_tasks(
    tasks: Sequence[TranslationTask],
    folder: TranslationFolder,
    observer: TranslationObserver,
    *,
    max_failures: int | None = None,
) -> Stop | None:
    """Ask the pending texts of `tasks`, one model after the other; return why it stopped early, None if it did not.

    The folder must be there. Raises `EngineError` where the model cannot be used, `RunFolderError` where replies cannot
    be written, another process writes there or another model gave the replies.
    """
    spending = Spending(Limits(failures=max_failures))
    roles = list(dict.fromkeys(task.role for task in tasks if task.pending))
    for role in roles:
        runner = _Runner([task for task in tasks if task.role == role], role, folder, observer, spending)
        try:
            with quiet_dspy(), folder.locked():
                stop = run_interruptibly(runner.run())
        except KeyboardInterrupt:
            return Stop.INTERRUPTED
        if stop is not None:
            return stop
    return None


@dataclass(frozen=True)
class _Runner:
    """Asks the tasks of one model."""

    tasks: Sequence[TranslationTask]
    role: Role
    folder: TranslationFolder
    observer: TranslationObserver
    spending: Spending

    @property
    def model(self) -> ModelSpec:
        return self.tasks[0].model

    async def run(self) -> Stop | None:
        self.observer.engine_starts(self.model)
        plain = self.role == "base"
        engine = await build_engine(self.model, EngineNeeds(plain=plain, chat=not plain))
        try:
            answerer = admit(
                self.folder,
                engine.info().identity,
                answers=self.folder.count_replies(self.role),
                file=MODEL_FILES[self.role],
                ways_out="or translate into another folder with --out DIR",
            )
            return await self._translate(engine, answerer)
        finally:
            await engine.aclose()

    async def _translate(self, engine: Engine, answerer: Answerer) -> Stop | None:
        folder, spending, file = self.folder, self.spending, ENVIRONMENTS[self.role]
        before = folder.read_json(file) if (folder.path / file).exists() else {}
        start, invocation, questions_before = time.monotonic(), Invocation(), spending.questions
        try:
            with in_bulk(build_lm(self.model, engine)), gc_paused():
                for task in self.tasks:
                    self.observer.task_starts(task)
                    digests = {key: text_digest(source) for key, source in task.sources.items()}
                    work = Work(folder.name, task.program, task.words.setup, task.digest, answerer)
                    with folder.appending(task.name, digests) as log:
                        limit, pending = lambda: engine.concurrency, task.pending
                        await Scheduler(work, log, self.observer, spending, limit, pending).run()
                    if spending.exhausted:
                        return Stop.FAILURES
        except asyncio.CancelledError:
            # Ctrl-C cancelled this task; without `uncancel`, closing the engine would be cancelled as well.
            if (current := asyncio.current_task()) is not None:
                current.uncancel()
            return Stop.INTERRUPTED
        finally:
            invocation.seconds, invocation.questions = time.monotonic() - start, spending.questions - questions_before
            folder.write_json(file, build_environment(self.model, engine.info(), before, invocation))
        return None
