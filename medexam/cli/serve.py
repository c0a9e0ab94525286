"""`medexam serve`: a model behind vLLM, on this machine until Ctrl-C, or as a Slurm job."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.options import refuse, refuse_others
from medexam.errors import EngineError

_JOB = "Slurm"


def serve(
    context: typer.Context,
    model: Annotated[
        str | None, typer.Argument(help="A profile, a hub id, a model folder, or smollm2.", metavar="PROFILE|MODEL")
    ] = None,
    flags: Annotated[
        list[str] | None, typer.Argument(help="vLLM's own flags.", metavar="-- VLLM'S FLAGS", show_default=False)
    ] = None,
    list_profiles: Annotated[bool, typer.Option("--list", help="List the profiles and the GPUs they take.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the command, or the job's script.")] = False,
    replicas: Annotated[int, typer.Option(help="Servers of the same model, each with its own GPUs.", min=1)] = 1,
    python: Annotated[
        Path | None, typer.Option(help="The Python that has vLLM; $MEDEXAM_VLLM_PYTHON or this one by default.")
    ] = None,
    container: Annotated[str | None, typer.Option(help="Run vLLM from an image by Apptainer.", metavar="IMAGE")] = None,
    host: Annotated[str, typer.Option(help="Address to serve on; 0.0.0.0 is every one.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(help="Port of the first server; by default a free one from 8000 on.", min=1, max=65535)
    ] = None,
    registry: Annotated[
        Path | None, typer.Option(help="File in which runs find the servers; this machine's own by default.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Folder for logs, and for a job's script.")] = Path(),
    slurm: Annotated[bool, typer.Option("--slurm", help="Submit a Slurm job.", rich_help_panel=_JOB)] = False,
    nodes: Annotated[
        int, typer.Option(help="Nodes of the job; each serves the model.", min=1, rich_help_panel=_JOB)
    ] = 1,
    span: Annotated[
        bool, typer.Option("--span", help="One server over all nodes of the job.", rich_help_panel=_JOB)
    ] = False,
    slurm_option: Annotated[
        list[str] | None,
        typer.Option(
            help="An option of sbatch: time=04:00:00, partition=gpu, exclusive.",
            metavar="KEY=VALUE",
            rich_help_panel=_JOB,
        ),
    ] = None,
    in_job: Annotated[
        bool, typer.Option("--in-job", help="Serve as one node of a Slurm job, started by srun.", rich_help_panel=_JOB)
    ] = False,
) -> None:
    """Start vLLM, wait until it is healthy, and stop it on Ctrl-C. Words after `--` go to vLLM as they are.

    Runs with `model.engine=vllm` find it by themselves. The servers ask for a key: $VLLM_API_KEY, or one made for the
    occasion that lies beside the registry, for you alone.
    """
    from medexam.cli.actions.serve import print_profiles, serve_as_job, serve_here, serve_on_node
    from medexam.serve.cluster.job import Job
    from medexam.serve.launch.command import ServerSettings
    from medexam.serve.launch.own_servers import vllm_python

    if list_profiles:
        refuse_others(context, {"list_profiles"}, "--list shows the profiles and serves nothing: leave it out")
        print_profiles()
        return
    if model is None:
        raise EngineError("nothing to serve: name a PROFILE or a MODEL; `medexam serve --list` shows the profiles")
    if container is not None:
        refuse(context, {"python"}, "the container has a Python of its own: leave out one of the two")
    else:
        python = python or vllm_python()
    servers = ServerSettings(replicas, python, container, host, port)
    words = tuple(flags or ())
    if not slurm and not in_job:
        refuse(context, {"nodes", "span", "slurm_option"}, "this belongs to a Slurm job: add --slurm, or leave it out")
        if show:
            refuse(
                context, {"folder", "registry"}, "--print shows vLLM's command, which has no such option: leave it out"
            )
        serve_here(model, servers, words, registry, folder, show=show)
        return
    refuse(context, {"host", "port"}, "a job's nodes choose address and port themselves: leave it out")
    job = Job(model, servers, words, registry, folder, nodes, span, tuple(slurm_option or ()))
    if in_job:
        refuse(context, {"slurm", "show", "nodes", "slurm_option"}, "the job already has its nodes: leave it out")
        serve_on_node(job)
    else:
        serve_as_job(job, show=show)
