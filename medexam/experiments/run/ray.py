"""Work on the machines of a Ray cluster, which is joined or started on this machine: shards, and parts of an index."""

import logging
import os
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medexam.errors import EngineError, IndexBuildError, MedExamError, RunFolderError
from medexam.event_loop import background_loop
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.run.shard import ask_shard
from medexam.experiments.run.spread import ShardLostError, SpreadExecutor
from medexam.files import host_name
from medexam.plugins import __version__
from medexam.retrievers.base import Progress
from medexam.retrievers.corpora import Corpus
from medexam.retrievers.encoders import Encoder, build_encoder
from medexam.retrievers.index import Build, encode_parts
from medexam.serve import EngineInfo, build_engine
from medexam.specs import EngineNeeds, ModelSpec

if TYPE_CHECKING:
    from medexam.experiments.entry.progress import RunProgress

_CONNECT_S = 5.0
_LOOK_S = 1.0
"""Seconds between two looks at how far the parts of an index are."""
_OWN: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 200_000_000}
"""Of a cluster of our own: questions and answers are small."""
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A worker that takes no GPU for itself still sees those of its node.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


@contextmanager
def open_cluster(address: str | None) -> Iterator[Any]:
    """Open the cluster whose head is at `address`, and yield Ray; None starts one here, which is stopped at the end.

    A cluster of our own listens on 127.0.0.1 alone. Where this process has joined a cluster already and names no other,
    that one is used and left open. Raises `EngineError` where Ray is missing, nothing answers at the address, or the
    cluster cannot be used.
    """
    # The last one is called after other systems; set to 0, Ray listens on the loopback address alone, on Linux as well.
    alone = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"} if address is None else {}
    os.environ |= {name: value for name, value in (_ENVIRONMENT | alone).items() if name not in os.environ}
    try:
        import ray
    except ModuleNotFoundError:
        raise EngineError("--executor ray needs the package ray: pip install 'medexam[ray]'") from None
    if ray.is_initialized():
        joined = ray.get_runtime_context().gcs_address
        if address not in (None, joined):
            raise EngineError(f"this process has joined the Ray cluster at {joined} and cannot join {address} as well")
        yield ray
        return
    if address is not None:
        # Ray itself waits for minutes, and may end the process then.
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _CONNECT_S).close()
        except (OSError, ValueError) as error:
            raise EngineError(
                f"no Ray cluster answers at {address} ({error}): start one with `ray start --head`, and give the "
                "HOST:PORT that it prints; or leave --ray-address out to start one on this machine"
            ) from None
    try:
        settings = {"address": address} if address else _OWN
        ray.init(**settings, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises bare ones, as where its node starts too slowly
        where = f"the Ray cluster at {address} cannot be joined" if address else "no Ray cluster can be started here"
        raise EngineError(f"{where}: {' '.join(str(error).split())}; use one environment for all machines") from None
    try:
        yield ray
    finally:
        ray.shutdown()


class Cluster:
    """The machines that are alive, and how `number` tasks share them; None: one a machine, or one a GPU if they are
    used.
    """

    def __init__(self, ray: Any, number: int | None, *, uses_gpus: bool) -> None:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        gpus = sum(int(node.get("GPU", 0)) for node in nodes) if uses_gpus else 0
        self.ray, self.number = ray, number or gpus or len(nodes)
        self._threads = max(1, min(int(node.get("CPU", 1)) for node in nodes) // -(-self.number // len(nodes)))
        self._options = {"num_cpus": 0, "num_gpus": min(1.0, gpus / self.number), "max_retries": 0}
        self.tasks: list[Any] = []

    def start(self, folder: Path, function: Callable[..., Any], *arguments: Any) -> Any:
        """Have a machine that sees the folder call a function; the task that is returned gives a `MedExamError` too."""
        # Others know the folder by a file: another machine may have one of its own at the same path.
        mark = folder.absolute() / f".{uuid.uuid4().hex}"
        mark.touch()
        task = self.ray.remote(_call_there).options(**self._options, scheduling_strategy="SPREAD")
        self.tasks.append(task.remote((str(Path.cwd()), mark, __version__, self._threads), function, arguments))
        return self.tasks[-1]

    def kill(self) -> None:
        """End the tasks."""
        for task in self.tasks:
            self.ray.cancel(task, force=True)


def _call_there(place: tuple[str, Path, str, int], function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a function as the driver would, in its directory; what a user can cure is returned, for Ray wraps faults."""
    directory, mark, version, threads = place
    os.environ["OMP_NUM_THREADS"] = str(threads)
    host = host_name()
    if version != __version__:
        return EngineError(f"{host} has medexam {__version__} and the driver {version}: use one environment for all")
    try:
        mark.unlink()
        os.chdir(directory)
        return function(*arguments)
    except FileNotFoundError:
        return RunFolderError(
            f"{host} does not see {mark.parent} or {directory}: a distributed run needs folders that all machines "
            "share; choose one by --runs-dir or MEDEXAM_RUNS"
        )
    except MedExamError as error:
        return error


class RayExecutor(SpreadExecutor):
    """Shards as tasks of a cluster, spread over its machines; models are reached there and not by this process."""

    def __init__(self, ray: Any, number: int | None, *, loads_weights: bool) -> None:
        """Plan `number` shards; None: one a machine, or one a GPU for models that are loaded there."""
        self._cluster = Cluster(ray, number, uses_gpus=loads_weights)
        super().__init__(self._cluster.number)
        self._infos: dict[ModelSpec, EngineInfo] = {}

    async def prepare(
        self, planned: PlannedCell, observer: "RunProgress", needs: Mapping[ModelSpec, EngineNeeds]
    ) -> None:
        """Have a machine of the cluster see the run's folder and reach the models."""
        for model in planned.models.values():
            if model not in self._infos:
                observer.engine_starts(model)
                self._infos[model] = await self._call(planned.folder.path, _look, model, needs[model])

    def info(self, planned: PlannedCell, name: str | None = None) -> EngineInfo | None:
        """Return what answers, as that machine said."""
        return self._infos.get(planned.models[name]) if planned.asks_model else None

    async def run_part(self, folder: Path, part: int, parts: int) -> dict[str, Any]:
        """Run the shard as a task."""
        return dict(await self._call(folder, ask_shard, folder, part, parts))

    def kill(self) -> None:
        """End the tasks."""
        self._cluster.kill()

    def describe(self) -> dict[str, Any]:
        """Describe the shards, with Ray's version."""
        return {**super().describe(), "kind": "ray", "ray": self._cluster.ray.__version__}

    async def _call(self, folder: Path, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            result = await self._cluster.start(folder, function, *arguments)
        except self._cluster.ray.exceptions.RayError as error:
            raise ShardLostError(str(error).strip().splitlines()[-1]) from None
        if isinstance(result, MedExamError):
            raise result
        return result


def _look(model: ModelSpec, needs: EngineNeeds) -> EngineInfo:
    """Reach a model, and return what it is."""

    async def look() -> EngineInfo:
        engine = await build_engine(model, needs)
        try:
            return engine.info()
        finally:
            await engine.aclose()

    return background_loop().run(look())


def encode_on_ray(
    ray: Any, device: str, corpus: Corpus, encoder: Encoder, folder: Path, progress: Progress | None
) -> None:
    """Write the parts of an index, as `encode_parts` does: a task for each GPU, or for each machine without GPUs.

    A task loads `encoder` and reads the corpus, which must lie, as `folder`, on storage that all machines share.
    Raises `IndexBuildError` if a part cannot be written.
    """
    cluster, build = Cluster(ray, None, uses_gpus=device != "cpu"), Build(corpus=corpus, encoder=encoder.record)
    source = encoder.record.source, encoder.record.revision, device, encoder.record.precision
    places = corpus, source, folder.absolute()
    running = [cluster.start(folder, _encode, *places, worker, cluster.number) for worker in range(cluster.number)]
    try:
        while running:
            ended, running = ray.wait(running, timeout=_LOOK_S)
            if progress is not None:
                progress(build.count_encoded(folder))
            for fault in filter(None, ray.get(ended)):
                raise IndexBuildError(str(fault))
    except ray.exceptions.RayError as error:
        raise IndexBuildError(
            f"{folder}: a worker of the Ray cluster failed ({type(error).__name__}); the encoded passages are kept: "
            "build again to continue"
        ) from error
    finally:
        cluster.kill()


def _encode(corpus: Corpus, source: tuple[Any, ...], folder: Path, worker: int, workers: int) -> None:
    encode_parts(corpus, build_encoder(*source), folder, worker=worker, workers=workers)
