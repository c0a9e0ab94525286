"""One shard of a run: the pending questions that fall to it by their keys are asked, and the answers go to its own log.

    python -m medexam.experiments.run.shard FOLDER PART PARTS

PART is 0 to PARTS - 1. `medexam run --workers N` starts one for each part here, Ray on other machines, and a task of a
Slurm array is one. The next `medexam run` merges what they wrote. How it ended is printed as JSON.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from socket import gethostname
from typing import Any
from zlib import crc32

from medexam.errors import MedExamError
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.plan.cells import PlannedCell, combine_needs
from medexam.experiments.plan.planner import plan_resume
from medexam.experiments.run.runner import Executor, admit_models
from medexam.experiments.run.signals import run_interruptibly
from medexam.experiments.run.spending import Limits, Spending, Stop
from medexam.experiments.store.run_folder import SHARDS, RunFolder
from medexam.process import quiet_dspy

STOP = "stop"
"""A driver's file beside the logs that holds why nothing more is to be begun; it is there only then."""
LOOK_S = 0.25
"""Seconds between two looks at files."""
_PARENT = os.getppid()


def ask_shard(folder: Path, part: int, parts: int, limits: str = "{}") -> dict[str, Any]:
    """Ask one part of a run under limits in JSON; return how it ended. What a user can cure is its `fault`."""
    end: dict[str, Any] = {"host": gethostname(), "stop": None, "changes": []}
    with suppress(OSError):
        (folder / SHARDS).mkdir(exist_ok=True)
    try:
        with quiet_dspy(), RunFolder(folder).locked(part):
            planned = plan_resume(str(folder), runs_dir=folder.parent).runs[0]
            # Shards that begin later divide the questions alike.
            pending = tuple(each for each in planned.pending if crc32(each.key.encode()) % parts == part)
            if pending:
                spending = Spending(Limits(**json.loads(limits)))
                end |= run_interruptibly(_ask(replace(planned, pending=pending), f"{SHARDS}/{part}.jsonl", spending))
    except KeyboardInterrupt:
        end["stop"] = Stop.INTERRUPTED
    except MedExamError as error:
        end["fault"] = f"{gethostname()}: {error}"
    return end


async def _ask(planned: PlannedCell, log: str, spending: Spending) -> dict[str, Any]:
    # A driver follows the log.
    observer, executor, task = RunProgress(disable=True), Executor(), asyncio.current_task()

    async def watch() -> None:
        """End the asking when the driver says so, or is gone."""
        while task is not None:
            with suppress(OSError, ValueError):
                spending.ended = Stop((planned.folder.path / SHARDS / STOP).read_text())
            if os.getppid() != _PARENT or spending.ended is Stop.INTERRUPTED:
                task.cancel()
                return
            await asyncio.sleep(LOOK_S)

    watching = asyncio.create_task(watch())
    try:
        await executor.prepare(planned, observer, combine_needs([planned]))
        planned = admit_models(planned, executor, answers=1)
        planned = await asyncio.to_thread(planned.look_up)
        await asyncio.to_thread(spending.begin_cell, planned)
        await executor.ask(planned, observer, spending, log)
        stop = spending.exhausted if spending.questions < len(planned.pending) else None
        return {"stop": stop, "changes": await executor.find_changes(planned)}
    finally:
        watching.cancel()
        await executor.aclose()


def main(folder: str, part: str, parts: str, *limits: str) -> int:
    """Ask the part that the arguments name; return the exit code of a command."""
    end = ask_shard(Path(folder).absolute(), int(part), int(parts), *limits)
    sys.stdout.write(json.dumps(end) + "\n")
    return 2 if "fault" in end else 0 if end["stop"] is None else 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
