"""What would fail on one node of a job, found before a model loads: memory, ports, cards, drivers, files."""

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from medexam.errors import EngineError, MedExamError
from medexam.serve.cluster.addresses import interfaces
from medexam.serve.cluster.job_node import JobNode
from medexam.serve.launch.containers import container_command
from medexam.serve.launch.gpus import find_gpus
from medexam.serve.launch.model_facts import find_snapshot
from medexam.serve.launch.ports import next_free
from medexam.serve.launch.settings import ServerSettings
from medexam.serve.launch.vllm_command import plan_servers
from medexam.serve.launch.vllm_flags import Node
from medexam.serve.launch.vllm_source import find_folder, find_profile

_SHM = Path("/dev/shm")  # noqa: S108 - measured, not written
_SHM_GB_OF_GPU = 1.0
"""Shared memory in which NCCL and vLLM's processes talk; docker gives 0.06 GB unless it is told otherwise."""
_TIMEOUT_S = 120.0
_ASK_CUDA = "import json, torch; print(json.dumps(torch.version.cuda))"
_HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    fault: str | None
    """What is wrong and what to do; None: nothing."""
    seen: str = ""
    """What was seen if nothing is wrong."""


def check_node(here: JobNode, model: str | None, folder: Path, servers: ServerSettings) -> Iterator[Finding]:
    """Everything that one node can see by itself; `model` None: nothing of a model is looked at.

    `servers` say where vLLM is: in a Python or in a container.
    """
    yield _finding("interfaces", lambda: _interface(os.environ))
    yield _finding("shared memory", lambda: _shared_memory(len(find_gpus())))
    yield _finding("ports", lambda: f"{next_free('', here.first_port)} is free")
    yield _finding("folder", lambda: _folder(folder))
    yield _finding("GPUs", lambda: _gpus(os.environ))
    yield _finding("proxies", lambda: _proxies(here))
    if model is not None:
        yield _finding("model", lambda: _model_files(model))
        yield _finding("server", lambda: _server(model, servers, here.count))
    if find_gpus() and (servers.python is not None or servers.container is not None):
        yield _finding("CUDA", lambda: _driver(servers))


def _finding(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, None, look())
    except (_Fault, MedExamError, OSError) as fault:
        return Finding(what, str(fault))


class _Fault(Exception):
    """Something that would fail."""


def _interface(environment: Mapping[str, str]) -> str:
    """Names of interfaces that the user set are there."""
    for variable in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        named = environment.get(variable, "")
        # NCCL also takes beginnings of names, lists, and ^ for all others.
        first = named.lstrip("=").split(",")[0]
        if first and not named.startswith("^") and not any(one.startswith(first) for one in interfaces()):
            raise _Fault(f"{variable}={named} names none of {', '.join(interfaces())}; unset it")
    return ", ".join(interfaces())


def _shared_memory(gpus: int) -> str:
    free = shutil.disk_usage(_SHM).free / 1e9
    wanted = _SHM_GB_OF_GPU * max(gpus, 1)
    if free < wanted:
        raise _Fault(f"{free:.2f} GB free, {wanted:.0f} GB are wanted; in docker start with --ipc host")
    return f"{free:.1f} GB free"


def _folder(folder: Path) -> str:
    """It can be written, and its file system locks files."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f".medexam-probe-{socket.gethostname()}-{os.getpid()}"
    try:
        with FileLock(path, timeout=5.0, mode=0o600):
            pass
    except (OSError, NotImplementedError) as error:
        raise _Fault(f"{folder} cannot be written with locks ({error}); name another folder for the registry") from None
    finally:
        path.unlink(missing_ok=True)
    return f"{folder} can be written and locked"


def _gpus(environment: Mapping[str, str]) -> str:
    found, promised = find_gpus(), environment.get("SLURM_GPUS_ON_NODE", "")
    if promised.isdigit() and int(promised) != len(found):
        raise _Fault(f"Slurm gave {promised}, nvidia-smi shows {len(found)}; ask the administrator about gres.conf")
    return ", ".join(map(str, found)) or "none"


def _proxies(here: JobNode) -> str:
    """Requests to the other nodes go to them and to no proxy."""
    proxy = urllib.request.getproxies().get("http")
    caught = [name for name in here.names if proxy and not urllib.request.proxy_bypass(name)]
    if caught:
        raise _Fault(f"runs would ask {', '.join(caught)} through {proxy}; export NO_PROXY={','.join(here.names)}")
    return "none for these nodes"


def _model_files(model: str) -> str:
    """The weights can be read here, from a folder or the hub's cache."""
    _, profile = find_profile(model)
    named = model if profile is None else profile.model
    files = find_folder(named) or find_snapshot(named, None if profile is None else profile.revision)
    if files is None:
        if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
            raise _Fault(f"{named} is not in the hub's cache here; fetch it with `hf download {named}`, share HF_HOME")
        return f"{named} is not in the hub's cache here and would be fetched from {_HUB}"
    wanted = {path for pattern in ("*.safetensors", "*.bin", "*.gguf") for path in files.glob(pattern)}
    for index in files.glob("*.index.json"):
        wanted |= {files / name for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()}
    for path in sorted(wanted):
        try:
            with path.open("rb") as stream:
                stream.read(1)
        except OSError as error:
            raise _Fault(f"{path}: cannot be read: {error.strerror}; fetch the model again") from None
    if not wanted:
        raise _Fault(f"{files} has no weights; fetch the model again")
    return f"{files}, {len(wanted)} files of weights"


def _server(model: str, servers: ServerSettings, nodes: int) -> str:
    """Its servers could start here, by the sum of their memory: on each node, or as one over all nodes."""
    try:
        launch, where = plan_servers(model, servers)[0], ""
    except EngineError as alone:
        try:
            launch = plan_servers(model, servers, node=Node(0, nodes, "FIRST_NODE"))[0]
        except EngineError:
            raise alone from None
        where = f"as one server over {nodes} nodes (--span): "
    return where + ("; ".join(launch.notes) or f"{launch.model} can start")


def _driver(servers: ServerSettings) -> str:
    """The driver knows the CUDA that vLLM's torch was built for."""
    named = servers.container or str(servers.python)
    command: tuple[str, ...] = (named, "-c", _ASK_CUDA)
    if servers.container is not None:
        name = f"medexam-doctor-{os.getpid()}"
        command = container_command(
            servers.runtime, named, command[1:], name=name, folder=None, gpus=None, environment={}
        )
    found = re.search(r"CUDA Version:\s*(\d+)\.(\d+)", _output(("nvidia-smi",)))
    version = json.loads(_output(command))
    if found is None or version is None:
        raise _Fault(f"{named} has a torch without CUDA" if found else "nvidia-smi names no CUDA version")
    newest = tuple(map(int, found.groups()))
    # Within a major version drivers run later builds.
    if newest[0] < int(version.split(".")[0]):
        raise _Fault(
            f"the driver takes CUDA {newest[0]}.{newest[1]}, {named} has torch for {version}; "
            f"install vLLM's build for CUDA {newest[0]}, or ask for a newer driver"
        )
    return f"driver {newest[0]}.{newest[1]}, torch {version}"


def _output(command: Sequence[str]) -> str:
    """What a command prints; raises `_Fault` with its last word if it fails."""
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise _Fault(f"`{command[0]}` does not answer within {_TIMEOUT_S:.0f} s") from None
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or [f"exit code {asked.returncode}"]
        raise _Fault(f"`{command[0]}` fails: {said[-1]}")
    return asked.stdout
