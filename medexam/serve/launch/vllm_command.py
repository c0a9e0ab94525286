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
from medexam.serve.launch.containers import ContainerRuntime, check_runtime, container_command
from medexam.serve.launch.placement import Placement, place_profile, place_without_profile
from medexam.serve.launch.ports import FIRST_PORT, check_free, next_free
from medexam.serve.launch.processes import Launch
from medexam.serve.launch.profile import Profile
from medexam.serve.launch.vllm_cpu import cpu_environment
from medexam.serve.launch.vllm_flags import Node, listen_flags, settings
from medexam.serve.launch.vllm_source import ModelSource, find_profile, find_source, has_cpu_build

__all__ = ["Node", "plan_servers"]

_SERVER = ("-m", "vllm.entrypoints.openai.api_server")
_COMMAND_LINE = ("-m", "vllm.entrypoints.cli.main", "serve")
"""`vllm serve`, which alone knows servers without an address of their own."""


def plan_servers(
    model: str,
    *,
    python: Path | None = None,
    container: str | None = None,
    container_runtime: ContainerRuntime = "docker",
    host: str = "127.0.0.1",
    port: int | None = None,
    served_name: str | None = None,
    max_context: int | None = None,
    replicas: int = 1,
    gpus: Sequence[int] | None = None,
    flags: Sequence[str] = (),
    printing: bool = False,
    node: Node | None = None,
) -> tuple[Launch, ...]:
    """One command a replica for a profile's name or YAML file, a hub id, a local folder, or `smollm2`.

    Replicas take consecutive ports from `port` on (None: the free ones from 8000 on), and GPUs of their own. `gpus` are
    the indices to use; None is every one found. `flags` go to vLLM as they are, after everything else. `python` None is
    this process's own; `container` is an image to run in its place. `printing` asks for the command alone: neither vLLM
    nor a GPU nor a free port needs to be here. `node` is for a model over several machines. Raises `EngineError` where
    the servers could not start.
    """
    if node is not None and node.count == 1:
        node = None
    name, profile = find_profile(model)
    source = find_source(model if profile is None else profile.model)
    _check(replicas, flags, node, profile)
    interpreter = str(python) if python is not None else sys.executable
    if container is None:
        cpu = _runs_on_cpu(name, profile, interpreter, printing)
    else:
        cpu = profile is not None and profile.on_cpu
        if not printing:
            check_runtime(container_runtime)
    if profile is not None:
        nodes = 1 if node is None else node.count
        placement = place_profile(
            name,
            profile,
            replicas=replicas,
            gpus=gpus,
            flags=flags,
            max_context=max_context,
            nodes=nodes,
            printing=printing,
        )
    else:
        placement = (
            Placement(None, ((),) * replicas)
            if cpu
            else place_without_profile(replicas, gpus, flags, printing=printing)
        )
    known_as = served_name or (profile.served_name if profile is not None else None) or source.name
    server = _Server(source, profile, placement, known_as, cpu, host, max_context, tuple(flags), node)
    ports = _ports(host, port, replicas, printing)
    boxed = None if container is None else (container_runtime, container)
    return tuple(server.launch(replica, at, interpreter, boxed) for replica, at in enumerate(ports))


