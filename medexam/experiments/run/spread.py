"""A cell whose questions several processes ask: each is a shard, and the driver follows their logs."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from asyncio.subprocess import DEVNULL
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medexam import errors
from medexam.errors import EngineError, MedExamError, RunFolderError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.executor import LocalExecutor, RunObserver
from medexam.experiments.run.number import usable_cores
from medexam.experiments.run.scheduler import GRACE_S
from medexam.experiments.run.shard import LOOK_S, STOP, Job
from medexam.experiments.run.spending import Spending, Stop
from medexam.experiments.store.prediction_lines import check_own
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.store.shards import SHARDS, shard_path
from medexam.predictions import Prediction
from medexam.text import hide_secrets

_MODULE = "medexam.experiments.run.shard"
_STARTS = 3
"""How often the process of a part is started, if it dies."""
_OURS = "medexam: "
"""How a line of standard error begins that is meant for the user."""
_log = logging.getLogger(__name__)


class ShardLostError(Exception):
    """The process of a shard died."""


@dataclass
class _Part:
    """What the driver knows of a shard."""

    number: int
    folder: Path
    asked: int = 0
    end: dict[str, Any] = field(default_factory=dict)
    """How it ended, as `ask_shard` tells; empty as long as it has not."""
    places: dict[Path, int] = field(default_factory=dict)
    """How far its files are read."""

    def read_new(self, path: Path) -> list[bytes]:
        """Read the whole lines that came to a file since the last look."""
        with suppress(FileNotFoundError), path.open("rb") as stream:
            stream.seek(self.places.get(path, 0))
            lines = [line for line in stream if line.endswith(b"\n")]
            self.places[path] = self.places.get(path, 0) + sum(map(len, lines))
            return lines
        return []


class SpreadExecutor(LocalExecutor):
    """An `Executor` over shards; a subclass knows where their processes run."""

    def __init__(self, number: int) -> None:
        """Divide the questions of each cell into `number` parts."""
        super().__init__()
        self._number = number
        self._parts: list[_Part] = []
        self._lost: list[str] = []
        self._lines: set[str] = set()
        """What shards have told the user; others tell the same."""

    async def run_part(self, folder: Path, part: int, parts: int) -> dict[str, Any]:
        """Run one shard, and return what `ask_shard` does; raises `ShardLostError` where its process dies."""
        raise NotImplementedError

    def kill(self) -> None:
        """End all processes at once."""
        raise NotImplementedError

    async def ask(self, planned: AnyCell, observer: RunObserver, spending: Spending) -> None:
        """Ask the cell's pending questions; the answers lie in shards.

        A shard that dies is started again, twice. Raises what a shard could not cure, and `EngineError` where one dies
        each time.
        """
        if not planned.asks_model:
            return await super().ask(planned, observer, spending)
        folder = planned.folder.path.absolute()
        number = int(max(1, min(self._number, len(planned.pending), spending.room)))
        self._prepare_folder(folder, Job(spending.share(number), planned.repeat))
        self._parts, keys = [_Part(part, folder) for part in range(number)], set[str]()
        running = [asyncio.create_task(self._keep_running(part)) for part in self._parts]
        stop = folder / SHARDS / STOP
        try:
            while (await asyncio.wait(running, timeout=LOOK_S))[1]:
                self._follow(planned, keys, observer, spending)
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
            self._follow(planned, keys, observer, spending)
        spending.ended = next((Stop(word) for part in self._parts if (word := part.end.get("stop"))), None)
        for fault in faults:
            if isinstance(fault, Exception):
                raise fault
        return None

    async def find_changes(self, planned: AnyCell) -> list[str]:
        """Return what the first shard tells that saw another model after its last question."""
        if not planned.asks_model:
            return await super().find_changes(planned)
        return next((changes for part in self._parts if (changes := part.end.get("changes"))), [])

    def describe(self) -> dict[str, Any]:
        """Describe for `environment.json` how many questions of the last cell each shard asked, and which died."""
        workers = [
            {"name": str(part.number), "host": part.end.get("host"), "asked": part.asked} for part in self._parts
        ]
        return {"kind": "processes", "workers": workers, "lost": self._lost}

    def _prepare_folder(self, folder: Path, job: Job) -> None:
        try:
            (folder / SHARDS).mkdir(exist_ok=True)
            job.write(folder)
            # Newer than the metrics from now on: nobody may take the run for complete while its answers lie in shards.
            with (folder / PREDICTIONS).open("ab") as stream:
                os.utime(stream.fileno())
        except OSError as error:
            raise RunFolderError(f"cannot write {folder / SHARDS}: {error.strerror}") from None

    async def _keep_running(self, part: _Part) -> None:
        stop = part.folder / SHARDS / STOP
        for _ in range(_STARTS):
            try:
                part.end = await self.run_part(part.folder, part.number, len(self._parts))
            except ShardLostError as error:
                message = str(error)
            else:
                if fault := part.end.get("fault"):
                    kind = getattr(errors, part.end["kind"], EngineError)
                    raise kind(fault) if kind.__init__ is MedExamError.__init__ else EngineError(fault)
                return
            if stop.exists():
                return
            self._lost.append(str(part.number))
            _log.warning("medexam: warning: shard %d died while it asked; another process asks its rest", part.number)
        raise EngineError(
            f"{part.folder.name}: shard {part.number} has died {_STARTS} times ({message}); run the same command again"
        )

    def _follow(self, planned: AnyCell, keys: set[str], observer: RunObserver, spending: Spending) -> None:
        """Tell of what came to the shards' logs, and pass on what they mean for the user."""
        for part in self._parts:
            for line in part.read_new(shard_path(part.folder, part.number)):
                prediction = Prediction.model_validate_json(line)
                check_own(prediction, planned.spec_digest, f"an answer of shard {part.number}")
                part.asked += 1
                spending.add(prediction)
                if prediction.question not in keys:
                    keys.add(prediction.question)
                    observer.asked()
                    observer.answered(prediction)
            for line in part.read_new(part.folder / SHARDS / f"{part.number}.err"):
                text = hide_secrets(line.decode(errors="replace")).rstrip()
                if text.startswith(_OURS) and text not in self._lines and text != _OURS + part.end.get("fault", ""):
                    self._lines.add(text)
                    _log.warning("%s", text)


class ProcessExecutor(SpreadExecutor):
    """Shards as processes of this machine; keys reach them through their environment, as they reached this one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._processes: dict[int, asyncio.subprocess.Process] = {}

    async def run_part(self, folder: Path, part: int, parts: int) -> dict[str, Any]:
        """Run the shard's module."""
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        # What this process can import, the other can.
        path = os.pathsep.join(path or os.curdir for path in sys.path)
        threads = str(max(1, usable_cores() // parts))
        # A file and no pipe: what a process starts may outlive it, and would hold the pipe open.
        place = folder / SHARDS / str(part)
        with place.with_suffix(".err").open("ab") as stream:
            process = self._processes[part] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", _MODULE, str(folder), str(part), str(parts)),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=stream,
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": threads},
                # Apart from this process's group: Ctrl-C in the terminal is for the driver alone.
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
