"""Servers as a Slurm job: its batch script, its submission, and what each of its nodes does.

The script asks for the nodes and has `srun` start `medexam serve --in-job` on each. Slurm's variables and `scontrol`
tell a node its place and the others' addresses; the nodes exchange nothing.
"""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

import psutil

from medexam.errors import EngineError
from medexam.files import write_whole
from medexam.serve.discovery.registry import Registry
from medexam.serve.launch.command import Node, plan_server
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


class Job(NamedTuple):
    """Servers of one model that run as a job."""

    model: str
    python: Path | None
    flags: tuple[str, ...]
    registry: Registry
    folder: Path
    nodes: int
    span: bool
    options: Mapping[str, str]
    """Those of sbatch; empty: an option without a value."""

    @property
    def script(self) -> Path:
        """Where its script lies."""
        return self.folder / f"medexam-{Path(self.model).name.removesuffix('.yaml')}.sbatch"


def job_script(job: Job) -> str:
    """Render the script of a job; raises `EngineError` if the servers cannot be planned. No Slurm needs to be here."""
    if job.span and job.nodes == 1:
        raise EngineError("--span needs several nodes; say how many with --nodes")
    node = Node(0, job.nodes, "FIRST_NODE") if job.span else Node()
    launch = plan_server(job.model, job.flags, python=job.python, node=node, printing=True)
    layout = f"one server over {job.nodes} nodes" if job.span else "one server on each node"
    summary = f"{launch.model} behind vLLM, {layout}; runs find it in {job.registry.path}"
    wanted = job.options.get("gpus-per-node", "").rpartition(":")[2]
    gpus = int(wanted) if wanted.isdigit() else len(launch.gpus)
    defaults = {
        "requeue": "",
        "job-name": job.script.stem,
        "nodes": str(job.nodes),
        "ntasks-per-node": "1",
        **({"gpus-per-node": str(gpus)} if gpus else {}),
        "cpus-per-task": str(4 + 4 * gpus),
        "mem": f"{16 + 16 * gpus}G",
        "time": "04:00:00",
        "signal": "B:USR1@90",
        "open-mode": "append",
        "output": f"{job.folder}/%j.log",
    }
    replaced = {_INSTEAD.get(key, key) for key in job.options}
    options = {key: value for key, value in defaults.items() if key not in replaced} | dict(job.options)
    script = Path(sys.executable).with_name("medexam")
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "medexam"]
    model = Path(job.model).expanduser()
    name = str(model.absolute()) if model.is_dir() or names_file(job.model) else job.model
    command = [[*program, "serve", name, "--in-job", *(["--span"] if job.span else [])]]
    command += [["--folder", str(job.folder)], ["--registry", str(job.registry.path)]]
    command += [["--python", str(job.python)]] if job.python is not None else []
    command += [["--", *job.flags]] if job.flags else []
    return _SCRIPT.format(
        comments="\n".join(f"# {text}" for text in (summary, *launch.notes)),
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
    try:
        for folder in (job.registry.path, job.folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(job.script, text)
    except OSError as error:
        raise EngineError(f"{error.filename}: cannot be written: {error.strerror}; see --registry, --folder") from None
    # The key stays here: Slurm keeps a job's environment, and each node makes a key of its own.
    environment = {key: value for key, value in os.environ.items() if key != "VLLM_API_KEY"}
    number = call_slurm("sbatch", "--parsable", str(job.script), environment={**environment, _SUBMITTED: "1"})
    return number.strip().partition(";")[0]


def call_slurm(*command: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what one of Slurm's commands prints; raises `EngineError` if it fails, or there is no Slurm."""
    try:
        process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603
    except OSError:
        raise EngineError(
            f"no {command[0]} is found here; submit from a machine of the cluster, or look at the script with --print"
        ) from None
    except subprocess.CalledProcessError as error:
        message = "; ".join(line for line in error.stderr.splitlines() if line.strip())
        raise EngineError(f"Slurm refuses `{shlex.join(command)}`: {message}") from None
    except subprocess.TimeoutExpired:
        raise EngineError(f"{command[0]} does not answer within a minute; ask `scontrol ping`") from None
    return process.stdout


def check_shared(job: Job) -> None:
    """Raise `EngineError` if this node does not see what the submitter made."""
    for path in (job.script, job.registry.path) if os.environ.get(_SUBMITTED) else ():
        if not path.exists():
            raise EngineError(
                f"{os.environ.get('SLURMD_NODENAME')} does not see {path} as the submitting machine does; name a "
                "folder on shared storage with --registry and --folder"
            )


class JobNode(NamedTuple):
    """A node, as Slurm's variables tell its processes."""

    job: str
    start: str
    """How often the job was requeued."""
    rank: int
    name: str
    names: tuple[str, ...]
    """Those of all nodes, in order of their ranks."""

    @classmethod
    def find(cls) -> Self:
        """Find the node that this process runs on; raises `EngineError` outside a step of a Slurm job."""
        environment = os.environ
        try:
            names = tuple(call_slurm("scontrol", "show", "hostnames", environment["SLURM_STEP_NODELIST"]).split())
            if len(names) != int(environment["SLURM_STEP_NUM_TASKS"]):
                raise EngineError("each node needs exactly one task: write srun --ntasks-per-node=1")
            job, start = environment["SLURM_JOB_ID"], environment.get("SLURM_RESTART_COUNT", "0")
            return cls(job, start, int(environment["SLURM_PROCID"]), environment["SLURMD_NODENAME"], names)
        except (KeyError, ValueError):
            raise EngineError(
                "this process is not in a Slurm job: start it with srun inside a job, as in `srun --nodes 2 "
                "--ntasks-per-node 1 medexam ...`"
            ) from None

    @property
    def first_port(self) -> int:
        """Where its servers begin to look for a port: jobs that start together on one node get different ones."""
        return 8_000 + (int(self.job) + self.rank) % 1_000 * 16

    def join(self) -> Node:
        """Return its place in one server over all nodes, which meet at the first; raises `EngineError` without a way
        there.

        vLLM, NCCL and gloo are told the address on that way: they would choose among several by chance.
        """
        head = _address_of(self.names[0])
        interface, own = _own_address(head if self.rank else _address_of(self.names[-1]))
        variables = {"VLLM_HOST_IP": own}
        if interface is not None:
            variables |= {"NCCL_SOCKET_IFNAME": f"={interface}", "GLOO_SOCKET_IFNAME": interface}
        return Node(self.rank, len(self.names), head, 29_600 + int(self.job) % 1_000, variables)


def _address_of(name: str) -> str:
    words = call_slurm("scontrol", "show", "node", name, "--oneliner").split()
    return next((word.partition("=")[2] for word in words if word.startswith("NodeAddr=")), name)


def _own_address(peer: str) -> tuple[str | None, str]:
    """Find the interface of this machine that the user chose for NCCL, else the one on the way to `peer`, and its
    address.

    The route decides, so that a name that stands for 127.0.1.1 in /etc/hosts does no harm. Raises `EngineError` if no
    way leads there.
    """
    addresses = [
        (interface, entry.address.partition("%")[0])
        for interface, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family in (socket.AF_INET, socket.AF_INET6)
    ]
    chosen = os.environ.get("NCCL_SOCKET_IFNAME", "").removeprefix("=")
    if preferred := [pair for pair in addresses if pair[0] == chosen]:
        return min(preferred, key=lambda pair: ":" in pair[1])
    try:
        entries = socket.getaddrinfo(peer, 9, type=socket.SOCK_DGRAM)
        family, *_, address = min(entries, key=lambda entry: entry[0] != socket.AF_INET)
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            own = str(probe.getsockname()[0])
    except OSError as error:
        raise EngineError(f"no route to the node {peer} ({error}); ask the administrator") from None
    return next((interface for interface, address in addresses if address == own), None), own
