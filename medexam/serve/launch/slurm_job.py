"""What a Slurm job of servers runs on each of its nodes.

Each node has a fleet of its own, registers itself on shared storage under its host name, and removes itself when the
job is cancelled or its time is over. Its key is made on the node and lies in a file that only its owner reads.
"""

import contextlib
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from medexam.errors import MedExamError
from medexam.files import host_name
from medexam.serve.discovery.registry import Registry
from medexam.serve.launch.fleet import ClientAccess, Fleet
from medexam.serve.launch.ports import next_free
from medexam.serve.launch.settings import ServerSettings
from medexam.serve.launch.vllm_command import plan_servers
from medexam.serve.launch.vllm_flags import Node
from medexam.serve.network.keys import kept_key, make_key

if TYPE_CHECKING:
    from submitit import JobEnvironment
    from submitit.helpers import DelayedSubmission

    from medexam.serve.launch.processes import Launch

EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - other nodes ask, with a key
_PORTS = range(8_000, 24_000, 16)
"""Where the servers of a job begin to look for a port: jobs that start together on one node get different ones."""
_MEETING_PORTS = range(29_600, 30_600)
"""Where the nodes of one server meet; a port of its own for each job."""


@dataclass(frozen=True)
class ServeJob:
    """What each node of the job runs; submitit pickles it, so its fields are plain."""

    model: str
    registry: Path
    logs: Path
    settings: ServerSettings
    """Address and port are chosen on each node."""
    flags: tuple[str, ...] = ()
    timeout_s: float = 1800.0
    restarts: int = 3
    span: bool = False
    """One server over all nodes of the job; else each node has servers of its own."""

    def __call__(self) -> None:
        """Serve until the job is cancelled or its time is over; ends with exit code 1 if a server is given up."""
        from submitit import JobEnvironment

        job = JobEnvironment()
        meeting = _MEETING_PORTS[int(job.raw_job_id) % len(_MEETING_PORTS)]
        node = Node(job.global_rank, job.num_nodes, job.hostnames[0], meeting) if self.span else None
        come_back = signal.getsignal(job._usr_sig())
        try:
            with _raised_signals(job._usr_sig()):
                self._serve(job, node)
        except _Cancelled:
            _say("cancelled; the servers are stopped")
        except MedExamError as error:
            _say(str(error))
            raise SystemExit(1) from None
        except _TimeOver:
            _say("the job's time is over; the servers are stopped")
            # Submitit's own handler requeues the job; of several nodes one does it for all.
            if job.global_rank == 0 and callable(come_back):
                come_back(job._usr_sig(), None)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pause()  # Slurm ends the other nodes when the first has asked for the job to come back

    def checkpoint(self) -> "DelayedSubmission":
        """What submitit runs when the job comes back: the same again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)

    def plan(
        self, node: Node | None = None, *, port: int | None = None, printing: bool = False
    ) -> "tuple[Launch, ...]":
        """The servers of one node, on ports from `port` on; raises `EngineError` if they could not start."""
        settings = replace(self.settings, host=EVERY_ADDRESS, port=port)
        return plan_servers(self.model, settings, self.flags, node=node, printing=printing)

    def _serve(self, job: "JobEnvironment", node: Node | None) -> None:
        registry = Registry(self.registry)
        key_file = registry.path.parent / "keys" / f"{job.job_id}-{job.global_rank}.key"
        key = make_key()
        own = _PORTS[(int(job.raw_job_id) + job.global_rank) % len(_PORTS)]
        launches = self.plan(node, port=next_free(EVERY_ADDRESS, own))
        answers = node is None or node.rank == 0
        access = ClientAccess(key, key_file, registry if answers else None, job.job_id, host_name())
        logs = self.logs / job.job_id / host_name()
        # One node cannot restart a server that spans several.
        restarts = 0 if self.span else self.restarts
        fleet = Fleet(launches, logs=logs, access=access, restarts=restarts, notify=_say)
        with kept_key(key_file, key), fleet:
            _say(f"loading; the logs are {', '.join(map(str, fleet.logs))}")
            fleet.wait_healthy(self.timeout_s)
            _say(f"healthy: {', '.join(fleet.addresses)}")
            fleet.watch()


class _Cancelled(BaseException):
    """Slurm ends the job."""


class _TimeOver(BaseException):
    """The job's walltime is nearly over."""


@contextlib.contextmanager
def _raised_signals(warning: int) -> Iterator[None]:
    """Slurm's signals end the block as exceptions; a second one does not cut the stopping short."""
    kinds = {signal.SIGTERM: _Cancelled, warning: _TimeOver}

    # BaseExceptions: no `except Exception` in between may take the end of the job for a fault.
    def end(number: int, _frame: FrameType | None) -> None:
        for other in kinds:
            signal.signal(other, signal.SIG_IGN)
        raise kinds[number]

    for number in kinds:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in kinds:
            signal.signal(number, signal.SIG_IGN)


def _say(line: str) -> None:
    sys.stderr.write(f"medexam: {host_name()}: {line}\n")
    sys.stderr.flush()
