"""Submitting servers as a Slurm job: the script, and whether the nodes will see what they need.

`submitit` writes the script, submits it and brings the job back after its walltime; `slurm_job.py` is what then runs on
each node.
"""

import contextlib
import io
import os
import re
import secrets
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medexam.errors import EngineError
from medexam.files import write_new
from medexam.serve.launch.processes import Launch
from medexam.serve.launch.settings import Allocation
from medexam.serve.launch.slurm_job import ServeJob
from medexam.serve.launch.vllm_flags import Node

if TYPE_CHECKING:
    from submitit import SlurmExecutor

NOT_SHARED = 72
"""Exit code of a job on a node that does not see the submitter's files."""
_WARNING_S = 90
"""Seconds before its walltime at which a job is warned; less for one of a few minutes."""
_SIGN = ".medexam-shared"


def submit(job: ServeJob, allocation: Allocation) -> str:
    """Submit; returns the job's id. Raises `EngineError` if that cannot be done, or submitit is not installed."""
    signs = [_leave_sign(folder) for folder in _shared_folders(job, allocation)]
    executor = _executor(allocation, job, signs, pretending=False)
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    without_key = _variable("VLLM_API_KEY", None)  # sbatch would hand it on in the job's environment
    try:
        with without_key, contextlib.redirect_stderr(io.StringIO()):  # submitit repeats there what its error says
            return str(executor.submit(job).job_id)
    except (FailedJobError, FailedSubmissionError, OSError) as error:
        said = "; ".join(str(error).splitlines())
        raise EngineError(f"Slurm does not take the job: {said}; look at the script with --print") from None


def job_script(job: ServeJob, allocation: Allocation) -> str:
    """The sbatch script, and as comments what each node starts; no Slurm needs to be here.

    Raises `EngineError` if submitit is not installed or the servers cannot be planned.
    """
    signs = [(folder / _SIGN, "SIGN") for folder in _shared_folders(job, allocation)]
    executor = _executor(allocation, job, signs, pretending=True)
    text = executor._make_submission_file_text(executor._submitit_command_str, "")
    lines = ["# To be read, not handed to sbatch: the command without --print writes the job's files and submits it."]
    for rank in range(allocation.nodes) if job.span else (0,):
        where = f"node {rank}" if job.span else "each node"
        for launch in _imagine(job, allocation, rank):
            lines += [*(f"# {note}" for note in launch.notes), f"# {where} starts: {launch}"]
    return "\n".join([text.rstrip("\n"), "", *lines])


def _imagine(job: ServeJob, allocation: Allocation, rank: int = 0) -> tuple[Launch, ...]:
    """The servers of a node, as far as they are known before the job runs."""
    return job.plan(Node(rank, allocation.nodes, "FIRST_NODE") if job.span else None, printing=True)


@contextlib.contextmanager
def _variable(name: str, value: str | None) -> Iterator[None]:
    """A variable of this process's environment set, or for None unset, for a while."""
    before = os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


def _load_submitit() -> "type[SlurmExecutor]":
    """Submitit's executor; when imported, it would close the handlers of all loggers of this process to set its own."""
    with _variable("SUBMITIT_LOG_LEVEL", "NOCONFIG"):
        try:
            from submitit import SlurmExecutor
        except ImportError:
            raise EngineError("Slurm jobs need submitit; install it with `pip install 'medexam[slurm]'`") from None
    return SlurmExecutor


def _executor(
    allocation: Allocation, job: ServeJob, signs: Sequence[tuple[Path, str]], *, pretending: bool
) -> "SlurmExecutor":
    slurm_executor = _load_submitit()

    class Anywhere(slurm_executor):  # type: ignore[misc, valid-type]
        """Writes scripts without Slurm."""

        @classmethod
        def affinity(cls) -> int:
            return 1

    try:
        kind = Anywhere if pretending else slurm_executor
        executor = kind(allocation.folder, max_num_timeout=allocation.requeues, python=_python(signs))
    except RuntimeError:
        raise EngineError(
            "no srun is found here; submit from a machine of the cluster, or look at the script with --print"
        ) from None
    gpus = allocation.gpus_per_node
    if gpus is None:
        # None again if the servers take none, or that is not known: then Slurm is asked for none.
        gpus = sum(len(launch.gpus) for launch in _imagine(job, allocation)) or None
    given = {"partition": allocation.partition, "account": allocation.account, "gpus_per_node": gpus}
    executor.update_parameters(
        job_name="medexam-serve",
        time=allocation.minutes,
        nodes=allocation.nodes,
        ntasks_per_node=1,
        signal_delay_s=min(_WARNING_S, allocation.minutes * 15),
        # Since Slurm 22.05 srun does not take the cores of a task from sbatch.
        setup=['export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"'],
        # A server over several nodes cannot live without one of them; servers of their own can.
        srun_args=[f"--kill-on-bad-exit={int(job.span)}"],
        additional_parameters={"requeue": True, **allocation.options},
        **{name: value for name, value in given.items() if value is not None},
    )
    return executor


def _python(signs: Sequence[tuple[Path, str]]) -> str:
    """The command for Python, behind a look at each node whether it sees the submitter's files and that Python."""
    look = [
        f'[ "$(cat {shlex.quote(str(path))} 2>/dev/null)" = {word} ] || '
        + _refuse(
            f"does not see {path.parent} as the submitting machine does; "
            "name a folder on shared storage with --registry and --slurm-folder"
        )
        for path, word in signs
    ]
    python = shlex.quote(sys.executable)
    look.append(f"[ -x {python} ] || " + _refuse(f"has no {sys.executable}; install medexam on shared storage"))
    looked = "; ".join(["trap '' USR2", *look, 'exec "$0" "$@"'])
    # a warning that comes before Python listens must not end the job
    return f"/bin/sh -c {shlex.quote(looked)} {python}"


def _refuse(reason: str) -> str:
    return f'{{ echo "medexam: $SLURMD_NODENAME" {shlex.quote(reason)} >&2; exit {NOT_SHARED}; }}'


def _shared_folders(job: ServeJob, allocation: Allocation) -> list[Path]:
    folders = (allocation.folder, job.registry.parent)
    return list(dict.fromkeys(folder.expanduser().absolute() for folder in folders))


def _leave_sign(folder: Path) -> tuple[Path, str]:
    """A file by which a node knows the folder again; one a folder, kept for jobs that come back."""
    path = folder / _SIGN
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            write_new(path, secrets.token_hex(8))
        word = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"{path}: cannot be written: {error}; name another folder") from None
    if not re.fullmatch(r"[0-9a-f]{16}", word):
        raise EngineError(f"{path}: damaged; remove it and submit again")
    return path, word
