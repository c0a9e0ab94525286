"""A Ray cluster, joined or started on this machine, quietly, and left as it was found.

It knows Ray's addresses, versions and nodes; what is done on the nodes is known elsewhere. Ray is imported when a
cluster is opened and not before.
"""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from medexam.errors import EngineError

_CONNECT_S = 5.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""What opens a connection to a gRPC server, which Ray's head is, with empty settings behind it."""
_SETTINGS = 4
"""The type of the frame that such a server sends first."""
_STORE_BYTES = 200_000_000
"""The object store of a cluster of our own: questions and answers are small."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""No usage statistics; and a worker that takes no GPU for itself still sees those of its node."""
_ONE_MACHINE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Set to 0, Ray listens on the loopback address alone, on Linux as well."""


@dataclass(frozen=True)
class Machine:
    """A node of the cluster."""

    id: str
    host: str
    cpus: int
    gpus: int


@dataclass(frozen=True)
class Cluster:
    """An open cluster."""

    ray: Any
    """The module."""
    address: str
    """HOST:PORT of the head."""

    @property
    def version(self) -> str:
        """Ray's."""
        return str(self.ray.__version__)

    def machines(self) -> list[Machine]:
        """List the machines that are alive, the head first."""
        entries = []
        for node in self.ray.nodes():
            if node["Alive"]:
                resources, host, name = node["Resources"], node["NodeManagerHostname"], node["NodeID"]
                machine = Machine(name, host, cpus=int(resources.get("CPU", 0)), gpus=int(resources.get("GPU", 0)))
                entries.append(("node:__internal_head__" not in resources, host, name, machine))
        return [machine for *_, machine in sorted(entries, key=lambda entry: entry[:3])]

    def on_machine(self, machine: Machine) -> Any:
        """Return Ray's strategy to start something on this machine and on no other."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(machine.id, soft=False)


@contextmanager
def open_cluster(address: str | None) -> Iterator[Cluster]:
    """Open the cluster whose head is at `address`; None starts one on this machine, which is stopped at the end.

    A cluster of our own listens on 127.0.0.1 alone. Where this process has joined a cluster already and names no other,
    that one is used and left open. Raises `EngineError` where Ray is missing, nothing or something else answers at the
    address, or the cluster runs other versions.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    if address is None or _is_only_here(address):
        os.environ.setdefault(_ONE_MACHINE, "0")
    ray = _load()
    if ray.is_initialized():
        joined = ray.get_runtime_context().gcs_address
        if address is not None and address != joined:
            raise EngineError(f"this process has joined the Ray cluster at {joined} and cannot join {address} as well")
        yield Cluster(ray, joined)
        return
    if address is not None:
        _check_answers(address)
    try:
        if address is None:
            ray.init(
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=_STORE_BYTES,
            )
        else:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises bare ones, as where its node starts too slowly
        raise EngineError(_why_not(address, str(error))) from None
    try:
        yield Cluster(ray, ray.get_runtime_context().gcs_address)
    finally:
        ray.shutdown()


def _load() -> Any:
    try:
        import ray
    except ModuleNotFoundError:
        raise EngineError("--executor ray needs the package ray: pip install 'medexam[ray]'") from None
    return ray


def _is_only_here(address: str) -> bool:
    """Return whether a head at a loopback address is out of reach at this machine's own, as a cluster of our own is."""
    host, _, port = address.rpartition(":")
    if host not in _LOOPBACK or not port.isdigit():
        return False
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
            # Sends nothing; it tells the address under which others see this machine.
            route.connect(("10.255.255.255", 1))
            own_address = str(route.getsockname()[0])
        with socket.create_connection((own_address, int(port)), 1.0):
            return False
    except OSError:
        return True


def _check_answers(address: str) -> None:
    """Raise `EngineError` unless a gRPC server answers; Ray itself waits for minutes, and may end the process then."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or "://" in host:
        raise EngineError(
            f"--ray-address {address} is not HOST:PORT: give what `ray start --head` printed, such as 10.0.0.1:6379, "
            "and run medexam on a machine of the cluster"
        )
    try:
        with socket.create_connection((host, int(port)), _CONNECT_S) as stream:
            stream.settimeout(_CONNECT_S)
            stream.sendall(_PREFACE)
            head = stream.recv(9, socket.MSG_WAITALL)
    except OSError as error:
        raise EngineError(
            f"no Ray cluster answers at {address} ({error.strerror or error}): start one with `ray start --head`, give "
            "its address, or leave --ray-address out to start one on this machine"
        ) from None
    if len(head) < 9 or head[3] != _SETTINGS:
        raise EngineError(f"the server at {address} is not a Ray cluster: give the address that `ray start` printed")


def _why_not(address: str | None, message: str) -> str:
    """Explain in one line why the cluster cannot be used, from Ray's message."""
    line = " ".join(message.split())
    where = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
    if "ersion mismatch" in line:
        return f"{where} runs other versions than this process: {line.partition(': ')[2]}; use one environment for both"
    return f"{where} cannot be {'joined' if address else 'started'}: {line}"
