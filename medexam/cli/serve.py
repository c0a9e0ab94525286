"""`medexam serve`: a model behind vLLM, on this machine until Ctrl-C, or as a Slurm job.

What is printed on standard output is for scripts: addresses and a command, or a job's number. Keys are never printed.
"""

import contextlib
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medexam.cli.options import refuse
from medexam.errors import EngineError

if TYPE_CHECKING:
    from medexam.serve.discovery.registry import Registry
    from medexam.serve.launch.command import Launch
    from medexam.serve.launch.slurm import Job

_JOB = "Slurm"
_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


def serve(
    context: typer.Context,
    model: Annotated[
        str | None, typer.Argument(help="A profile, a hub id, or a model folder.", metavar="PROFILE|MODEL")
    ] = None,
    flags: Annotated[
        list[str] | None, typer.Argument(help="vLLM's own flags.", metavar="-- VLLM'S FLAGS", show_default=False)
    ] = None,
    list_profiles: Annotated[bool, typer.Option("--list", help="List the profiles and the GPUs they take.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the command, or the job's script.")] = False,
    python: Annotated[
        Path | None,
        typer.Option(
            envvar="MEDEXAM_VLLM_PYTHON",
            show_envvar=False,
            help="The Python that has vLLM; $MEDEXAM_VLLM_PYTHON or this one by default.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to serve on; 0.0.0.0 is every one.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(help="Its port; by default a free one from 8000 on.", min=1, max=65535)
    ] = None,
    registry: Annotated[
        Path | None, typer.Option(help="Folder in which runs find servers; this machine's own by default.")
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

    Runs with `model.engine=vllm` find it by themselves. The server asks for a key: $VLLM_API_KEY, or one made for the
    occasion that lies in the registry, for you alone.

    For example:
        medexam serve --list
        medexam serve llama-3.1-8b -- --data-parallel-size 4 --max-model-len 8192
        medexam serve llama-3.1-70b --slurm --nodes 2 --span --print
    """
    from socket import gethostname

    from medexam.serve.discovery.registry import Registry, local_registry
    from medexam.serve.launch.slurm import Job
    from medexam.serve.network.endpoints import make_key, read_api_key

    if list_profiles:
        others = {*context.params} - {"list_profiles"}
        refuse(context, others, "--list shows the profiles and serves nothing: leave it out")
        _print_profiles()
        return
    if model is None:
        raise EngineError("nothing to serve: name a PROFILE or a MODEL; `medexam serve --list` shows the profiles")
    words, own_registry = tuple(flags or ()), Registry(registry) if registry else None
    found_in = own_registry or local_registry()
    if slurm or in_job:
        refuse(context, {"host", "port"}, "a job's nodes choose address and port themselves: leave it out")
        pairs = [pair.lstrip("-").partition("=") for pair in slurm_option or ()]
        options = {key.replace("_", "-"): value for key, _, value in pairs}
        job = Job(model, python, words, found_in, folder.expanduser().absolute(), nodes, span, options)
        if in_job:
            refuse(context, {"slurm", "show", "nodes", "slurm_option"}, "the job already has its nodes: leave it out")
            _serve_on_node(job)
        else:
            _serve_as_job(job, own_registry, show=show)
        return
    refuse(context, {"nodes", "span", "slurm_option"}, "this belongs to a Slurm job: add --slurm, or leave it out")
    if show:
        refuse(context, {"folder", "registry"}, "--print shows vLLM's command, which has no such option: leave it out")
        sys.stdout.write(f"{_plan(model, words, python=python, host=host, port=port, printing=True)}\n")
        return
    sys.stderr.write(f"preparing {model} ...\n")
    launch = _plan(model, words, python=python, host=host, port=port)
    key, public = read_api_key(None, "VLLM_API_KEY") or make_key(), own_registry and host in _EVERY_ADDRESS
    settings = {"registry": found_in, "logs": folder, "key": key, "host": gethostname() if public else None}
    _serve_until_signal(launch, _run_command(own_registry), "Ctrl-C", **settings)


def _print_profiles() -> None:
    from medexam.experiments.report.shown import Terminal, print_blocks
    from medexam.serve.launch.memory import CARDS, list_fits
    from medexam.serve.launch.profile import load_profile, profile_names
    from medexam.tables import Table

    rows = []
    for name in profile_names():
        profile = load_profile(name)
        fits = [profile.size and next(list_fits(profile.size, least), None) for least in CARDS.values()]
        cells = [f"{fit.gpus} x {fit.max_context // 1024}k" if fit else "" for fit in fits]
        rows.append((name, profile.model, f"{profile.size.weights_gb:g} GB" if profile.size else "", *cells))
    headers = ("Profile", "Model", "Weights", *(f"{size} GB" for size in CARDS))
    console = Terminal() if sys.stdout.isatty() else Terminal(width=200)
    legend = (
        "GPUs that one server takes, by the memory of a card, and the thousands of tokens of its context. A profile "
        "without any runs on the processor; fp8 and awq have quantised weights."
    )
    print_blocks(console, [Table("", headers, tuple(rows), text_columns=2, caption=legend)])


def _plan(model: str, flags: tuple[str, ...], **place: Any) -> "Launch":
    from medexam.serve.launch.command import plan_server

    launch = plan_server(model, flags, **place)
    sys.stderr.writelines(f"{note}\n" for note in launch.notes)
    return launch


def _serve_as_job(job: "Job", registry: "Registry | None", *, show: bool) -> None:
    from medexam.serve.launch.slurm import job_script, submit

    if show:
        sys.stdout.write(job_script(job))
        if not job.folder.is_dir():
            sys.stderr.write(f"before sbatch: mkdir -p {job.folder}, or Slurm has nowhere to write the job's log\n")
        return
    number = submit(job)
    sys.stdout.write(f"{number}\n{_run_command(registry, wait=True)}\n")
    sys.stderr.write(
        f"submitted {job.script} as job {number}; `squeue --start --job {number}` says when it may start, "
        f"`scancel {number}` stops it\n"
        f"registry: {job.registry.path}\n"
        f"logs: {job.folder}/{number}.log, and vLLM's in {job.folder}/medexam-job-{number}/\n"
    )


def _serve_on_node(job: "Job") -> None:
    from socket import gethostname

    from medexam.serve.launch.command import Node, claim_port
    from medexam.serve.launch.slurm import JobNode, check_shared
    from medexam.serve.network.endpoints import make_key

    job_node = JobNode.find()
    check_shared(job)
    node = job_node.join() if job.span else Node()
    host = _EVERY_ADDRESS[0]
    port = None if node.rank else claim_port(host, start=job_node.first_port)
    launch = _plan(job.model, job.flags, python=job.python, host=host, port=port, node=node)
    # One node cannot restart a server that spans several.
    settings: dict[str, Any] = {"restarts": 0} if job.span else {}
    settings |= {"registry": job.registry, "host": gethostname(), "key": make_key()}
    settings |= {"logs": job.folder / f"medexam-job-{job_node.job}" / f"start-{job_node.start}" / job_node.name}
    settings |= {"job": f"{job_node.job}.{job_node.rank}"}
    _serve_until_signal(launch, _run_command(job.registry), f"scancel {job_node.job}", **settings)


def _run_command(registry: "Registry | None", *, wait: bool = False) -> str:
    """Return the `medexam run` that finds the servers in a registry, None for this machine's own."""
    words = ["medexam", "run", "headqa_v1", "--set", "model.engine=vllm"]
    if registry is not None:
        words += ["--set", f"model.endpoints=[registry:{registry.path}]"]
    if wait:
        words += ["--set", "model.wait_s=3600"]
    return shlex.join([*words, "--limit", "200"])


def _serve_until_signal(launch: "Launch", command: str, stopped_by: str, **settings: Any) -> None:
    from rich.markup import escape

    from medexam.experiments.report.shown import Terminal
    from medexam.serve.launch.server import VLLMServer

    console = Terminal(stderr=True, soft_wrap=True, markup=False, highlight=False)
    with _stopped_by_signals(), VLLMServer(launch, notify=console.print, **settings) as server:
        console.print(f"starting vLLM with {launch.model}; its log is {server.log}")
        with console.status("starting") as status:
            width = max(console.width - 24, 20)
            server.wait_healthy(
                lambda seconds, line: status.update(f"{seconds:4.0f} s  [dim]{escape(line[-width:])}[/dim]")
            )
        if server.address:
            sys.stdout.write(f"{server.address}\n{command}\n")
            sys.stdout.flush()
            console.print(f"healthy; runs find it and its key in {settings['registry'].path}; {stopped_by} stops it")
        server.watch()


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """End the block in order on Ctrl-C and SIGTERM, which count as success; a second one does not cut that short."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        numbers.append(signal.SIGHUP)

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    old_handlers = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            sys.stderr.write("stopped\n")
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