@dataclass(frozen=True)
class _Server:
    """What the replicas of one model have in common."""

    source: ModelSource
    profile: Profile | None
    placement: Placement
    known_as: str
    cpu: bool
    host: str
    max_context: int | None
    flags: tuple[str, ...]
    node: Node | None

    def launch(self, replica: int, port: int, python: str, boxed: tuple[ContainerRuntime, str] | None) -> Launch:
        gpus = self.placement.gpus[replica]
        arguments = self._arguments(port, gpus)
        environment = self._environment(replica)
        command = (python, *arguments)
        if boxed is not None:
            runtime, image = boxed
            inside = {key: value for key, value in environment.items() if not key.startswith("CUDA_")}
            name, folder = f"medexam-vllm-{port}", self.source.folder
            command = container_command(
                runtime, image, arguments, name=name, folder=folder, gpus=gpus, environment=inside
            )
            environment = environment if runtime == "apptainer" else {}
        root = _root(self.host, port) if self.node is None or self.node.rank == 0 else None
        return Launch(
            command,
            address="" if root is None else f"{root}/v1",
            health="" if root is None else f"{root}/health",
            environment=environment,
            model=self.known_as,
            gpus=gpus or (),
            notes=self._notes() if replica == 0 else (),
        )

    def _arguments(self, port: int, gpus: tuple[int, ...] | None) -> list[str]:
        source = self.source.model
        arguments = [*_SERVER, "--model", source] if self.node is None else [*_COMMAND_LINE, source]
        arguments += ["--served-model-name", self.known_as]
        revision = None if self.profile is None else self.profile.revision
        if revision is not None and self.source.folder is None:
            arguments += ["--revision", revision, "--tokenizer-revision", revision]
        arguments += listen_flags(self.host, port, self.node)
        arguments += settings(self.profile, self.placement.layout, self.max_context, self.cpu, gpus, self.flags)
        return [*arguments, *self.flags]

    def _environment(self, replica: int) -> Mapping[str, str]:
        """Variables that are not set yet, and the replica's own GPUs."""
        wanted = {} if self.source.folder is None else {"HF_HUB_OFFLINE": "1"}
        if self.cpu:
            wanted |= cpu_environment(replica, len(self.placement.gpus))
        environment = {name: value for name, value in wanted.items() if name not in os.environ}
        gpus = self.placement.gpus[replica]
        if gpus:
            environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
        return environment

    def _notes(self) -> tuple[str, ...]:
        if self.profile is None or not self.profile.gated or self.source.folder is not None:
            return self.placement.notes
        gate = (
            f"{self.source.model} is gated ({self.profile.licence}): accept its terms at "
            f"https://huggingface.co/{self.source.model} and set HF_TOKEN, unless it is in the hub's cache already"
        )
        return (gate, *self.placement.notes)


def _check(replicas: int, flags: Sequence[str], node: Node | None, profile: Profile | None) -> None:
    given = [flag.replace("_", "-") for flag in flags]
    if any(flag.startswith("--trust-remote-code") for flag in given):
        raise EngineError("--trust-remote-code would run code from the model's repository; take it out")
    if any(flag.startswith("--api-key") for flag in given):
        raise EngineError(
            "--api-key shows the key to everyone on this machine; take it out, and put the key into the environment "
            "variable VLLM_API_KEY"
        )
    if replicas < 1:
        raise EngineError(f"{replicas} replicas: ask for at least one")
    if node is not None and (profile is None or replicas > 1):
        raise EngineError("a model over several nodes is one server, and needs a profile with such a layout")


def _runs_on_cpu(name: str, profile: Profile | None, python: str, printing: bool) -> bool:
    """Whether the processor does the work; raises `EngineError` where that Python cannot serve the model."""
    meant = profile is not None and profile.on_cpu
    try:
        cpu = has_cpu_build(python)
    except EngineError:
        if printing:
            return meant
        raise
    if cpu and profile is not None and not meant and not printing:
        raise EngineError(
            f"{name} needs a GPU, and {python} has vLLM's build for processors: name another with --python, or try the "
            "profile smollm2-cpu"
        )
    return cpu and (profile is None or meant)


def _ports(host: str, first: int | None, replicas: int, printing: bool) -> list[int]:
    """A port each: those from `first` on, which must be free, or the next free ones."""
    reached = _reached(host)
    if printing or first is not None:
        ports = [(FIRST_PORT if first is None else first) + number for number in range(replicas)]
        for port in () if printing else ports:
            check_free(reached, port)
        return ports
    found: list[int] = []
    for _ in range(replicas):
        found.append(next_free(reached, found[-1] + 1 if found else FIRST_PORT))
    return found


def _reached(host: str) -> str:
    return "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - compared, not bound


def _root(host: str, port: int) -> str:
    reached = _reached(host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"
