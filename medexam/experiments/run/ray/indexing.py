"""An index encoded by many machines at once: Ray Data hands the shards to encoders, one on each GPU.

What a shard is and how it is joined to the others is known to `medexam.retrievers.index_building`; that it is Ray that
carries them about, only here.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medexam.errors import IndexBuildError, MedExamError
from medexam.experiments.run.ray.cluster import Cluster
from medexam.retrievers.corpora import Corpus
from medexam.retrievers.encoders import Encoder, Precision, Progress, build_encoder
from medexam.retrievers.index import IndexManifest, Shard, count_encoded
from medexam.retrievers.index_building import build_shard, check_factory, join_shards, prepare_shards

LARGEST = 1_000_000
"""Passages of a shard, at most, unless a number of shards is named: 3 GB of vectors of 768 dimensions."""
_LOOK_S = 1.0
"""Seconds between two looks at how far the shards are."""


class ShardBuilder:
    """Builds shards with an encoder that it loads once; Ray Data makes one on each GPU."""

    def __init__(self, folder: str, source: str, revision: str, device: str, precision: Precision) -> None:
        self._folder = Path(folder)
        self._encoder_arguments = (source, revision, device, precision)
        self._encoder: Encoder | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Build the shard that the row names; what prevents it is told in `fault`, for Ray wraps what is raised."""
        try:
            if self._encoder is None:
                self._encoder = build_encoder(*self._encoder_arguments)
            build_shard(self._folder, Shard(**row), self._encoder)
        except MedExamError as error:
            return {"file": row["file"], "fault": str(error)}
        return {"file": row["file"], "fault": ""}


def build_index_on_ray(
    cluster: Cluster,
    corpus: Corpus,
    encoder: Encoder,
    folder: Path,
    *,
    device: str = "auto",
    shards: int | None = None,
    factory: str | None = None,
    parameters: str = "",
    progress: Progress | None = None,
) -> IndexManifest:
    """Encode a corpus into an index of `shards` shards, or finish one that was begun, shard by shard.

    Each worker loads `encoder` again; there is one worker a GPU, or one a machine without GPUs. `shards` None: one for
    each worker, or more, until none holds over `LARGEST` passages; an index that was begun keeps its own. `folder` must
    lie on storage that all machines share. Raises `IndexBuildError` if a shard cannot be built or a worker cannot load
    the encoder. An approximate index is made of the shards by this process, at the end.
    """
    import ray.data

    check_factory(factory, parameters, encoder)
    folder = folder.absolute()
    machines = cluster.machines()
    gpus = sum(machine.gpus for machine in machines) if device != "cpu" else 0
    workers = gpus or len(machines)
    number = shards or max(workers, -(-corpus.count // LARGEST))
    record = encoder.record
    layout = prepare_shards(corpus, encoder, folder, number)
    _quieten(ray.data)
    builder: Any = ShardBuilder
    resources: dict[str, Any] = (
        {"num_gpus": 1} if gpus else {"num_cpus": max(1, min(machine.cpus for machine in machines))}
    )
    with _watched(folder, layout, progress):
        rows = ray.data.from_items([shard.model_dump() for shard in layout], override_num_blocks=len(layout))
        replies = rows.map(
            builder,
            fn_constructor_args=(str(folder), record.source, record.revision, device, record.precision),
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(layout))),
            **resources,
        )
        try:
            for row in replies.iter_rows():
                if row["fault"]:
                    raise IndexBuildError(row["fault"])
        except ray.exceptions.RayError as error:
            fault = type(error).__name__
            raise IndexBuildError(
                f"{folder}: a worker of the Ray cluster failed ({fault}); the encoded passages are kept: build again "
                "to continue"
            ) from error
    return join_shards(encoder, folder, factory, parameters)


@contextmanager
def _watched(folder: Path, shards: Sequence[Shard], progress: Progress | None) -> Iterator[None]:
    """Report now and then how many passages have a vector, as the shards' own folders say."""
    finish = threading.Event()

    def look() -> None:
        while not finish.wait(_LOOK_S):
            if progress is not None:
                progress(count_encoded(folder, shards))

    watching = threading.Thread(target=look, name="medexam-shards", daemon=True)
    if progress is not None:
        progress(count_encoded(folder, shards))
    watching.start()
    try:
        yield
    finally:
        finish.set()
        watching.join()
    if progress is not None:
        progress(count_encoded(folder, shards))


def _quieten(data: Any) -> None:
    """Turn off Ray Data's own bars and log lines."""
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
