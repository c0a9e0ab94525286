"""`medexam serve`: a model behind vLLM, on this machine until Ctrl-C, or as a Slurm job.

What is printed on standard output is for scripts: addresses and a command, or a job's id. Keys are never printed.
"""

from typing import Annotated

import typer

from medexam.companions.serving.cluster.allocation import SLURM, Allocation
from medexam.companions.serving.launch.settings import FleetSettings, ServerSettings
from medexam.toolkit.commands import refuse, refuse_others, settings_as_flags
from medexam.toolkit.errors import EngineError


@settings_as_flags
def serve(
    context: typer.Context,
    servers: ServerSettings,
    fleet: FleetSettings,
    allocation: Allocation,
    model: Annotated[
        str | None, typer.Argument(help="A profile, a hub id, a model folder, or smollm2.", metavar="PROFILE|MODEL")
    ] = None,
    list_profiles: Annotated[bool, typer.Option("--list", help="List the profiles and the GPUs they take.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the command, or the job's script.")] = False,
    slurm: Annotated[bool, typer.Option("--slurm", help="Submit a Slurm job.", rich_help_panel=SLURM)] = False,
    in_job: Annotated[
        bool, typer.Option("--in-job", help="Serve as one node of a Slurm job, started by srun.", rich_help_panel=SLURM)
    ] = False,
) -> None:
    """Start vLLM, wait until it is healthy, and stop it on Ctrl-C. Words after `--` go to vLLM as they are.

    Runs with `model.engine=vllm` find it by themselves. The servers ask for a key: $VLLM_API_KEY, or one made for the
    occasion that lies beside the registry, for you alone.
    """
    if list_profiles:
        refuse_others(context, {"list_profiles"}, "--list shows the profiles and serves nothing: leave it out")
        from medexam.companions.serving.profile_list import print_profiles

        print_profiles()
        return
    if servers.container is not None:
        refuse(context, {"python"}, "the container has a Python of its own: leave out one of the two")
    else:
        refuse(context, {"container_runtime"}, "it runs a container: name its image with --container IMAGE")
    if model is None:
        raise EngineError("nothing to serve: name a PROFILE or a MODEL; `medexam serve --list` shows the profiles")
    from medexam.companions.serving.starting import serve_model

    serve_model(context, servers, fleet, allocation, model, show=show, slurm=slurm, in_job=in_job)
