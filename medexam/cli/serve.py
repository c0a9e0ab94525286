"""`medexam serve`: a model behind vLLM, on this machine until Ctrl-C, or as a Slurm job.

What is printed on standard output is for scripts: addresses and a command, or a job's id. Keys are never printed.
"""

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.cli.options import refuse, refuse_others, settings_as_flags
from medexam.errors import EngineError
from medexam.serve.launch.settings import SLURM, Allocation, ServerSettings
from medexam.settings import Setting

if TYPE_CHECKING:
    from medexam.serve.discovery.registry import Registry
    from medexam.serve.launch.fleet import Fleet
    from medexam.serve.launch.processes import Launch

_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


@dataclass(frozen=True)
class FleetSettings:
    """How servers that were started are watched, and where runs find them."""

    log: Annotated[Path | None, Setting("Folder for vLLM's output, or a file that ends in .log; ./ by default.")] = None
    timeout: Annotated[float, Setting("Seconds that the model may take to load.", min=1)] = 1800.0
    restarts: Annotated[int, Setting("How often a server that crashed is started again.", min=0)] = 3
    registry: Annotated[
        Path | None, Setting("File that tells runs where servers are; this machine's own by default.")
    ] = None


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
) -> None:
    """Start vLLM, wait until it is healthy, and stop it on Ctrl-C. Words after `--` go to vLLM as they are.

    Runs with `model.engine=vllm` find it by themselves. The servers ask for a key: $VLLM_API_KEY, or one made for the
    occasion that lies beside the registry, for you alone.
    """
    if list_profiles:
        refuse_others(context, {"list_profiles"}, "--list shows the profiles and serves nothing: leave it out")
        _list_profiles()
        return
    if servers.container is not None:
        refuse(context, {"python"}, "the container has a Python of its own: leave out one of the two")
    else:
        refuse(context, {"container_runtime"}, "it runs a container: name its image with --container IMAGE")
    if model is None:
        raise EngineError("nothing to serve: name a PROFILE or a MODEL; `medexam serve --list` shows the profiles")
    from medexam.serve.launch.own_servers import vllm_python

    servers = replace(servers, python=servers.python or vllm_python())
    flags = tuple(context.args)
    if slurm:
        refuse(context, {"port", "host", "log"}, "a job's nodes choose port, address and logs themselves: leave it out")
        _serve_by_slurm(model, servers, flags, fleet, allocation, show=show)
        return
    refuse(context, Allocation, "this belongs to a Slurm job: add --slurm, or leave it out")
    if show:
        refuse(context, FleetSettings, "--print shows vLLM's command, which has no such option: leave it out")
    launches = _plan(model, servers, flags, show=show)
    if not show:
        _serve_here(launches, servers.host, fleet)


def _plan(model: str, settings: ServerSettings, flags: Sequence[str], *, show: bool) -> "Sequence[Launch]":
    from medexam.serve.launch.vllm_command import plan_servers

    if not show:
        sys.stderr.write(f"preparing {model} ...\n")
    launches = plan_servers(model, settings, flags, printing=show)
    for note in dict.fromkeys(note for launch in launches for note in launch.notes):
        sys.stderr.write(f"{note}\n")
    if show:
        sys.stdout.write("".join(f"{launch}\n" for launch in launches))
    return launches


def _serve_here(launches: "Sequence[Launch]", listens_on: str, settings: FleetSettings) -> None:
    from medexam.files import host_name
    from medexam.serve.launch.fleet import ClientAccess, Fleet
    from medexam.serve.network.keys import kept_key, make_key, read_key_variable

    registry = _registry(settings)
    key = read_key_variable("VLLM_API_KEY") or make_key()
    key_file = registry.path.parent / "keys" / f"{launches[0].port}-{os.getpid()}.key"
    host = host_name() if settings.registry and listens_on in _EVERY_ADDRESS else None
    access = ClientAccess(key, key_file, registry, host=host)
    with (
        _stopped_by_signals(),
        kept_key(key_file, key),
        Fleet(
            launches,
            logs=settings.log or Path(),
            access=access,
            restarts=settings.restarts,
            notify=lambda line: typer.echo(line, err=True),
        ) as fleet,
    ):
        _wait(fleet, launches[0].model, settings.timeout)
        sys.stdout.write("".join(f"{address}\n" for address in fleet.addresses))
        sys.stdout.write(f"{_run_command(registry if settings.registry else None)}\n")
        sys.stdout.flush()
        sys.stderr.write(f"healthy; runs find the key in {key_file}; Ctrl-C stops it\n")
        fleet.watch()


