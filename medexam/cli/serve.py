"""`medexam serve`: a model behind vLLM, on this machine until Ctrl-C, or as a Slurm job.

What is printed on standard output is for scripts: addresses and a command, or a job's id. Keys are never printed.
"""

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from medexam.cli import serve_options as options
from medexam.cli.options import refuse, refuse_others
from medexam.errors import EngineError

if TYPE_CHECKING:
    from medexam.serve.discovery.registry import Registry
    from medexam.serve.launch.fleet import Fleet
    from medexam.serve.launch.processes import Launch
    from medexam.serve.launch.settings import ServerSettings
    from medexam.serve.launch.slurm import Allocation
    from medexam.serve.launch.slurm_job import ServeJob

_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


def serve(
    context: typer.Context,
    model: options.Model = None,
    list_profiles: options.ListProfiles = False,
    replicas: options.Replicas = 1,
    gpus: options.Gpus = None,
    python: options.Python = None,
    container: options.Container = None,
    container_runtime: options.Runtime = "docker",
    port: options.Port = None,
    host: options.Host = "127.0.0.1",
    served_model_name: options.ServedName = None,
    max_model_len: options.MaxContext = None,
    log: options.Log = None,
    timeout: options.Timeout = 1800.0,
    restarts: options.Restarts = 3,
    registry: options.RegistryFile = None,
    show: options.Show = False,
    slurm: options.Slurm = False,
    nodes: options.Nodes = 1,
    span: options.Span = False,
    partition: options.Partition = None,
    time: options.Time = "04:00:00",
    requeues: options.Requeues = 3,
    account: options.Account = None,
    gpus_per_node: options.GpusPerNode = None,
    slurm_option: options.SlurmOption = None,
    slurm_folder: options.SlurmFolder = Path("slurm"),
) -> None:
    """Start vLLM, wait until it is healthy, and stop it on Ctrl-C. Words after `--` go to vLLM as they are.

    Runs with `model.engine=vllm` find it by themselves. The servers ask for a key: $VLLM_API_KEY, or one made for the
    occasion that lies beside the registry, for you alone.
    """
    if list_profiles:
        refuse_others(context, {"list_profiles"}, "--list shows the profiles and serves nothing: leave it out")
        _list_profiles()
        return
    if container is not None:
        refuse(context, {"python"}, "the container has a Python of its own: leave out one of the two")
    else:
        refuse(context, {"container_runtime"}, "it runs a container: name its image with --container IMAGE")
    if model is None:
        raise EngineError("nothing to serve: name a PROFILE or a MODEL; `medexam serve --list` shows the profiles")
    from medexam.serve.discovery.registry import Registry, local_registry
    from medexam.serve.launch.settings import ServerSettings
    from medexam.serve.launch.slurm_job import ServeJob

    settings = ServerSettings(
        replicas=replicas,
        gpus=_numbers(gpus),
        python=_python(python),
        container=container,
        container_runtime=container_runtime,
        port=port,
        host=host,
        served_name=served_model_name,
        max_context=max_model_len,
    )
    flags = tuple(context.args)
    if slurm:
        refuse(context, options.OF_NODES, "a job's nodes choose port, address and logs themselves: leave it out")
        if span and nodes == 1:
            raise EngineError("--span needs several nodes; say how many with --nodes")
        allocation = _allocate(slurm_folder, nodes, time, requeues, partition, account, gpus_per_node, slurm_option)
        told = Registry(registry) if registry else local_registry()
        job = ServeJob(model, told.path, allocation.folder, settings, flags, timeout, restarts, span)
        _serve_by_slurm(job, allocation, told if registry else None, show=show)
        return
    refuse(context, options.OF_SLURM, "this belongs to a Slurm job: add --slurm, or leave it out")
    if show:
        refuse(context, options.OF_FLEET, "--print shows vLLM's command, which has no such option: leave it out")
    launches = _plan(model, settings, flags, show=show)
    if not show:
        _serve_here(launches, host, registry, log or Path(), timeout, restarts)


def _plan(model: str, settings: "ServerSettings", flags: Sequence[str], *, show: bool) -> "Sequence[Launch]":
    from medexam.serve.launch.vllm_command import plan_servers

    if not show:
        sys.stderr.write(f"preparing {model} ...\n")
    launches = plan_servers(model, settings, flags, printing=show)
    for note in dict.fromkeys(note for launch in launches for note in launch.notes):
        sys.stderr.write(f"{note}\n")
    if show:
        sys.stdout.write("".join(f"{launch}\n" for launch in launches))
    return launches


