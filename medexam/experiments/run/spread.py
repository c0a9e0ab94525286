"""A cell whose questions several processes ask, here or on a Ray cluster: each is a shard, whose log is followed."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medexam.errors import EngineError, SpecError
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.run.runner import Executor
from medexam.experiments.run.scheduler import GRACE_S
from medexam.experiments.run.shard import LOOK_S, STOP
from medexam.experiments.run.spending import Spending, Stop
from medexam.experiments.store.run_folder import PREDICTIONS, SHARDS
from medexam.predictions import Prediction
from medexam.text import hide_secrets

if TYPE_CHECKING:
    from medexam.experiments.entry.progress import RunProgress

_STARTS = 3
"""How often the process of a part is started, if it dies."""
_log = logging.getLogger(__name__)
RunShard = Callable[[Path, int, int, str], Awaitable[dict[str, Any]]]
"""Has a process do `ask_shard` with these arguments, and returns its result. Raises `ShardLostError` where the process
dies, and ends it where it is cancelled."""


class ShardLostError(Exception):
    """The process of a shard died."""


def check_spreadable(cells: Sequence[PlannedCell]) -> None:
    """Raise `SpecError` if a cell has what several processes cannot share."""
    for planned in cells:
        models = planned.models.values()
        alone = [one.engine for one in models if one.engine == "embedded" or one.ask_engine("works_in_folder")]
        if alone or planned.cell.program.asking.local_reader:
            what = f"engine {alone[0]}" if alone else "program.reader"
            raise SpecError(f"--workers, --executor ray: {what} works in one process; leave them out")


class SpreadExecutor(Executor):
    """Divides the questions of each cell into shards; this process only reaches the models once, to know them."""

    def __init__(self, number: int, run_shard: RunShard, **description: Any) -> None:
        """Make `number` shards of a cell; `description` goes to `environment.json`."""
        super().__init__()
        self._number, self._run_shard = number, run_shard
        self._ends: list[dict[str, Any]] = []
        """How each part of the cell ended, as `ask_shard` tells, and how many questions it `asked`."""
        self._read_to: list[int] = []
        """How far the parts' logs are read."""
        self._lost: list[int] = []
        self.description = {**description, "workers": self._ends, "lost": self._lost}

    async def ask(
        self, planned: PlannedCell, observer: "RunProgress", spending: Spending, log: str = PREDICTIONS
    ) -> None:
        """Ask the cell's pending questions; the answers lie in shards.

        A shard that dies is started again, twice. Raises `EngineError` for what a shard could not cure, and where one
        dies each time.
        """
        if not planned.asks_model:
            return await super().ask(planned, observer, spending, log)
        shards = planned.folder.path.absolute() / SHARDS
        number, stop = int(max(1, min(self._number, len(planned.pending), spending.room))), shards / STOP
        shards.mkdir(exist_ok=True)
        limits = json.dumps(spending.share(number))
        self._ends[:], self._read_to = [{"asked": 0} for _ in range(number)], [0] * number
        running = [asyncio.create_task(self._keep_running(shards, part, limits)) for part in range(number)]
        try:
            while (await asyncio.wait(running, timeout=LOOK_S))[1]:
                self._follow(shards, observer, spending)
                has_fault = any(one.done() and one.exception() for one in running)
                if (has_fault or spending.exhausted) and not stop.exists():
                    # Those in flight are finished: they are paid for.
                    stop.write_text(spending.exhausted or Stop.FAILURES)
        except asyncio.CancelledError:
            observer.stopping(0)
            stop.write_text(Stop.INTERRUPTED)
            await asyncio.wait(running, timeout=GRACE_S + 2)
            raise
        finally:
            for one in running:
                one.cancel()
            faults = await asyncio.gather(*running, return_exceptions=True)
            self._follow(shards, observer, spending)
        spending.ended = next((Stop(word) for end in self._ends if (word := end.get("stop"))), None)
        for fault in faults:
            if isinstance(fault, Exception):
                raise fault
        return None

    def _follow(self, shards: Path, observer: "RunProgress", spending: Spending) -> None:
        """Tell of what came to the shards' logs."""
        for part, end in enumerate(self._ends):
            with suppress(FileNotFoundError), (shards / f"{part}.jsonl").open("rb") as stream:
                stream.seek(self._read_to[part])
                for line in takewhile(lambda line: line.endswith(b"\n"), stream):
                    self._read_to[part] += len(line)
                    prediction = Prediction.model_validate_json(line)
                    end["asked"] += 1
                    spending.add(prediction)
                    observer.answered(prediction)

    async def find_changes(self, planned: PlannedCell) -> list[str]:  # noqa: ARG002 - a control has none either
        """Return what the first shard tells that saw another model after its last question."""
        return next((changes for end in self._ends if (changes := end.get("changes"))), [])

    async def _keep_running(self, shards: Path, part: int, limits: str) -> None:
        for _ in range(_STARTS):
            try:
                self._ends[part] |= await self._run_shard(shards.parent, part, len(self._ends), limits)
            except ShardLostError as error:
                message = str(error)
            else:
                if fault := self._ends[part].get("fault"):
                    raise EngineError(fault)
                return
            if (shards / STOP).exists():
                return
            self._lost.append(part)
            _log.warning("medexam: warning: shard %d died while it asked; another process asks its rest", part)
        raise EngineError(
            f"{shards.parent.name}: shard {part} has died {_STARTS} times ({message}); run the same command again"
        )


async def run_here(folder: Path, part: int, parts: int, limits: str) -> dict[str, Any]:
    """Run a shard as a process of this machine; keys reach it through its environment, as they reached this one."""
    # What this process can import, the other can.
    path = os.pathsep.join(path or os.curdir for path in sys.path)
    threads = str(max(1, (os.cpu_count() or 1) // parts))
    # Files and no pipes: what a process starts may outlive it, and would hold them open.
    out, err = (folder / SHARDS / f"{part}.{ending}" for ending in ("out", "err"))
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "medexam.experiments.run.shard", str(folder), str(part), str(parts), limits),
            stdin=DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": threads},
            # Apart from this process's group: Ctrl-C in the terminal is for the driver alone.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
    try:
        await process.wait()
        return dict(json.loads(out.read_bytes()))
    except ValueError:
        lines = err.read_text(errors="replace").strip().splitlines()
        raise ShardLostError(hide_secrets(lines[-1]) if lines else f"exit code {process.returncode}") from None
    finally:
        if process.returncode is None:
            process.kill()
