"""`medexam serve`: one model on this machine, behind vLLM, until Ctrl-C."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from medexam.serve.launching import Launch, ServerProcess


def serve(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="A hub id, a model folder, or smollm2.", metavar="MODEL")],
    python: Annotated[Path | None, typer.Option(help="The Python that has vLLM; this one by default.")] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to serve on.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to serve on; 0.0.0.0 is every one.")] = "127.0.0.1",
    served_model_name: Annotated[str | None, typer.Option(help="Name that clients ask for.")] = None,
    max_model_len: Annotated[int | None, typer.Option(min=1, help="Tokens of prompt and reply together.")] = None,
    log: Annotated[Path | None, typer.Option(help="vLLM's output goes here; ./vllm-PORT.log by default.")] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that it may take to load.")] = 1800.0,
    show: Annotated[bool, typer.Option("--print", help="Print the command instead of running it.")] = False,
) -> None:
    """Start vLLM, wait until it is healthy, and stop it on Ctrl-C. Words after `--` go to vLLM as they are."""
    from medexam.serve.launching import ServerProcess, plan_launch

    launch = plan_launch(
        model,
        python=python,
        host=host,
        port=port,
        served_name=served_model_name,
        max_context=max_model_len,
        flags=context.args,
    )
    if show:
        sys.stdout.write(f"{launch}\n")
        return
    with _stopped_by_signals(), ServerProcess(launch, log or Path(f"vllm-{port}.log")) as server:
        _wait(server, model, timeout)
        _announce(launch)
        server.wait()


def _wait(server: "ServerProcess", model: str, timeout_s: float) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    console.print(f"starting vLLM with {escape(model)}; its log is {escape(str(server.log))}")
    with console.status("starting") as status:

        def show(seconds: float, line: str) -> None:
            width = max(console.width - 24, 20)
            status.update(f"{seconds:4.0f} s  [dim]{escape(line[-width:])}[/dim]")

        server.wait_healthy(timeout_s, show)


def _announce(launch: "Launch") -> None:
    sys.stdout.write(
        f"{launch.address}\nmedexam run headqa_v1 --set model.engine=vllm --set 'model.endpoints=[{launch.address}]'\n"
    )
    sys.stdout.flush()
    sys.stderr.write("healthy; Ctrl-C stops it\n")


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block in order and count as success; a second one does not cut the stopping short."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
