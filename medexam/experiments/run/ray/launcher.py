"""Workers as actors of a Ray cluster: one on each machine, or as many as are wanted, the machines in turn."""

import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from ray.exceptions import RayActorError, RayTaskError

import ray
from medexam.experiments.run.ray.cluster import Cluster
from medexam.experiments.run.workers.remote import RemoteWorker, WorkerLostError
from medexam.experiments.run.workers.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")


class RayLauncher:
    """A `Launcher` over the machines of a cluster."""

    def __init__(self, cluster: Cluster, *, workers: int | None = None, a_gpu_each: bool = False) -> None:
        """Plan `workers` actors; None: one a machine, or with `a_gpu_each` one a GPU, for models in the workers."""
        self._cluster = cluster
        self._number = workers
        self._a_gpu_each = a_gpu_each

    async def launch(self) -> list[RemoteWorker]:
        """Start the actors."""
        machines = self._cluster.machines()
        with_gpus = [machine for machine in machines for _ in range(machine.gpus)] if self._a_gpu_each else []
        hosts = with_gpus or machines
        if self._number is not None:
            hosts = [hosts[turn % len(hosts)] for turn in range(self._number)]
        session = uuid.uuid4().hex[:8]
        actor_class = self._cluster.ray.remote(Worker)
        workers = []
        for turn, machine in enumerate(hosts):
            name, sharers = f"{session}-{turn}", hosts.count(machine)
            actor = actor_class.options(
                num_cpus=0,
                num_gpus=min(1.0, machine.gpus / sharers) if with_gpus else 0,
                scheduling_strategy=self._cluster.on_machine(machine),
            ).remote(name, str(Path.cwd()), max(1, machine.cpus // sharers), sharers)
            workers.append(RemoteWorker(name, machine.host, RayHandle(actor)))
        return workers

    def share(self, value: T) -> T:
        """Return a reference to the value in the cluster's object store; Ray puts the value in its place."""
        shared: T = self._cluster.ray.put(value)
        return shared

    def describe(self) -> dict[str, Any]:
        """Describe the cluster by Ray's version."""
        return {"kind": "ray", "ray": self._cluster.version}


class RayHandle:
    """A `Handle` of an actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def call(
        self, method: Callable[Concatenate[Worker, P], Coroutine[Any, Any, T]], *arguments: P.args, **keywords: P.kwargs
    ) -> T:
        """Call a method of the actor, as `Handle.call` does."""
        try:
            reply: T = await getattr(self._actor, method.__name__).remote(*arguments, **keywords)
        except RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, Exception) else error) from None
        except RayActorError as error:
            raise WorkerLostError(str(error)) from None
        return reply

    def kill(self) -> None:
        """Kill the actor, as `Handle.kill` does."""
        ray.kill(self._actor)