def _serve_here(
    launches: "Sequence[Launch]", host: str, registry: Path | None, logs: Path, timeout_s: float, restarts: int
) -> None:
    import httpx

    from medexam.serve.discovery.registry import Registry, host_name, local_registry
    from medexam.serve.launch.fleet import Fleet
    from medexam.serve.network.keys import kept_key, make_key

    told = Registry(registry) if registry else local_registry()
    key = os.environ.get("VLLM_API_KEY") or make_key()
    key_file = told.path.parent / "keys" / f"{httpx.URL(launches[0].address).port}-{os.getpid()}.key"
    with (
        _stopped_by_signals(),
        kept_key(key_file, key),
        Fleet(
            launches,
            logs=logs,
            key=key,
            key_file=key_file,
            registry=told,
            restarts=restarts,
            public_host=host_name() if registry and host in _EVERY_ADDRESS else None,
            tell=_tell,
        ) as fleet,
    ):
        _wait(fleet, launches[0].model, timeout_s)
        sys.stdout.write("".join(f"{address}\n" for address in fleet.addresses))
        sys.stdout.write(f"{_run_command(told if registry else None)}\n")
        sys.stdout.flush()
        sys.stderr.write(f"healthy; runs find the key in {key_file}; Ctrl-C stops it\n")
        fleet.watch()


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _serve_by_slurm(job: "ServeJob", allocation: "Allocation", registry: "Registry | None", *, show: bool) -> None:
    from medexam.serve.launch.slurm import job_script, submit

    if show:
        sys.stdout.write(f"{job_script(job, allocation)}\n")
        return
    number = submit(job, allocation)
    sys.stdout.write(f"{number}\n{_run_command(registry, wait=True)}\n")
    sys.stderr.write(
        f"submitted job {number}; `scancel {number}` stops it\n"
        f"registry: {job.registry}\n"
        f"logs: {allocation.folder}/{number}_*_log.err, and vLLM's in {allocation.folder}/{number}/\n"
    )


def _allocate(
    folder: Path,
    nodes: int,
    time: str,
    requeues: int,
    partition: str | None,
    account: str | None,
    gpus_per_node: int | None,
    pairs: list[str] | None,
) -> "Allocation":
    """What Slurm is asked for; its other options as `KEY=VALUE`, or `KEY` alone where one has no value."""
    from medexam.serve.launch.slurm import Allocation, parse_minutes

    split = [pair.lstrip("-").partition("=") for pair in pairs or []]
    return Allocation(
        folder=folder.expanduser().absolute(),
        nodes=nodes,
        minutes=parse_minutes(time),
        requeues=requeues,
        partition=partition,
        account=account,
        gpus_per_node=gpus_per_node,
        options={key.replace("_", "-"): value if equals else True for key, equals, value in split},
    )


def _run_command(registry: "Registry | None", *, wait: bool = False) -> str:
    words = ["medexam", "run", "headqa_v1", "--set", "model.engine=vllm"]
    if registry is not None:
        words += ["--set", f"model.endpoints=[registry:{registry.path}]"]
    if wait:
        words += ["--set", "model.wait_s=3600"]
    return shlex.join([*words, "--limit", "200"])


def _wait(fleet: "Fleet", model: str, timeout_s: float) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    logs = ", ".join(map(str, fleet.logs))
    console.print(f"starting vLLM with {escape(model)}; its log is {escape(logs)}", soft_wrap=True)
    with console.status("starting") as status:

        def show(seconds: float, line: str) -> None:
            width = max(console.width - 24, 20)
            status.update(f"{seconds:4.0f} s  [dim]{escape(line[-width:])}[/dim]")

        fleet.wait_healthy(timeout_s, show)


def _list_profiles() -> None:
    from rich.console import Console
    from rich.table import Table

    from medexam.serve.launch.profile import load_profile, profile_names

    profiles = {name: load_profile(name) for name in profile_names()}
    sizes = sorted({layout.gpu_gb for profile in profiles.values() for layout in profile.layouts if layout.gpu_gb})
    table = Table("Profile", "Model", box=None, pad_edge=False)
    for title in ("Weights", *(f"{size:g} GB" for size in sizes)):
        table.add_column(title, justify="right")
    for name, profile in profiles.items():
        cells = []
        for size in sizes:
            layouts = [layout for layout in profile.layouts if layout.gpu_gb == size]
            first = min(layouts, key=lambda layout: layout.nodes, default=None)
            over = f" on {first.nodes} nodes" if first and first.nodes > 1 else ""
            cells.append(f"{first.gpus} x {first.max_context // 1024}k{over}" if first else "")
        gated = " (gated)" if profile.gated else ""
        table.add_row(name, f"{profile.model}{gated}", f"{profile.weights_gb:g} GB", *cells)
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(table)
    sys.stderr.write(
        "GPUs that one server takes, by the memory of a card, and the thousands of tokens of its context; "
        "a profile without any runs on the processor\n"
    )


def _python(named: Path | None) -> Path | None:
    from medexam.serve.launch.own_servers import vllm_python

    return named or vllm_python()


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise EngineError(f"--gpus {text}: not a list of GPUs; write their numbers, such as --gpus 0,1") from None


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
