"""What would fail on the nodes of a job, found before a model loads: folders, cards, proxies, files, and ports."""

import os
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from medexam.errors import EngineError, MedExamError
from medexam.serve.cluster.node import JobNode
from medexam.serve.launch.command import Node, ServerSettings, plan_server
from medexam.serve.launch.memory import find_gpus
from medexam.serve.launch.profile import find_folder, find_profile, weight_files
from medexam.serve.local_model.template import find_snapshot
from medexam.serve.timing import TIMING


class NodeFinding(NamedTuple):
    """One thing that was looked at."""

    subject: str
    fault: str | None
    """What is wrong and what to do; None: nothing."""
    observation: str = ""
    """What was seen if nothing is wrong."""


def check_node(job_node: JobNode, model: str | None, folder: Path, settings: ServerSettings) -> Iterator[NodeFinding]:
    """Check what one node can see by itself, then whether the nodes reach each other.

    `model` None: nothing of a model is looked at. `settings` say where vLLM is: in a Python or in a container.
    """
    looks: dict[str, Callable[[], str]] = {
        "folder": lambda: _folder(folder),
        "GPUs": _gpus,
        "proxies": lambda: _proxies(job_node.names),
    }
    if model is not None:
        looks["model"] = lambda: _model_files(model)
        looks["server"] = lambda: _server(model, settings, job_node.count)
    if job_node.count > 1:
        looks["nodes"] = lambda: _meet(job_node, folder)
    for subject, look in looks.items():
        try:
            yield NodeFinding(subject, None, look())
        except (MedExamError, OSError) as fault:
            yield NodeFinding(subject, str(fault))


def _folder(folder: Path) -> str:
    path = folder / f".medexam-probe-{socket.gethostname()}-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(path, timeout=5.0, mode=0o600):
            pass
    except (OSError, NotImplementedError) as error:
        raise EngineError(f"{folder} cannot be written with locks ({error}); name another for the registry") from None
    finally:
        path.unlink(missing_ok=True)
    return f"{folder} can be written and locked"


def _gpus() -> str:
    gpus, slurm_count = find_gpus(), os.environ.get("SLURM_GPUS_ON_NODE", "")
    if slurm_count.isdigit() and int(slurm_count) != len(gpus):
        raise EngineError(
            f"Slurm gave {slurm_count}, nvidia-smi shows {len(gpus)}; ask the administrator about gres.conf"
        )
    return ", ".join(map(str, gpus)) or "none"


def _proxies(names: tuple[str, ...]) -> str:
    proxy = urllib.request.getproxies().get("http")
    if proxied := [name for name in names if proxy and not urllib.request.proxy_bypass(name)]:
        raise EngineError(f"runs would ask {', '.join(proxied)} through {proxy}; export NO_PROXY={','.join(names)}")
    return "none for these nodes"


def _model_files(model: str) -> str:
    profile = find_profile(model)
    name, revision = (model, None) if profile is None else (profile.model, profile.revision)
    files = find_folder(name) or find_snapshot(name, revision)
    if files is None:
        if os.environ.get("HF_HUB_OFFLINE", "0") in ("", "0"):
            return f"{name} is not in the hub's cache here and would be fetched"
        raise EngineError(f"{name} is not in the hub's cache here; fetch it with `hf download {name}`, share HF_HOME")
    weights = weight_files(files)
    for path in weights:
        try:
            with path.open("rb") as stream:
                stream.read(1)
        except OSError as error:
            raise EngineError(f"{path}: cannot be read: {error.strerror}; fetch the model again") from None
    return f"{files}, {len(weights)} files of weights"


def _server(model: str, settings: ServerSettings, nodes: int) -> str:
    try:
        launch, label = plan_server(model, settings), ""
    except EngineError as error:
        try:
            launch = plan_server(model, settings, node=Node(0, nodes, "FIRST_NODE"))
        except EngineError:
            raise error from None
        label = f"as one server over {nodes} nodes (--span): "
    return label + ("; ".join(launch.notes) or f"{launch.model} can start")


def _meet(job_node: JobNode, folder: Path) -> str:
    """Check that the nodes see one folder and reach the first one's port, where it listens."""
    node, peers = job_node.meet(folder), list[str]()
    deadline = time.monotonic() + TIMING.nodes_s
    while node.rank:  # it may begin to listen a moment after it wrote where
        try:
            with socket.create_connection((node.head, node.port), timeout=TIMING.nodes_s):
                return f"{node.head} reached from {node.address} ({node.interface})"
        except OSError as error:
            if not isinstance(error, ConnectionRefusedError) or time.monotonic() > deadline:
                raise EngineError(
                    f"{node.head} port {node.port} cannot be reached ({error}); ask about firewalls"
                ) from None
        time.sleep(0.1)
    family = socket.AF_INET6 if ":" in node.head else socket.AF_INET
    with socket.create_server((node.head, node.port), family=family) as server:
        while len(peers) + 1 < job_node.count:
            server.settimeout(max(deadline - time.monotonic(), 0.1))
            try:
                connection, peer = server.accept()
            except TimeoutError:
                raise EngineError(
                    f"{len(peers)} of {job_node.count - 1} other nodes reached {node.head} port {node.port}"
                ) from None
            connection.close()
            peers.append(str(peer[0]))
    return f"reached at {node.head} ({node.interface}) by {', '.join(peers)}"
