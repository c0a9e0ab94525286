"""One shard of a run: the pending questions that fall to it by their keys are asked, and the answers go to its own log.

    python -m medexam.experiments.run.shard FOLDER PART PARTS

PART is 0 to PARTS - 1. `medexam run --workers N` starts one for each part here, Ray on other machines, and a task of a
Slurm array is one. A driver tells its shards by files beside the logs; the next `medexam run` merges what they wrote.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

from medexam.errors import EngineError, MedExamError, RunFolderError
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.plan.cells import PlannedCell, combine_needs
from medexam.experiments.plan.planner import plan_resume
from medexam.experiments.run.runner import Executor, admit_models
from medexam.experiments.run.signals import run_interruptibly
from medexam.experiments.run.spending import NO_LIMITS, Limits, Spending, Stop
from medexam.experiments.store.run_folder import SHARDS, RunFolder
from medexam.files import host_name, write_whole
from medexam.library_logging import quiet_dspy

LIMITS = "limits.json"
"""What a shard may spend; without a driver, nothing is limited."""
STOP = "stop"
"""Holds why nothing more is to be begun; it is there only then."""
LOOK_S = 0.25
"""Seconds between two looks at files."""
_PARENT = os.getppid()


def ask_shard(folder: Path, part: int, parts: int) -> dict[str, Any]:
    """Ask one part of a run; return how it ended, which is written beside the log too.

    What a user can cure is returned as `fault`, and raises nothing.
    """
    end: dict[str, Any] = {"host": host_name(), "stop": None, "changes": []}
    end_path = folder / SHARDS / f"{part}.json"
    with suppress(OSError):
        end_path.parent.mkdir(exist_ok=True)
    try:
        with quiet_dspy(), RunFolder(folder).locked(part):
            end_path.unlink(missing_ok=True)
            planned = plan_resume(str(folder), runs_dir=folder.parent).cells[0]
            # Shards that begin later divide the questions alike.
            pending = [question for question in planned.pending if crc32(question.key.encode()) % parts == part]
            limits = NO_LIMITS
            with suppress(FileNotFoundError):
                limits = Limits(**json.loads((folder / SHARDS / LIMITS).read_bytes()))
            if pending:
                executor = Executor()
                planned = replace(planned, pending=tuple(pending))
                end |= run_interruptibly(_ask(planned, f"{SHARDS}/{part}.jsonl", Spending(limits), executor))
    except KeyboardInterrupt:
        end["stop"] = Stop.INTERRUPTED
    except MedExamError as error:
        end["fault"] = str(error)
    with suppress(OSError):
        write_whole(end_path, json.dumps(end))
    return end


async def _ask(planned: PlannedCell, log: str, spending: Spending, executor: Executor) -> dict[str, Any]:
    # A driver follows the log.
    observer, task = RunProgress(disable=True), asyncio.current_task()

    async def watch() -> None:
        """End the asking when the driver says so, or is gone."""
        while True:
            word = ""
            with suppress(OSError):
                word = (planned.folder.path / SHARDS / STOP).read_text()
            if task is not None and (os.getppid() != _PARENT or word == Stop.INTERRUPTED):
                task.cancel()
                return
            spending.ended = Stop(word) if word else spending.ended
            await asyncio.sleep(LOOK_S)

    watching = asyncio.create_task(watch())
    try:
        await executor.prepare(planned, observer, combine_needs([planned]))
        try:
            planned = admit_models(planned, executor, answers=1)
        except RunFolderError:
            raise EngineError(
                f"{host_name()} reaches other models than those that were admitted to {planned.run_id}; give all "
                "machines the same ones"
            ) from None
        planned = await asyncio.to_thread(planned.look_up)
        await asyncio.to_thread(spending.begin_cell, planned)
        await executor.ask(planned, observer, spending, log)
        stop = spending.exhausted if spending.questions < len(planned.pending) else None
        return {"stop": stop, "changes": await executor.find_changes(planned)}
    finally:
        watching.cancel()
        await executor.aclose()


def main(arguments: list[str]) -> int:
    """Ask the part that the arguments name; return the exit code of a command."""
    if len(arguments) != 3 or not all(word.isdecimal() for word in arguments[1:]):
        sys.stderr.write("medexam: give FOLDER PART PARTS, such as runs/NAME 0 8\n")
        return 2
    end = ask_shard(Path(arguments[0]).absolute(), *map(int, arguments[1:]))
    if fault := end.get("fault"):
        sys.stderr.write(f"medexam: {fault}\n")
        return 2
    return 0 if end["stop"] is None else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
