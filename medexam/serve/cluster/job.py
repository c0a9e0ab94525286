"""A job of servers: its batch script, which `--print` shows, and its submission.

The script asks for the nodes and has `srun` start `medexam serve --in-job` on each; everything else happens there.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medexam.errors import EngineError
from medexam.files import host_name, write_whole
from medexam.serve.discovery.registry import Registry
from medexam.serve.launch.command import Node, ServerSettings, plan_server
from medexam.serve.launch.profile import names_file

_REQUEUES = 3
_INSTEAD = {
    "cpus-per-gpu": "cpus-per-task",
    "mem-per-cpu": "mem",
    "mem-per-gpu": "mem",
    "gpus": "gpus-per-node",
    "gpus-per-task": "gpus-per-node",
    "gres": "gpus-per-node",
    "no-requeue": "requeue",
}
"""Options of the user's -> the one that each replaces, since `sbatch` refuses both, or would ask for the same twice."""
_SUBMITTED = "MEDEXAM_SUBMITTED"
_GPUS = re.compile(r"gpu(?::[^:,()]+)?:(\d+)")
_MEMORY_SHARE = 0.95
"""Part of a node's memory that jobs may take, where one takes the whole node."""

_SCRIPT = """\
#!/bin/bash
{comments}
{directives}

# Slurm warns this script before the walltime. Up to {requeues} times the job is then queued again.
come_back() {{
  if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {requeues} ]; then scontrol requeue "$SLURM_JOB_ID"
  else echo "the servers end, and the job is not queued again"; fi
}}
trap come_back USR1

# Before it takes the nodes for another job Slurm sends TERM, and the servers end in order; a job that somebody cancels
# is not RUNNING any more.
come_back_if_taken() {{
  if [ "$(squeue --noheader --jobs "$SLURM_JOB_ID" --format %T)" = RUNNING ]; then come_back; fi
}}
trap come_back_if_taken TERM

# Since Slurm 22.05 srun does not take it from sbatch.
if [ -n "$SLURM_CPUS_PER_TASK" ]; then export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"; fi
srun --kill-on-bad-exit={together} \\
{command} &
servers=$!
code=0
while kill -0 "$servers" 2>/dev/null; do wait "$servers"; code=$?; done  # a signal interrupts `wait`
if [ "$code" -eq 0 ]; then come_back_if_taken; fi
exit "$code"
"""


@dataclass(frozen=True)
class Job:
    """Servers of one model that run as a job."""

    model: str
    settings: ServerSettings
    """Address and port are chosen on each node."""
    flags: tuple[str, ...]
    registry: Registry
    folder: Path
    nodes: int
    span: bool
    options: Mapping[str, str]
    """Those of sbatch; empty: an option without a value."""

    @property
    def name(self) -> str:
        """The model's name in file names and in Slurm's queue."""
        return Path(self.model).stem if names_file(self.model) else Path(self.model).name

    @property
    def script(self) -> Path:
        """Where its script lies."""
        return self.folder / f"medexam-{self.name}.sbatch"


def read_options(pairs: Sequence[str]) -> dict[str, str]:
    """Read `KEY=VALUE` pairs of sbatch's options."""
    split = [pair.lstrip("-").partition("=") for pair in pairs]
    return {key.replace("_", "-"): value for key, _, value in split}


