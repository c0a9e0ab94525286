"""`medexam doctor`: what servers and models really take, whether they are alike, and what to change."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.options import JsonOption, refuse, refuse_others
from medexam.errors import SpecError


def doctor(
    context: typer.Context,
    endpoints: Annotated[
        list[str] | None,
        typer.Argument(
            help=(
                "An address such as http://127.0.0.1:8000/v1, registry:FILE, or a hosted model such as "
                "openai/gpt-4o-mini. By default the servers registered on this machine; if none is registered, the "
                "machine itself."
            ),
            metavar="ENDPOINT|MODEL",
            show_default=False,
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask; the only one by default.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the key.")] = None,
    api_key_file: Annotated[Path | None, typer.Option(help="File that holds the key, of mode 600.")] = None,
    ca_bundle: Annotated[Path | None, typer.Option(help="Certificates (PEM) for https endpoints.")] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="In a Slurm job, by srun: say what would fail on its nodes.")
    ] = False,
    container: Annotated[
        str | None, typer.Option(help="With --cluster: the image that vLLM runs from.", metavar="IMAGE")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check servers, hosted models or this machine: what they support, and what to change.

    Without a server it says what this machine has: GPU, memory, disk, keys, data, extras, versions, network.

    Exit codes: 0 all can be used, 2 none can, 3 some cannot.
    """
    if cluster:
        refuse_others(context, {"cluster", "container", "endpoints", "model"}, "--cluster asks no server: leave it out")
        from medexam.cli.actions.doctor import examine_nodes

        examine_nodes(endpoints or (), model, container)
        return
    refuse(context, {"container"}, "it belongs to the nodes of a job: add --cluster")
    if api_key_env is not None and api_key_file is not None:
        raise SpecError("--api-key-env and --api-key-file both name the key: give one of them")
    from medexam.cli.actions.doctor import examine

    examine(context, endpoints or (), model, api_key_env, api_key_file, ca_bundle, as_json=as_json)
