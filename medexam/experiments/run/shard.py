"""Shards of a cell: its pending questions are divided by their keys, and each shard's answers go to its own log.

    python -m medexam.experiments.run.shard FOLDER PART PARTS

PART is 0 to PARTS - 1. `medexam run --workers N` starts one for each part here, Ray on the machines of a cluster, and a
task of a Slurm array is one. Who starts them follows their logs; the next `medexam run` merges what they wrote. How one
ended is printed as JSON.
"""

import asyncio
import json
import logging
import os
import subprocess
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from socket import create_connection, gethostname
from typing import Any
from zlib import crc32

from medexam.errors import EngineError, MedExamError, SpecError
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.plan.cells import PlannedCell, combine_needs
from medexam.experiments.plan.planner import plan_resume
from medexam.experiments.run.runner import Executor
from medexam.experiments.run.scheduler import GRACE_S, run_interruptibly
from medexam.experiments.run.spending import Limits, Spending, Stop
from medexam.experiments.store.run_folder import PREDICTIONS, SHARDS, RunFolder
from medexam.predictions import Prediction
from medexam.process import quiet_dspy
from medexam.text import hide_secrets, print_notice

STOP = "stop"
"""A driver's file beside the logs that holds why nothing more is to be begun; it is there only then."""
LOOK_S = 0.25
"""Seconds between two looks at files."""
_PARENT = os.getppid()
_STARTS = 3
"""How often the process of a part is started, if it dies."""
_CONNECT_S = 5.0
RunShard = Callable[[Path, int, int, str], Awaitable[dict[str, Any]]]
"""Has a process do `ask_shard` with these arguments, and returns its result. Raises `ShardLostError` where the process
dies, and ends it where it is cancelled."""


def ask_shard(folder: Path, part: int, parts: int, limits: str = "{}") -> dict[str, Any]:
    """Ask one part of a run under limits in JSON; return how it ended. What a user can cure is its `fault`."""
    end: dict[str, Any] = {"host": gethostname(), "stop": None, "changes": []}
    with suppress(OSError):
        (folder / SHARDS).mkdir(exist_ok=True)
    try:
        with quiet_dspy(), RunFolder(folder).locked(part):
            planned = plan_resume(RunFolder(folder)).runs[0]
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
        planned = await asyncio.to_thread(executor.admit(planned, answers=1).look_up)
        await asyncio.to_thread(spending.begin_cell, planned)
        await executor.ask(planned, observer, spending, log)
        stop = spending.exhausted if spending.questions < len(planned.pending) else None
        return {"stop": stop, "changes": await executor.find_changes(planned)}
    finally:
        watching.cancel()
        await executor.aclose()


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
        self, planned: PlannedCell, observer: RunProgress, spending: Spending, log: str = PREDICTIONS
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

    def _follow(self, shards: Path, observer: RunProgress, spending: Spending) -> None:
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
            print_notice(f"warning: shard {part} died while it asked; another process asks its rest")
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


@contextmanager
def spread_on_ray(address: str | None, number: int | None) -> Iterator[SpreadExecutor]:
    """Yield an executor of `number` shards as tasks of the cluster whose head is at `address`, spread over its
    machines; None: one a machine.

    Without an address one is started here, which listens on 127.0.0.1 alone and is stopped at the end. A cluster that
    this process has joined already is used and left open. Raises `EngineError` where Ray is missing, nothing answers at
    the address, or the cluster cannot be used.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        # Called after other systems; set to 0, Ray listens on the loopback address alone, on Linux as well.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        ray: Any = import_module("ray")
    except ModuleNotFoundError:
        raise EngineError("--executor ray needs the package ray: pip install 'medexam[ray]'") from None
    was_joined = ray.is_initialized()
    try:
        if address is not None and not was_joined:
            # Ray itself waits for minutes, and may end the process then.
            host, _, port = address.rpartition(":")
            create_connection((host, int(port)), _CONNECT_S).close()
        # Questions and answers are small.
        own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 200_000_000}
        settings = {"address": address} if address else own
        if not was_joined:
            ray.init(**settings, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises bare ones, as where its node starts too slowly
        raise EngineError(
            f"no Ray cluster at {address or 'this machine'} ({' '.join(str(error).split())}): start one with `ray "
            "start --head` in this environment and give the HOST:PORT that it prints, or leave --ray-address out"
        ) from None
    try:
        number = number or sum(node["Alive"] for node in ray.nodes())
        yield SpreadExecutor(number, partial(_run_there, ray), kind="ray", ray=ray.__version__)
    finally:
        if not was_joined:
            ray.shutdown()


async def _run_there(ray: Any, folder: Path, part: int, parts: int, limits: str) -> dict[str, Any]:
    options = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": "SPREAD"}
    task = ray.remote(_ask_shard).options(**options).remote(str(Path.cwd()), folder, part, parts, limits)
    try:
        return dict(await task)
    except ray.exceptions.RayError as error:
        raise ShardLostError(str(error).strip().splitlines()[-1]) from None
    finally:
        ray.cancel(task, force=True)


def _ask_shard(directory: str, folder: Path, *part: Any) -> dict[str, Any]:
    try:
        os.chdir(directory)
    except FileNotFoundError:
        return {"fault": f"{gethostname()} does not see {directory}, and a distributed run needs shared folders"}
    return ask_shard(folder, *part)


def main(folder: str, part: str, parts: str, *limits: str) -> int:
    """Ask the part that the arguments name; return the exit code of a command."""
    end = ask_shard(Path(folder).absolute(), int(part), int(parts), *limits)
    sys.stdout.write(json.dumps(end) + "\n")
    return 2 if "fault" in end else 0 if end["stop"] is None else 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
