"""A fleet that runs until a signal, and what is printed for scripts meanwhile: addresses and a command, never a key."""

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
from rich.markup import escape

from medexam.companions.serving.launch.fleet import ClientAccess, Fleet
from medexam.toolkit.commands import Terminal
from medexam.toolkit.files import host_name
from medexam.toolkit.servers import Registry, kept_key, local_registry, make_key, read_key_variable
from medexam.toolkit.specs import SAMPLED

if TYPE_CHECKING:
    from medexam.companions.serving.launch.processes import Launch
    from medexam.companions.serving.launch.settings import FleetSettings

_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


def serve_here(launches: "Sequence[Launch]", listens_on: str, settings: "FleetSettings") -> None:
    """Serve on this machine until a signal."""
    registry = Registry(settings.registry) if settings.registry else local_registry()
    key_file = registry.path.parent / "keys" / f"{launches[0].port}-{os.getpid()}.key"
    host = host_name() if settings.registry and listens_on in _EVERY_ADDRESS else None
    access = ClientAccess(read_key_variable("VLLM_API_KEY") or make_key(), key_file, registry, host=host)
    serve_until_signal(launches, access, settings, run_command(registry if settings.registry else None), "Ctrl-C")


def serve_until_signal(
    launches: "Sequence[Launch]", access: ClientAccess, settings: "FleetSettings", command: str, stopped_by: str
) -> None:
    """Serve until Ctrl-C or SIGTERM; once all is healthy, print the addresses, `command`, and what stops it."""
    assert access.key is not None and access.key_file is not None  # noqa: S101, PT018 - servers ask for a key
    with (
        _stopped_by_signals(),
        kept_key(access.key_file, access.key),
        Fleet(
            launches,
            logs=settings.log or Path(),
            access=access,
            restarts=settings.restarts,
            notify=lambda line: typer.echo(line, err=True),
        ) as fleet,
    ):
        _wait(fleet, launches[0].model, settings.timeout)
        if any(fleet.addresses):
            sys.stdout.write("".join(f"{line}\n" for line in (*fleet.addresses, command)))
            sys.stdout.flush()
            sys.stderr.write(f"healthy; runs find the key in {access.key_file}; {stopped_by} stops it\n")
        fleet.watch()


def run_command(registry: Registry | None, *, wait: bool = False) -> str:
    """Return the `medexam run` that finds the servers in a registry, None for this machine's own."""
    words = ["medexam", "run", SAMPLED, "--set", "model.engine=vllm"]
    if registry is not None:
        words += ["--set", f"model.endpoints=[registry:{registry.path}]"]
    if wait:
        words += ["--set", "model.wait_s=3600"]
    return shlex.join([*words, "--limit", "200"])


def _wait(fleet: Fleet, model: str, timeout_s: float) -> None:
    console = Terminal(stderr=True)
    logs = ", ".join(map(str, fleet.logs))
    console.print(f"starting vLLM with {escape(model)}; its log is {escape(logs)}", soft_wrap=True)
    with console.status("starting") as status:

        def show(seconds: float, line: str) -> None:
            width = max(console.width - 24, 20)
            status.update(f"{seconds:4.0f} s  [dim]{escape(line[-width:])}[/dim]")

        fleet.wait_healthy(timeout_s, show)


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
