"""What `medexam serve` does: serve here until a signal, submit a job, or serve as one of its nodes.

What is printed on standard output is for scripts: addresses and a command, or a job's number. Keys are never printed.
"""

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from rich.markup import escape

from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.shown import print_blocks
from medexam.files import host_name
from medexam.serve.cluster.job import Job, check_shared, job_script, submit
from medexam.serve.cluster.node import JobNode
from medexam.serve.discovery.registry import Registry, local_registry
from medexam.serve.launch.command import Launch, ServerSettings, plan_servers
from medexam.serve.launch.fleet import RESTARTS, ClientAccess, Fleet
from medexam.serve.launch.memory import CARDS, list_fits
from medexam.serve.launch.ports import next_free
from medexam.serve.launch.profile import load_profile, profile_names
from medexam.serve.network.keys import kept_key, make_key, read_key_variable
from medexam.specs.catalogue import SAMPLED
from medexam.tables import Table

_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


def print_profiles() -> None:
    """Print the table of shipped profiles, and the GPUs that they take."""
    rows = []
    for name in profile_names():
        profile = load_profile(name)
        fits = [None if profile.on_cpu else next(list_fits(profile, least), None) for least in CARDS.values()]
        cells = [f"{fit.layout.gpus} x {fit.layout.max_context // 1024}k" if fit else "" for fit in fits]
        variants = " ".join(f":{variant}" for variant in profile.variants)
        model = f"{profile.model}{' (gated)' if profile.gated else ''}"
        rows.append((name, model, variants, f"{profile.weights_gb:g} GB", *cells))
    headers = ("Profile", "Model", "Variants", "Weights", *(f"{size} GB" for size in CARDS))
    console = Terminal() if sys.stdout.isatty() else Terminal(width=200)
    legend = (
        "GPUs that one server takes, by the memory of a card, and the thousands of tokens of its context. A profile "
        "without any runs on the processor. A variant, such as llama-3.1-8b:awq, has quantised weights."
    )
    print_blocks(console, [Table("", headers, tuple(rows), text_columns=3, caption=legend)])


def serve_here(
    model: str, servers: ServerSettings, flags: Sequence[str], registry: Path | None, logs: Path, *, show: bool
) -> None:
    """Serve on this machine until a signal; `show` prints the commands instead."""
    if not show:
        sys.stderr.write(f"preparing {model} ...\n")
    launches = plan_servers(model, servers, flags, printing=show)
    _print_notes(launches)
    if show:
        sys.stdout.write("".join(f"{launch}\n" for launch in launches))
        return
    found_in = Registry(registry) if registry else local_registry()
    key_file = found_in.path.parent / "keys" / f"{launches[0].port}-{os.getpid()}.key"
    host = host_name() if registry and servers.host in _EVERY_ADDRESS else None
    access = ClientAccess(read_key_variable("VLLM_API_KEY") or make_key(), key_file, found_in, host=host)
    _serve_until_signal(launches, access, logs, _run_command(found_in if registry else None), "Ctrl-C")


def serve_as_job(job: Job, *, show: bool) -> None:
    """Submit the job; `show` prints its script instead."""
    if show:
        sys.stdout.write(job_script(job))
        if not job.folder.is_dir():
            sys.stderr.write(f"before sbatch: mkdir -p {job.folder}, or Slurm has nowhere to write the job's log\n")
        return
    number = submit(job)
    sys.stdout.write(f"{number}\n{_run_command(job.found_in if job.registry else None, wait=True)}\n")
    sys.stderr.write(
        f"submitted {job.script} as job {number}; `squeue --start --job {number}` says when it may start, "
        f"`scancel {number}` stops it\n"
        f"registry: {job.found_in.path}\n"
        f"logs: {job.folder}/{number}.log, and vLLM's in {job.folder}/medexam-job-{number}/\n"
    )


def serve_on_node(job: Job) -> None:
    """Serve as the node of a job that this process runs on."""
    job_node, found_in = JobNode.find(), job.found_in
    check_shared(job)
    node = job_node.meet(job.folder) if job.span else None
    host = _EVERY_ADDRESS[0]
    port = None if node is not None and node.rank else next_free(host, job_node.first_port)
    launches = plan_servers(job.model, replace(job.servers, host=host, port=port), job.flags, node=node)
    _print_notes(launches)
    key_file = found_in.path.parent / "keys" / f"{job_node.job}-{job_node.rank}.key"
    answers = node is None or node.rank == 0
    access = ClientAccess(make_key(), key_file, found_in if answers else None, job_node.job, host_name())
    logs = job_node.folder(job.folder) / job_node.name
    # One node cannot restart a server that spans several.
    restarts = 0 if job.span else RESTARTS
    _serve_until_signal(launches, access, logs, _run_command(found_in), f"scancel {job_node.job}", restarts)


def _print_notes(launches: Sequence[Launch]) -> None:
    for note in dict.fromkeys(note for launch in launches for note in launch.notes):
        sys.stderr.write(f"{note}\n")


def _run_command(registry: Registry | None, *, wait: bool = False) -> str:
    """Return the `medexam run` that finds the servers in a registry, None for this machine's own."""
    words = ["medexam", "run", SAMPLED, "--set", "model.engine=vllm"]
    if registry is not None:
        words += ["--set", f"model.endpoints=[registry:{registry.path}]"]
    if wait:
        words += ["--set", "model.wait_s=3600"]
    return shlex.join([*words, "--limit", "200"])


def _serve_until_signal(
    launches: Sequence[Launch],
    access: ClientAccess,
    logs: Path,
    command: str,
    stopped_by: str,
    restarts: int = RESTARTS,
) -> None:
    """Serve until Ctrl-C or SIGTERM; once all is healthy, print the addresses, `command`, and what stops it."""
    assert access.key is not None and access.key_file is not None  # noqa: S101, PT018 - servers ask for a key
    console = Terminal(stderr=True)
    with (
        _stopped_by_signals(),
        kept_key(access.key_file, access.key),
        Fleet(launches, logs=logs, access=access, restarts=restarts, notify=_write_error) as fleet,
    ):
        log_names = escape(", ".join(map(str, fleet.logs)))
        console.print(f"starting vLLM with {escape(launches[0].model)}; its log is {log_names}", soft_wrap=True)
        with console.status("starting") as status:
            width = max(console.width - 24, 20)
            fleet.wait_healthy(
                lambda seconds, line: status.update(f"{seconds:4.0f} s  [dim]{escape(line[-width:])}[/dim]")
            )
        if any(fleet.addresses):
            sys.stdout.write("".join(f"{line}\n" for line in (*fleet.addresses, command)))
            sys.stdout.flush()
            _write_error(f"healthy; runs find the key in {access.key_file}; {stopped_by} stops it")
        fleet.watch()


def _write_error(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


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
