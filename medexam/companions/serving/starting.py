"""What `medexam serve` does once its options are checked: serve here, or in a Slurm job."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from medexam.companions.serving.cluster.allocation import Allocation
from medexam.companions.serving.cluster.script import Job
from medexam.companions.serving.foreground import serve_here
from medexam.companions.serving.launch.own_servers import vllm_python
from medexam.companions.serving.launch.settings import FleetSettings, ServerSettings
from medexam.companions.serving.launch.vllm_command import plan_servers
from medexam.companions.serving.slurm import serve_job
from medexam.toolkit.commands import refuse

if TYPE_CHECKING:
    from medexam.companions.serving.launch.processes import Launch


def serve_model(
    context: typer.Context,
    servers: ServerSettings,
    fleet: FleetSettings,
    allocation: Allocation,
    model: str,
    *,
    show: bool,
    slurm: bool,
    in_job: bool,
) -> None:
    """Start vLLM, wait until it is healthy, and stop it on Ctrl-C. Words after `--` go to vLLM as they are."""
    if servers.container is None:
        servers = replace(servers, python=servers.python or vllm_python())
    flags = tuple(context.args)
    if slurm or in_job:
        serve_job(context, Job(model, servers, fleet, allocation, flags), on_node=not slurm, show=show)
        return
    refuse(context, Allocation, "this belongs to a Slurm job: add --slurm, or leave it out")
    if show:
        refuse(context, FleetSettings, "--print shows vLLM's command, which has no such option: leave it out")
    launches = _plan(model, servers, flags, show=show)
    if not show:
        serve_here(launches, servers.host, fleet)


def _plan(model: str, settings: ServerSettings, flags: Sequence[str], *, show: bool) -> "Sequence[Launch]":
    if not show:
        sys.stderr.write(f"preparing {model} ...\n")
    launches = plan_servers(model, settings, flags, printing=show)
    for note in dict.fromkeys(note for launch in launches for note in launch.notes):
        sys.stderr.write(f"{note}\n")
    if show:
        sys.stdout.write("".join(f"{launch}\n" for launch in launches))
    return launches
