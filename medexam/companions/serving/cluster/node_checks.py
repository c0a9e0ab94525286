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

from medexam import MedExamError
from medexam.companions.serving.cluster.addresses import interfaces
from medexam.companions.serving.cluster.job_node import JobNode
from medexam.companions.serving.launch.containers import container_command
from medexam.companions.serving.launch.gpus import find_gpus
from medexam.companions.serving.launch.model_facts import find_snapshot
from medexam.companions.serving.launch.ports import next_free
from medexam.companions.serving.launch.settings import ServerSettings
from medexam.companions.serving.launch.vllm_command import plan_servers
from medexam.companions.serving.launch.vllm_flags import Node
from medexam.companions.serving.launch.vllm_source import find_folder, find_profile
from medexam.toolkit.errors import EngineError

_SHM = Path("/dev/shm")  # noqa: S108 - measured, not written
_SHM_GB_OF_GPU = 1.0
"""Shared memory in which NCCL and vLLM's processes talk; docker gives 0.06 GB unless it is told otherwise."""
_TIMEOUT_S = 120.0
_ASK_CUDA = "import json, torch; print(json.dumps(torch.version.cuda))"
_HUB = "https://huggingface.co"


@dataclass(frozen=True)
class NodeFinding:
    """One thing that was looked at."""

    subject: str
    fault: str | None
    """What is wrong and what to do; None: nothing."""
    observation: str = ""
    """What was seen if nothing is wrong."""


def check_node(job_node: JobNode, model: str | None, folder: Path, servers: ServerSettings) -> Iterator[NodeFinding]:
    """Check everything that one node can see by itself; `model` None: nothing of a model is looked at.

    `servers` say where vLLM is: in a Python or in a container.
    """
    yield _finding("interfaces", lambda: _interface(os.environ))
    yield _finding("shared memory", lambda: _shared_memory(len(find_gpus())))
    yield _finding("ports", lambda: f"{next_free('', job_node.first_port)} is free")
    yield _finding("folder", lambda: _folder(folder))
    yield _finding("GPUs", lambda: _gpus(os.environ))
    yield _finding("proxies", lambda: _proxies(job_node))
    if model is not None:
        yield _finding("model", lambda: _model_files(model))
        yield _finding("server", lambda: _server(model, servers, job_node.count))
    if find_gpus() and (servers.python is not None or servers.container is not None):
        yield _finding("CUDA", lambda: _driver(servers))


def _finding(subject: str, look: Callable[[], str]) -> NodeFinding:
    try:
        return NodeFinding(subject, None, look())
    except (_Fault, MedExamError, OSError) as fault:
        return NodeFinding(subject, str(fault))


class _Fault(Exception):
    """Something that would fail."""


def _interface(environment: Mapping[str, str]) -> str:
    """Check that interfaces of the names that the user set are there."""
    for variable in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        setting = environment.get(variable, "")
        # NCCL also takes beginnings of names, lists, and ^ for all others.
        prefix = setting.lstrip("=").split(",")[0]
        if prefix and not setting.startswith("^") and not any(name.startswith(prefix) for name in interfaces()):
            raise _Fault(f"{variable}={setting} names none of {', '.join(interfaces())}; unset it")
    return ", ".join(interfaces())


def _shared_memory(gpus: int) -> str:
    free = shutil.disk_usage(_SHM).free / 1e9
    need_gb = _SHM_GB_OF_GPU * max(gpus, 1)
    if free < need_gb:
        raise _Fault(f"{free:.2f} GB free, {need_gb:.0f} GB are needed; in docker start with --ipc host")
    return f"{free:.1f} GB free"


def _folder(folder: Path) -> str:
    """Check that the folder can be written, and that its file system locks files."""
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
    gpus, slurm_count = find_gpus(), environment.get("SLURM_GPUS_ON_NODE", "")
    if slurm_count.isdigit() and int(slurm_count) != len(gpus):
        raise _Fault(f"Slurm gave {slurm_count}, nvidia-smi shows {len(gpus)}; ask the administrator about gres.conf")
    return ", ".join(map(str, gpus)) or "none"


def _proxies(job_node: JobNode) -> str:
    """Check that requests to the other nodes go to them and to no proxy."""
    proxy = urllib.request.getproxies().get("http")
    names = [name for name in job_node.names if proxy and not urllib.request.proxy_bypass(name)]
    if names:
        raise _Fault(f"runs would ask {', '.join(names)} through {proxy}; export NO_PROXY={','.join(job_node.names)}")
    return "none for these nodes"


def _model_files(model: str) -> str:
    """Check that the weights can be read here, from a folder or the hub's cache."""
    _, profile = find_profile(model)
    model_name = model if profile is None else profile.model
    files = find_folder(model_name) or find_snapshot(model_name, None if profile is None else profile.revision)
    if files is None:
        if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
            raise _Fault(
                f"{model_name} is not in the hub's cache here; fetch it with `hf download {model_name}`, share HF_HOME"
            )
        return f"{model_name} is not in the hub's cache here and would be fetched from {_HUB}"
    weight_files = {path for pattern in ("*.safetensors", "*.bin", "*.gguf") for path in files.glob(pattern)}
    for index in files.glob("*.index.json"):
        weight_files |= {files / name for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()}
    for path in sorted(weight_files):
        try:
            with path.open("rb") as stream:
                stream.read(1)
        except OSError as error:
            raise _Fault(f"{path}: cannot be read: {error.strerror}; fetch the model again") from None
    if not weight_files:
        raise _Fault(f"{files} has no weights; fetch the model again")
    return f"{files}, {len(weight_files)} files of weights"


def _server(model: str, servers: ServerSettings, nodes: int) -> str:
    """Check that its servers could start here, by the sum of their memory: on each node, or as one over all nodes."""
    try:
        launch, label = plan_servers(model, servers)[0], ""
    except EngineError as error:
        try:
            launch = plan_servers(model, servers, node=Node(0, nodes, "FIRST_NODE"))[0]
        except EngineError:
            raise error from None
        label = f"as one server over {nodes} nodes (--span): "
    return label + ("; ".join(launch.notes) or f"{launch.model} can start")


def _driver(servers: ServerSettings) -> str:
    """Check that the driver knows the CUDA that vLLM's torch was built for."""
    installation = servers.container or str(servers.python)
    command: tuple[str, ...] = (installation, "-c", _ASK_CUDA)
    if servers.container is not None:
        name = f"medexam-doctor-{os.getpid()}"
        command = container_command(
            servers.runtime, installation, command[1:], name=name, folder=None, gpus=None, environment={}
        )
    match = re.search(r"CUDA Version:\s*(\d+)\.(\d+)", _output(("nvidia-smi",)))
    version = json.loads(_output(command))
    if match is None or version is None:
        raise _Fault(f"{installation} has a torch without CUDA" if match else "nvidia-smi names no CUDA version")
    newest = tuple(map(int, match.groups()))
    # Within a major version drivers run later builds.
    if newest[0] < int(version.split(".")[0]):
        raise _Fault(
            f"the driver supports CUDA {newest[0]}.{newest[1]}, and {installation} has torch for CUDA {version}; "
            f"install vLLM's build for CUDA {newest[0]}, or ask for a newer driver"
        )
    return f"driver {newest[0]}.{newest[1]}, torch {version}"


def _output(command: Sequence[str]) -> str:
    """Run a command and return what it prints; raises `_Fault` with its last word if it fails."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise _Fault(f"`{command[0]}` does not answer within {_TIMEOUT_S:.0f} s") from None
    if process.returncode:
        lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
        raise _Fault(f"`{command[0]}` fails: {lines[-1]}")
    return process.stdout