def job_script(job: Job) -> str:
    """Render the script of a job; raises `EngineError` if the servers cannot be planned. No Slurm needs to be here."""
    if job.span and job.nodes == 1:
        raise EngineError("--span needs several nodes; say how many with --nodes")
    node = Node(0, job.nodes, "FIRST_NODE") if job.span else None
    launch = plan_server(job.model, job.settings, job.flags, node=node, printing=True)
    layout = f"one server over {job.nodes} nodes" if job.span else "one server on each node"
    summary = f"{launch.model} behind vLLM, {layout}; runs find it in {job.registry.path}"
    gpu_option = job.options.get("gpus-per-node", "")
    gpus = int(gpu_option) if gpu_option.isdigit() else len(launch.gpus)
    cpus, memory_mb = _share_of_node(job.options.get("partition"), gpus)
    defaults = {
        "requeue": "",
        "job-name": f"medexam-{job.name}",
        "nodes": str(job.nodes),
        "ntasks-per-node": "1",
        **({"gpus-per-node": str(gpus)} if gpus else {}),
        "cpus-per-task": str(cpus),
        "mem": f"{memory_mb}M",
        "time": "04:00:00",
        "signal": "B:USR1@90",
        "open-mode": "append",
        "output": f"{job.folder}/%j.log",
    }
    replaced = {_INSTEAD.get(key, key) for key in job.options}
    options = {key: value for key, value in defaults.items() if key not in replaced} | dict(job.options)
    script = Path(sys.executable).with_name("medexam")
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "medexam.cli.script"]
    model = Path(job.model).expanduser()
    name = str(model.absolute()) if model.is_dir() or names_file(job.model) else job.model
    command = [[*program, "serve", name, "--in-job", *(["--span"] if job.span else [])]]
    command += [["--folder", str(job.folder)], ["--registry", str(job.registry.path)]]
    command += [["--python", str(job.settings.python)]] if job.settings.python is not None else []
    command += [["--container", job.settings.container]] if job.settings.container is not None else []
    command += [["--", *job.flags]] if job.flags else []
    return _SCRIPT.format(
        comments="\n".join(
            textwrap.fill(text, 110, initial_indent="# ", subsequent_indent="#   ", break_long_words=False)
            for text in (summary, *launch.notes)
        ),
        directives="\n".join(
            f"#SBATCH --{key}={shlex.quote(value)}" if value else f"#SBATCH --{key}" for key, value in options.items()
        ),
        requeues=0 if "no-requeue" in job.options else _REQUEUES,
        # A server over several nodes cannot live without one of them; servers of their own can.
        together=int(job.span),
        command=" \\\n".join(f"  {shlex.join(words)}" for words in command),
    )


def submit(job: Job) -> str:
    """Write the script and hand it to `sbatch`; returns the job's number.

    Raises `EngineError` if Slurm does not take it.
    """
    text = job_script(job)
    job.registry.add()
    try:
        job.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(job.script, text)
    except OSError as error:
        raise EngineError(f"{job.script}: cannot be written: {error.strerror}; name another --folder") from None
    # The key stays here: Slurm keeps a job's environment, and each node makes a key of its own.
    environment = {key: value for key, value in os.environ.items() if key != "VLLM_API_KEY"}
    process = call_slurm("sbatch", "--parsable", str(job.script), environment={**environment, _SUBMITTED: "1"})
    if process.returncode:
        message = "; ".join(line.removeprefix("sbatch: ") for line in process.stderr.splitlines() if line.strip())
        raise EngineError(f"Slurm does not take the job: {message}; the script is {job.script}")
    return process.stdout.strip().partition(";")[0]


def call_slurm(*command: str, environment: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run one of Slurm's commands; raises `EngineError` if there is no Slurm, or it does not answer."""
    try:
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except OSError:
        raise EngineError(
            f"no {command[0]} is found here; submit from a machine of the cluster, or look at the script with --print"
        ) from None
    except subprocess.TimeoutExpired:
        raise EngineError(f"{command[0]} does not answer within a minute; ask `scontrol ping`") from None


def check_shared(job: Job) -> None:
    """Raise `EngineError` if this node does not see what the submitter made."""
    for file in (job.script, job.registry.path) if os.environ.get(_SUBMITTED) else ():
        if not file.is_file():
            raise EngineError(
                f"{os.environ.get('SLURMD_NODENAME') or host_name()} does not see the same {file.parent} as the "
                "submitting machine; name a folder on shared storage with --registry and --folder"
            )


def _share_of_node(partition: str | None, gpus: int) -> tuple[int, int]:
    """Share processors and MB of memory out to the servers of one node; without cards, the whole node.

    Among several kinds of nodes the smallest share counts, so that any can run the job. Without a `sinfo` that answers,
    4 processors and 16 GB, and as much again for each GPU.
    """
    shares = []
    with contextlib.suppress(EngineError, ValueError):
        where = [] if partition is None else [f"--partition={partition}"]
        for line in call_slurm("sinfo", "--noheader", "--exact", "--format=%c|%m|%G", *where).stdout.splitlines():
            cpus, memory, generic = line.strip().split("|", 2)
            cards = sum(map(int, _GPUS.findall(generic)))
            if cards >= gpus:
                part = gpus / cards if gpus else 1.0
                shares.append((int(int(cpus.rstrip("+")) * part), int(int(memory.rstrip("+")) * _MEMORY_SHARE * part)))
    if not shares:
        return 4 + 4 * gpus, (16 + 16 * gpus) * 1000
    return max(min(cpus for cpus, _ in shares), 1), min(memory for _, memory in shares)
