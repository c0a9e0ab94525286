"""The command lines that start a model's servers with vLLM: of a profile, a hub id, a folder, or SmolLM2.

It writes for vLLM 0.29 and later, and starts nothing. Code from a model's repository is never allowed to run, and a key
never stands in a command.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from medexam.companions.serving.launch.containers import check_runtime, container_command
from medexam.companions.serving.launch.gpus import find_gpus
from medexam.companions.serving.launch.model_facts import find_snapshot, profile_of
from medexam.companions.serving.launch.placement import Placement, place_profile, place_without_profile
from medexam.companions.serving.launch.ports import FIRST_PORT, check_free, next_free
from medexam.companions.serving.launch.processes import Launch
from medexam.companions.serving.launch.profile import Profile, model_name
from medexam.companions.serving.launch.refused_flags import refused_flag
from medexam.companions.serving.launch.settings import ServerSettings
from medexam.companions.serving.launch.vllm_cpu import cpu_environment
from medexam.companions.serving.launch.vllm_flags import (
    ExamSpeed,
    Node,
    choose_speed,
    given_values,
    listen_flags,
    model_flags,
    speed_flags,
)
from medexam.companions.serving.launch.vllm_source import find_folder, find_profile, has_cpu_build
from medexam.toolkit.errors import EngineError

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
_DEFAULTS = ServerSettings()


def plan_servers(
    model: str,
    settings: ServerSettings = _DEFAULTS,
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
    if node is not None and node.count == 1:
        node = None
    name, profile = find_profile(model)
    source = model if profile is None else profile.model
    folder = find_folder(source)
    nodes = 1 if node is None else node.count
    facts = profile or _facts(source, folder, nodes)
    _check(settings.replicas, flags, node, facts)
    if settings.container is None:
        cpu = _runs_on_cpu(name, profile, _python(settings), printing)
    else:
        cpu = profile is not None and profile.on_cpu
        if not printing:
            check_runtime(settings.runtime)
    if cpu and profile is None:
        placement = Placement(None, ((),) * settings.replicas)
    # Without a card that nvidia-smi knows, a model without a profile is left to vLLM, which may find others.
    elif facts is not None and (profile is not None or printing or find_gpus()):
        placement = place_profile(name, facts, settings, flags, nodes=nodes, printing=printing)
    else:
        placement = place_without_profile(settings.replicas, settings.gpus, flags, printing=printing)
    served_name = settings.served_name or (model_name(model) if profile is None else profile.name)
    server = _Server(served_name, str(folder or source), folder, profile, settings, tuple(flags), placement, cpu, node)
    ports = _ports(settings, printing)
    return tuple(server.launch(replica, port) for replica, port in enumerate(ports))


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
        gpus = self.placement.gpus[replica]
        faster = self._faster()
        arguments = self._arguments(port, gpus, faster)
        environment = self._environment(replica)
        command: tuple[str, ...] = (_python(self.settings), *arguments)
        if self.settings.container is not None:
            runtime = self.settings.runtime
            command = container_command(
                runtime,
                self.settings.container,
                arguments,
                name=f"medexam-vllm-{port}",
                folder=self.folder,
                gpus=gpus,
                # The runtime itself hands the cards over, and counts those that it hands over from 0.
                environment={key: value for key, value in environment.items() if not key.startswith("CUDA_")},
            )
            environment = environment if runtime == "apptainer" else {}
        root = _root(self.settings.host, port) if self.node is None or self.node.rank == 0 else None
        return Launch(
            command,
            address="" if root is None else f"{root}/v1",
            environment=environment,
            model=self.name,
            gpus=gpus or (),
            notes=(*self._notes(), *self._why_faster(faster, arguments)) if replica == 0 else (),
        )

    @cached_property
    def _speed(self) -> ExamSpeed | None:
        """The numbers for the machine's cards; None on the processor, or if nothing says how large the model is."""
        layout = self.placement.layout
        if layout is None or self.cpu or not layout.gpu_gb:
            return None
        return choose_speed(layout, next((gpu.name for gpu in find_gpus()), None))

    def _faster(self) -> dict[str, str]:
        if self._speed is None or self.placement.layout is None:
            return {}
        return speed_flags(self._speed, self.placement.layout, (os.cpu_count() or 1) // len(self.placement.gpus))

    def _why_faster(self, faster: Mapping[str, str], arguments: Sequence[str]) -> tuple[str, ...]:
        """Write one line with the flags that made it into the command, and their reason."""
        pairs = set(pairwise(arguments))
        words = [" ".join(pair) for pair in faster.items() if pair in pairs]
        if self._speed is None or not words:
            return ()
        return (f"for exams: {' '.join(words)} ({self._speed.why}); state other values after -- to override them",)

    def _arguments(self, port: int, gpus: tuple[int, ...] | None, faster: Mapping[str, str]) -> list[str]:
        one_process = self.node is None and "--api-server-count" not in {**faster, **given_values(self.flags)}
        command_line = _CPU_COMMAND_LINE if self.cpu and self.settings.container is None else _COMMAND_LINE
        arguments = [*_SERVER, "--model", self.model] if one_process else [*command_line, self.model]
        arguments += ["--served-model-name", self.name]
        revision = None if self.profile is None else self.profile.revision
        if revision is not None and self.folder is None:
            arguments += ["--revision", revision, "--tokenizer-revision", revision]
        arguments += listen_flags(self.settings.host, port, self.node)
        max_context, layout = self.settings.max_context, self.placement.layout
        arguments += model_flags(self.profile, layout, max_context, self.cpu, gpus, self.flags, faster)
        return [*arguments, *self.flags]

    def _environment(self, replica: int) -> Mapping[str, str]:
        """Return the variables that are not set yet, and the replica's own GPUs."""
        variables = {} if self.folder is None else {"HF_HUB_OFFLINE": "1"}
        if self.cpu:
            variables |= cpu_environment(replica, len(self.placement.gpus))
        environment = {name: value for name, value in variables.items() if name not in os.environ}
        # Even where the job's environment has them: one value cannot be right on several machines.
        environment |= {} if self.node is None else self.node.environment
        gpus = self.placement.gpus[replica]
        if gpus:
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


def _facts(source: str, folder: Path | None, nodes: int) -> Profile | None:
    """Read what the files of a model without a profile say, in its folder or the hub's cache; None: too little."""
    files = folder or find_snapshot(source)
    return None if files is None else profile_of(source, files, nodes)


def _python(settings: ServerSettings) -> str:
    return str(settings.python) if settings.python is not None else sys.executable


def _check(replicas: int, flags: Sequence[str], node: Node | None, profile: Profile | None) -> None:
    if (refused := refused_flag(flags)) is not None:
        raise EngineError(refused)
    if replicas < 1:
        raise EngineError(f"{replicas} replicas: ask for at least one")
    if node is not None and (profile is None or replicas > 1):
        raise EngineError(
            "a model over several nodes needs a profile with a layout for them, or files in a folder or the hub's "
            "cache that give its size"
        )


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


def _root(host: str, port: int) -> str:
    address = _reached(host)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
