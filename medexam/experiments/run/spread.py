"""A cell whose questions several processes ask: each is a shard, and the driver follows their logs."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medexam.errors import EngineError, RunFolderError, SpecError
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.run.runner import Executor
from medexam.experiments.run.scheduler import GRACE_S
from medexam.experiments.run.shard import LIMITS, LOOK_S, STOP
from medexam.experiments.run.spending import Spending, Stop
from medexam.experiments.store.run_folder import PREDICTIONS, SHARDS
from medexam.files import write_whole
from medexam.predictions import Prediction
from medexam.text import hide_secrets

if TYPE_CHECKING:
    from medexam.experiments.entry.progress import RunProgress

_STARTS = 3
"""How often the process of a part is started, if it dies."""
_OURS = "medexam: "
"""How a line of standard error begins that is meant for the user."""
_log = logging.getLogger(__name__)


class ShardLostError(Exception):
    """The process of a shard died."""


def check_spreadable(cells: Sequence[PlannedCell]) -> None:
    """Raise `SpecError` if a cell has what several processes cannot share."""
    for planned in cells:
        reason = "program.reader reads passages in one process" if planned.cell.program.asking.local_reader else ""
        for model in planned.models.values():
            if model.ask_engine("works_in_folder") or model.engine == "embedded":
                reason = f"engine {model.engine} works in one process"
        if reason:
            raise SpecError(f"--workers: {reason}; leave --workers out")


class SpreadExecutor(Executor):
    """An executor over shards; a subclass knows where their processes run."""

    def __init__(self, number: int) -> None:
        """Divide the questions of each cell into `number` parts."""
        super().__init__()
        self._number = number
        self._ends: list[dict[str, Any]] = []
        """How each part ended, as `ask_shard` tells, and how many questions it `asked`."""
        self._read_to: dict[Path, int] = {}
        """How far the files of the shards are read."""
        self._lost: list[str] = []
        self._lines: set[str] = set()
        """What shards have told the user; others tell the same."""

    async def run_part(self, folder: Path, part: int, parts: int) -> dict[str, Any]:
        """Run one shard, and return what `ask_shard` does; raises `ShardLostError` where its process dies."""
        raise NotImplementedError

    def kill(self) -> None:
        """End all processes at once."""
        raise NotImplementedError

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
        try:
            shards.mkdir(exist_ok=True)
            write_whole(shards / LIMITS, json.dumps(spending.share(number)))
        except OSError as error:
            raise RunFolderError(f"cannot write {shards}: {error.strerror}") from None
        self._ends, self._read_to, keys = [{"asked": 0} for _ in range(number)], {}, set[str]()
        running = [asyncio.create_task(self._keep_running(shards, part)) for part in range(number)]
        try:
            while (await asyncio.wait(running, timeout=LOOK_S))[1]:
                self._follow(shards, keys, observer, spending)
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
            self.kill()
            faults = await asyncio.gather(*running, return_exceptions=True)
            self._follow(shards, keys, observer, spending)
        spending.ended = next((Stop(word) for end in self._ends if (word := end.get("stop"))), None)
        for fault in faults:
            if isinstance(fault, Exception):
                raise fault
        return None

    async def find_changes(self, planned: PlannedCell) -> list[str]:
        """Return what the first shard tells that saw another model after its last question."""
        if not planned.asks_model:
            return await super().find_changes(planned)
        return next((changes for end in self._ends if (changes := end.get("changes"))), [])

    def describe(self) -> dict[str, Any]:
        """Describe for `environment.json` how many questions of the last cell each shard asked, and which died."""
        workers = [
            {"name": str(part), "host": end.get("host"), "asked": end["asked"]} for part, end in enumerate(self._ends)
        ]
        return {"kind": "processes", "workers": workers, "lost": self._lost}

    async def _keep_running(self, shards: Path, part: int) -> None:
        for _ in range(_STARTS):
            try:
                self._ends[part] |= await self.run_part(shards.parent, part, len(self._ends))
            except ShardLostError as error:
                message = str(error)
            else:
                if fault := self._ends[part].get("fault"):
                    raise EngineError(fault)
                return
            if (shards / STOP).exists():
                return
            self._lost.append(str(part))
            _log.warning("medexam: warning: shard %d died while it asked; another process asks its rest", part)
        raise EngineError(
            f"{shards.parent.name}: shard {part} has died {_STARTS} times ({message}); run the same command again"
        )

    def _follow(self, shards: Path, keys: set[str], observer: "RunProgress", spending: Spending) -> None:
        """Tell of what came to the shards' logs, and pass on what they mean for the user."""
        for part, end in enumerate(self._ends):
            for line in self._read_new(shards / f"{part}.jsonl"):
                prediction = Prediction.model_validate_json(line)
                end["asked"] += 1
                spending.add(prediction)
                if prediction.question not in keys:
                    keys.add(prediction.question)
                    observer.answered(prediction)
            for line in self._read_new(shards / f"{part}.err"):
                text = hide_secrets(line.decode(errors="replace")).rstrip()
                if text.startswith(_OURS) and text not in self._lines and text != _OURS + end.get("fault", ""):
                    self._lines.add(text)
                    _log.warning("%s", text)

    def _read_new(self, path: Path) -> list[bytes]:
        """Read the whole lines that came to a file since the last look."""
        with suppress(FileNotFoundError), path.open("rb") as stream:
            stream.seek(self._read_to.get(path, 0))
            lines = [line for line in stream if line.endswith(b"\n")]
            self._read_to[path] = self._read_to.get(path, 0) + sum(map(len, lines))
            return lines
        return []


class ProcessExecutor(SpreadExecutor):
    """Shards as processes of this machine; keys reach them through their environment, as they reached this one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._processes: dict[int, asyncio.subprocess.Process] = {}

    async def run_part(self, folder: Path, part: int, parts: int) -> dict[str, Any]:
        """Run the shard's module."""
        # Apart from this process's group: Ctrl-C in the terminal is for the driver alone.
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        # What this process can import, the other can.
        path = os.pathsep.join(path or os.curdir for path in sys.path)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        # A file and no pipe: what a process starts may outlive it, and would hold the pipe open.
        place = folder / SHARDS / str(part)
        with place.with_suffix(".err").open("ab") as stream:
            process = self._processes[part] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "medexam.experiments.run.shard", str(folder), str(part), str(parts)),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=stream,
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(max(1, cores // parts))},
                **options,
            )
        await process.wait()
        with suppress(FileNotFoundError):
            return dict(json.loads(place.with_suffix(".json").read_bytes()))
        lines = place.with_suffix(".err").read_text(errors="replace").strip().splitlines()
        raise ShardLostError(hide_secrets(lines[-1]) if lines else f"exit code {process.returncode}")

    def kill(self) -> None:
        """Kill those that live."""
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                process.kill()
