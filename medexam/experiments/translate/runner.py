"""Carrying out translations: the questions go through the machinery that runs are asked with.

So many are in flight as the engine can take, each reply is on the disk within half a second, Ctrl-C waits for those in
flight, and what failed is pending.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Protocol

import dspy

from medexam.experiments.run.language_model import build_lm
from medexam.experiments.run.runner import Stop
from medexam.experiments.run.scheduler import FailureBudget, QuestionObserver, Scheduler, Work
from medexam.experiments.run.signals import run_interruptibly
from medexam.experiments.store.answerers import admit
from medexam.experiments.store.environment import Invocation, build_environment
from medexam.experiments.translate.folder import ENVIRONMENT, TranslationFolder
from medexam.experiments.translate.plan import Task, text_digest
from medexam.gc_pause import gc_paused
from medexam.library_logging import truncation_unlogged
from medexam.model_identity import Answerer
from medexam.serve import Engine, build_engine
from medexam.specs import ModelSpec


class TranslationObserver(QuestionObserver, Protocol):
    """Whoever watches a translation, such as a progress bar."""

    def engine_starts(self, model: ModelSpec) -> None:
        """A model is being loaded or a server probed; it may take a while."""

    def task_starts(self, task: Task) -> None:
        """A set-up begins to ask its pending questions."""


def run_tasks(
    tasks: Sequence[Task],
    model: ModelSpec,
    folder: TranslationFolder,
    observer: TranslationObserver,
    *,
    max_failures: int | None = None,
) -> Stop | None:
    """Ask the pending texts of `tasks`, one after the other; why it stopped early, None where it did not.

    The folder must be there. Raises `EngineError` where the model cannot be used, `RunFolderError` where replies cannot
    be written, another process writes there or another model gave the replies.
    """
    if not any(task.pending for task in tasks):
        return None
    try:
        with truncation_unlogged(), folder.locked():
            return run_interruptibly(_run(tasks, model, folder, observer, FailureBudget(max_failures)))
    except (KeyboardInterrupt, CancelledError):
        return Stop.INTERRUPTED


async def _run(
    tasks: Sequence[Task],
    model: ModelSpec,
    folder: TranslationFolder,
    observer: TranslationObserver,
    failures: FailureBudget,
) -> Stop | None:
    observer.engine_starts(model)
    engine = await build_engine(model)
    try:
        ways_out = "or translate into another folder with --out DIR"
        answerer = admit(folder, engine.info().identity, answers=folder.count_replies(), ways_out=ways_out)
        return await _translate(tasks, model, engine, answerer, folder, observer, failures)
    finally:
        await engine.aclose()


async def _translate(
    tasks: Sequence[Task],
    model: ModelSpec,
    engine: Engine,
    answerer: Answerer,
    folder: TranslationFolder,
    observer: TranslationObserver,
    failures: FailureBudget,
) -> Stop | None:
    before = folder.read_json(ENVIRONMENT) if (folder.path / ENVIRONMENT).exists() else {}
    begun, invocation = time.monotonic(), Invocation()
    try:
        with dspy.context(lm=build_lm(model, engine), disable_history=True), gc_paused():
            for task in tasks:
                observer.task_starts(task)
                await _ask(task, answerer, folder, observer, failures, lambda: engine.concurrency)
                if failures.exhausted:
                    return Stop.FAILURES
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None:
            current.uncancel()
        return Stop.INTERRUPTED
    finally:
        invocation.seconds, invocation.asked = time.monotonic() - begun, failures.asked
        folder.write_json(ENVIRONMENT, build_environment(model, engine.info(), before, invocation))
    return None


async def _ask(
    task: Task,
    answerer: Answerer,
    folder: TranslationFolder,
    observer: TranslationObserver,
    failures: FailureBudget,
    concurrency: Callable[[], int],
) -> None:
    digests = {key: text_digest(source) for key, source in task.sources.items()}
    work = Work(folder.name, task.program, task.words.setup, task.digest, answerer)
    with folder.appending(task.name, digests) as log:
        await Scheduler(work, log, observer, failures, concurrency, task.pending).run()