def _registry(settings: FleetSettings) -> "Registry":
    from medexam.serve.discovery.registry import Registry, local_registry

    return Registry(settings.registry) if settings.registry else local_registry()


def _serve_by_slurm(
    model: str,
    servers: ServerSettings,
    flags: tuple[str, ...],
    fleet: FleetSettings,
    allocation: Allocation,
    *,
    show: bool,
) -> None:
    from medexam.serve.launch.slurm import job_script, submit
    from medexam.serve.launch.slurm_job import ServeJob

    if allocation.span and allocation.nodes == 1:
        raise EngineError("--span needs several nodes; say how many with --nodes")
    allocation = replace(allocation, folder=allocation.folder.expanduser().absolute())
    registry = _registry(fleet)
    job = ServeJob(
        model, registry.path, allocation.folder, servers, flags, fleet.timeout, fleet.restarts, allocation.span
    )
    if show:
        sys.stdout.write(f"{job_script(job, allocation)}\n")
        return
    number = submit(job, allocation)
    sys.stdout.write(f"{number}\n{_run_command(registry if fleet.registry else None, wait=True)}\n")
    sys.stderr.write(
        f"submitted job {number}; `scancel {number}` stops it\n"
        f"registry: {job.registry}\n"
        f"logs: {allocation.folder}/{number}_*_log.err, and vLLM's in {allocation.folder}/{number}/\n"
    )


def _run_command(registry: "Registry | None", *, wait: bool = False) -> str:
    from medexam.specs.catalogue import SAMPLED

    words = ["medexam", "run", SAMPLED, "--set", "model.engine=vllm"]
    if registry is not None:
        words += ["--set", f"model.endpoints=[registry:{registry.path}]"]
    if wait:
        words += ["--set", "model.wait_s=3600"]
    return shlex.join([*words, "--limit", "200"])


def _wait(fleet: "Fleet", model: str, timeout_s: float) -> None:
    from rich.markup import escape

    from medexam.cli.terminal import Terminal

    console = Terminal(stderr=True)
    logs = ", ".join(map(str, fleet.logs))
    console.print(f"starting vLLM with {escape(model)}; its log is {escape(logs)}", soft_wrap=True)
    with console.status("starting") as status:

        def show(seconds: float, line: str) -> None:
            width = max(console.width - 24, 20)
            status.update(f"{seconds:4.0f} s  [dim]{escape(line[-width:])}[/dim]")

        fleet.wait_healthy(timeout_s, show)


def _list_profiles() -> None:
    from medexam.cli.terminal import Terminal
    from medexam.cli.views.runs import print_tables
    from medexam.serve.launch.profile import load_profile, profile_names
    from medexam.tables import Table

    profiles = {name: load_profile(name) for name in profile_names()}
    sizes = sorted({layout.gpu_gb for profile in profiles.values() for layout in profile.layouts if layout.gpu_gb})
    rows = []
    for name, profile in profiles.items():
        cells = []
        for size in sizes:
            layouts = [layout for layout in profile.layouts if layout.gpu_gb == size]
            first = min(layouts, key=lambda layout: layout.nodes, default=None)
            over = f" on {first.nodes} nodes" if first and first.nodes > 1 else ""
            cells.append(f"{first.gpus} x {first.max_context // 1024}k{over}" if first else "")
        gated = " (gated)" if profile.gated else ""
        rows.append((name, f"{profile.model}{gated}", f"{profile.weights_gb:g} GB", *cells))
    headers = ("Profile", "Model", "Weights", *(f"{size:g} GB" for size in sizes))
    console = Terminal() if sys.stdout.isatty() else Terminal(width=200)
    legend = (
        "GPUs that one server takes, by the memory of a card, and the thousands of tokens of its context. A profile "
        "without any runs on the processor."
    )
    print_tables(console, [(Table("", headers, tuple(rows), text_columns=2), legend)])


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block in order and count as success; a second one does not cut the stopping short."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        numbers.append(signal.SIGHUP)

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            sys.stderr.write("stopped\n")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
