"""The batch script of a job of servers: what `--print` shows and what is submitted, ready for `sbatch`.

Its lines ask for the nodes and have `srun` start `medexam serve --in-job` on each; everything else happens there.
"""

import shlex
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from medexam.companions.serving.cluster.allocation import Allocation
from medexam.companions.serving.cluster.resources import find_nodes, share_of_node
from medexam.companions.serving.launch.processes import Launch
from medexam.companions.serving.launch.profile import names_file
from medexam.companions.serving.launch.settings import FleetSettings, ServerSettings
from medexam.companions.serving.launch.vllm_command import plan_servers
from medexam.companions.serving.launch.vllm_flags import Node
from medexam.companions.serving.launch.vllm_source import find_profile
from medexam.toolkit.commands import as_words
from medexam.toolkit.errors import EngineError
from medexam.toolkit.servers import Registry, local_registry

_WARNING_S = 90
"""Seconds before its walltime at which a job is warned; less for one of a few minutes."""
_WIDTH = 110
_INSTEAD = {
    "cpus-per-gpu": "cpus-per-task",
    "mem-per-cpu": "mem",
    "mem-per-gpu": "mem",
    "gpus": "gpus-per-node",
    "gpus-per-task": "gpus-per-node",
    "gres": "gpus-per-node",
    "no-requeue": "requeue",
    "requeue": "no-requeue",
}
"""Options of the user's -> the one that each replaces, since `sbatch` refuses both, or would ask for the same twice."""

_SCRIPT = """\
#!/bin/bash
{comments}
{directives}

# Slurm warns this script {warning} s before the walltime. Up to {requeues} times the job is then queued again.
come_back() {{
  if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {requeues} ]; then scontrol requeue "$SLURM_JOB_ID"
  else echo "the walltime is near, and the job is not queued again"; fi
}}
trap come_back USR1

{cpus}srun --kill-on-bad-exit={together} \\
{command} &
servers=$!
code=0
while kill -0 "$servers" 2>/dev/null; do wait "$servers"; code=$?; done  # a signal interrupts `wait`
exit "$code"
"""

_CPUS = """\
export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"  # since Slurm 22.05 srun does not take it from sbatch
"""


@dataclass(frozen=True)
class Job:
    """Servers of one model that run as a job."""

    model: str
    servers: ServerSettings
    """Address and port are chosen on each node."""
    fleet: FleetSettings
    allocation: Allocation
    flags: tuple[str, ...] = ()

    @property
    def registry(self) -> Registry:
        """Where its servers are found."""
        return Registry(self.fleet.registry) if self.fleet.registry else local_registry()

    @property
    def folder(self) -> Path:
        """Where its script and logs lie."""
        return self.allocation.folder.expanduser().absolute()

    @property
    def name(self) -> str:
        """The model's name in file names and in Slurm's queue."""
        name = Path(self.model).stem if names_file(self.model) else Path(self.model).name
        return name.replace(":", "-")


def job_script(job: Job) -> str:
    """Render the script of a job; raises `EngineError` if the servers cannot be planned. No Slurm needs to be here."""
    allocation = job.allocation
    if allocation.span and allocation.nodes == 1:
        raise EngineError("--span needs several nodes; say how many with --nodes")
    launches = _imagine(job)
    layout = f"one server over {allocation.nodes} nodes" if allocation.span else f"{len(launches)} on each node"
    summary = f"{launches[0].model} behind vLLM, {layout}; runs find it in {job.registry.path}"
    directives = _directives(job, sum(len(launch.gpus) for launch in launches))
    return _SCRIPT.format(
        comments="\n".join(map(_comment, (summary, *launches[0].notes))),
        directives="\n".join(directives),
        warning=_warning(allocation),
        requeues=allocation.requeues,
        # A server over several nodes cannot live without one of them; servers of their own can.
        together=int(allocation.span),
        cpus=_CPUS if any("--cpus-per-task=" in line for line in directives) else "",
        command=_folded(_command(job)),
    )


def _imagine(job: Job) -> tuple[Launch, ...]:
    """Plan the servers of a node, as far as they are known before the job runs."""
    node = Node(0, job.allocation.nodes, "FIRST_NODE") if job.allocation.span else None
    return plan_servers(job.model, job.servers, job.flags, node=node, printing=True)


def _directives(job: Job, gpus: int) -> list[str]:
    allocation = job.allocation
    if allocation.gpus_per_node is not None:
        gpus = allocation.gpus_per_node
    share = share_of_node(find_nodes(allocation.partition), gpus, find_profile(job.model)[1])
    options: Mapping[str, str | int | None] = {
        "requeue" if allocation.requeues else "no-requeue": "",
        "job-name": f"medexam-{job.name}",
        "partition": allocation.partition,
        "account": allocation.account,
        "nodes": allocation.nodes,
        "ntasks-per-node": 1,
        "gpus-per-node": gpus or None,
        "cpus-per-task": share.cpus,
        "mem": f"{share.memory_mb}M",
        "time": allocation.minutes,
        "signal": f"B:USR1@{_warning(allocation)}",
        "open-mode": "append",
        "output": f"{job.folder}/%j.log",
    }
    replaced = {_INSTEAD.get(key, key) for key in allocation.options} | set(allocation.options)
    defaults = {key: value for key, value in options.items() if value is not None and key not in replaced}
    return [
        f"#SBATCH --{key}={shlex.quote(str(value))}" if value else f"#SBATCH --{key}"
        for key, value in {**defaults, **allocation.options}.items()
    ]


def _comment(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False)


def _warning(allocation: Allocation) -> int:
    return min(_WARNING_S, allocation.minutes * 15)


def _command(job: Job) -> list[str]:
    script = Path(sys.executable).with_name("medexam")
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "medexam.cli.script"]
    model = Path(job.model).expanduser()
    model_name = str(model.absolute()) if model.is_dir() or names_file(job.model) else job.model
    fleet = replace(job.fleet, registry=job.registry.path)
    place = Allocation(span=job.allocation.span, folder=job.folder)
    words = [*program, "serve", model_name, "--in-job", *as_words(place), *as_words(fleet), *as_words(job.servers)]
    return [*words, "--", *job.flags] if job.flags else words


def _folded(words: list[str]) -> str:
    """Fold a command over several lines of the script."""
    lines, line = [], " "
    for word in map(shlex.quote, words):
        if len(line) + len(word) > _WIDTH and line.strip():
            lines.append(line)
            line = "   "
        line = f"{line} {word}"
    return " \\\n".join([*lines, line])
