"""Workers as processes of this machine: started, called over pipes, and ended when the run is.

A worker's death is the end of its pipe. Keys reach it through its environment, as they reached this process.
"""

import asyncio
import itertools
import logging
import os
import subprocess
import sys
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from medexam.experiments.run.workers.pipe_frames import Shared, pack_frame, receive_frame
from medexam.experiments.run.workers.remote import RemoteWorker, WorkerLostError
from medexam.experiments.run.workers.worker import Worker
from medexam.files import host_name
from medexam.serve.network.event_loop import background_loop
from medexam.text import hide_secrets

P = ParamSpec("P")
T = TypeVar("T")

_MODULE = "medexam.experiments.run.workers.child"
_OURS = "medexam: "
"""How a line of standard error begins that is meant for the user."""
_BUFFER = 1 << 20
"""Bytes that are read ahead from a worker."""
_END_S = 7.0
"""Seconds that workers get to end by themselves."""

_log = logging.getLogger(__name__)


@contextmanager
def open_processes(number: int) -> "Iterator[ProcessLauncher]":
    """Open a launcher of `number` processes, which are ended with the block."""
    launcher = ProcessLauncher(number)
    try:
        yield launcher
    finally:
        background_loop().run(launcher.close())


class ProcessLauncher:
    """A `Launcher` of processes of this machine."""

    def __init__(self, number: int) -> None:
        """Prepare to start `number` workers."""
        self._number = number
        self._handles: list[ProcessHandle] = []
        self._lines: set[str] = set()
        """What workers have told the user; others tell the same."""

    async def launch(self) -> list[RemoteWorker]:
        """Start the processes."""
        session, host, threads = uuid.uuid4().hex[:8], host_name(), max(1, usable_cores() // self._number)
        workers = []
        for turn in range(self._number):
            name = f"{session}-{turn}"
            handle = await ProcessHandle.start((name, str(Path.cwd()), threads, self._number), self._tell)
            self._handles.append(handle)
            workers.append(RemoteWorker(name, host, handle))
        return workers

    def share(self, value: T) -> T:
        """Return a stand-in whose pickle is the value's, made once."""
        return cast("T", Shared(value))

    def describe(self) -> dict[str, Any]:
        """Describe what the workers are."""
        return {"kind": "processes"}

    async def close(self) -> None:
        """End the processes; those that do not end by themselves are killed."""
        try:
            for handle in self._handles:
                handle.dismiss()
            await asyncio.wait_for(asyncio.gather(*(handle.ended() for handle in self._handles)), _END_S)
        except TimeoutError:
            pass
        finally:
            for handle in self._handles:
                handle.kill()

    def _tell(self, line: str) -> None:
        if line not in self._lines:
            self._lines.add(line)
            _log.warning("%s", line)


class ProcessHandle:
    """A `Handle` of a process; made and used on the network loop."""

    def __init__(self, process: Process, worker_arguments: tuple[Any, ...], tell: Callable[[str], None]) -> None:
        """Send the arguments of its `Worker`; `tell` is called with each line that the worker means for the user."""
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - they are pipes
        self._process = process
        self._requests, self._replies, self._errors = process.stdin, process.stdout, process.stderr
        self._tell = tell
        self._numbers = itertools.count()
        self._awaited: dict[int, asyncio.Future[Any]] = {}
        self._last_line = ""
        self._gone = False
        self._requests.write(pack_frame(worker_arguments))
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, worker_arguments: tuple[Any, ...], tell: Callable[[str], None]) -> "ProcessHandle":
        """Start the process of a `Worker` that is made with these arguments."""
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", _MODULE),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=_BUFFER,
            # What this process can import, the worker can.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)},
            # Apart from this process's group: Ctrl-C in the terminal is for the driver alone.
            **options,
        )
        return cls(process, worker_arguments, tell)

    async def call(
        self, method: Callable[Concatenate[Worker, P], Coroutine[Any, Any, T]], *arguments: P.args, **keywords: P.kwargs
    ) -> T:
        """Call a method of the worker, as `Handle.call` does."""
        if self._gone:
            raise WorkerLostError(self._last_line)
        number, reply = next(self._numbers), asyncio.get_running_loop().create_future()
        self._awaited[number] = reply
        try:
            # Where the pipe is broken, the reader ends and says so.
            with suppress(ConnectionError):
                self._requests.write(pack_frame((number, method.__name__, arguments, keywords)))
                await self._requests.drain()
            answer: T = await reply
        finally:
            del self._awaited[number]
        return answer

    def kill(self) -> None:
        """Kill the process, as `Handle.kill` does."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def dismiss(self) -> None:
        """Say that no more calls come: the worker ends once it has closed its connections."""
        self._requests.close()

    async def ended(self) -> None:
        """Wait for its end."""
        await self._reading

    async def _read(self) -> None:
        listening = asyncio.create_task(self._listen())
        try:
            while True:
                number, answer, fault = await receive_frame(self._replies)
                # Nobody awaits it after a second Ctrl-C.
                if (reply := self._awaited.get(number)) is not None and not reply.done():
                    reply.set_exception(fault) if fault is not None else reply.set_result(answer)
        except (EOFError, ConnectionError):
            await listening
            await self._process.wait()
        finally:
            self._gone = True
            for reply in self._awaited.values():
                if not reply.done():
                    reply.set_exception(WorkerLostError(self._last_line))

    async def _listen(self) -> None:
        """Pass on what it means for the user, and keep its last line, which may say why it ended."""
        async for raw_line in self._errors:
            line = hide_secrets(raw_line.decode(errors="replace")).rstrip()
            self._last_line = line or self._last_line
            if line.startswith(_OURS):
                self._tell(line)


def usable_cores() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
