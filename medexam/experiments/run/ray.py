"""Shards on the machines of a Ray cluster, which is joined or started on this machine."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any

from medexam.errors import EngineError
from medexam.experiments.run.shard import ask_shard
from medexam.experiments.run.spread import ShardLostError, SpreadExecutor

_CONNECT_S = 5.0
_OWN: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 200_000_000}
"""Of a cluster of our own: questions and answers are small."""


@contextmanager
def open_cluster(address: str | None) -> Iterator[Any]:
    """Open the cluster whose head is at `address`, and yield Ray; None starts one here, which is stopped at the end.

    A cluster of our own listens on 127.0.0.1 alone. One that this process has joined already is used and left open.
    Raises `EngineError` where Ray is missing, nothing answers at the address, or the cluster cannot be used.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        # Called after other systems; set to 0, Ray listens on the loopback address alone, on Linux as well.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ModuleNotFoundError:
        raise EngineError("--executor ray needs the package ray: pip install 'medexam[ray]'") from None
    if ray.is_initialized():
        yield ray
        return
    try:
        if address is not None:
            # Ray itself waits for minutes, and may end the process then.
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), _CONNECT_S).close()
        settings = {"address": address} if address else _OWN
        ray.init(**settings, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises bare ones, as where its node starts too slowly
        raise EngineError(
            f"no Ray cluster at {address or 'this machine'} ({' '.join(str(error).split())}): start one with `ray "
            "start --head` in this environment and give the HOST:PORT that it prints, or leave --ray-address out"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def spread_on_ray(ray: Any, number: int | None) -> SpreadExecutor:
    """Return an executor of `number` shards as tasks of a cluster, spread over its machines; None: one a machine."""
    number = number or sum(node["Alive"] for node in ray.nodes())
    return SpreadExecutor(number, partial(_run_there, ray), kind="ray", ray=ray.__version__)


async def _run_there(ray: Any, folder: Path, part: int, parts: int, limits: str) -> dict[str, Any]:
    options = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": "SPREAD"}
    task = ray.remote(_ask_shard).options(**options).remote(str(Path.cwd()), folder, part, parts, limits)
    try:
        return dict(await task)
    except ray.exceptions.RayError as error:
        raise ShardLostError(str(error).strip().splitlines()[-1]) from None
    finally:
        ray.cancel(task, force=True)


def _ask_shard(directory: str, folder: Path, *part: Any) -> dict[str, Any]:
    try:
        os.chdir(directory)
    except FileNotFoundError:
        return {"fault": f"{gethostname()} does not see {directory}, and a distributed run needs shared folders"}
    return ask_shard(folder, *part)
