"""A run spread over a Ray cluster: workers are started, see to it that they can work, and ask cell after cell.

Who gets which question is known to `dealing.py`, what a worker does with it to `worker.py`, and what becomes of the
answers to `parts.py`.
"""

import logging
import os
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import medexam
from medexam.errors import EndpointSilentError, EngineError, RunFolderError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.plan.passage_lookup import HitCache
from medexam.experiments.plan.words import read_words
from medexam.experiments.run.ray.cluster import Cluster
from medexam.experiments.run.ray.dispatcher import Member, Round, ask_all, lose
from medexam.experiments.run.ray.messages import Job, Shown, Sight
from medexam.experiments.run.ray.worker import Worker
from medexam.experiments.run.runner import RunObserver
from medexam.experiments.run.scheduler import FailureBudget
from medexam.experiments.store.environment import Invocation
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.store.shards import SHARDS
from medexam.files import make_private_folder, open_private
from medexam.retrievers.base import Hit
from medexam.serve import EngineInfo
from medexam.serve.pool.prefix_cache import PrefixCount
from medexam.specs import EngineNeeds, ModelSpec

_OWN = {"endpoints", "details", "server_version", "identity"}
"""What workers of one run may differ in."""
_LOOPBACK = ("://127.", "://localhost", "://[::1]")

_log = logging.getLogger(__name__)


class RayExecutor:
    """An `Executor` over the machines of a cluster: a worker on each, or as many as are wanted."""

    def __init__(self, cluster: Cluster, *, workers: int | None = None, a_gpu_each: bool = False) -> None:
        """`workers` None: one on each machine, or with `a_gpu_each` one for each GPU, for models in the workers."""
        self._cluster = cluster
        self._members = self._start(workers, a_gpu_each)
        self._reached: dict[ModelSpec, tuple[list[Member], EngineInfo]] = {}

    def _start(self, workers: int | None, a_gpu_each: bool) -> list[Member]:
        """Start the actors, the machines in turn."""
        nodes = self._cluster.nodes()
        with_gpus = [node for node in nodes for _ in range(node.gpus)] if a_gpu_each else []
        places = with_gpus or nodes
        if workers is not None:
            places = [places[turn % len(places)] for turn in range(workers)]
        session = uuid.uuid4().hex[:8]
        start = self._cluster.ray.remote(Worker)
        members = []
        for number, node in enumerate(places):
            beside = places.count(node)
            threads = max(1, node.cpus // beside)
            actor = start.options(
                num_cpus=0,
                num_gpus=min(1.0, node.gpus / beside) if with_gpus else 0,
                scheduling_strategy=self._cluster.on_node(node),
            ).remote(str(Path.cwd()), threads)
            members.append(Member(f"{session}-{number}", node, actor))
        return members

    @property
    def _living(self) -> list[Member]:
        return [member for member in self._members if not member.lost]

    async def prepare(self, planned: AnyCell, observer: RunObserver, needs: EngineNeeds) -> EngineInfo:
        """Have every worker see the run's folder and reach the model; what really runs there.

        A worker whose server is silent is left out with a warning. Raises `EngineError` where none reaches the model,
        or they reach different ones, and `RunFolderError` where a worker does not see the folder.
        """
        model = planned.cell.model
        if model not in self._reached:
            observer.engine_starts(model)
        await self._check_shared(planned.folder.path.absolute())
        if model not in self._reached:
            self._reached[model] = await self._reach(model, needs)
        return self._reached[model][1]

    async def _check_shared(self, folder: Path) -> None:
        """Raise unless every worker finds a file that is written now, and runs this version."""
        parts, nonce = folder / SHARDS, uuid.uuid4().hex
        path = parts / f".{nonce}"
        try:
            make_private_folder(parts)
            path.write_text(nonce, encoding="utf-8")
        except OSError as error:
            raise RunFolderError(f"cannot write {parts}: {error.strerror}") from None
        try:
            for member, sight in await ask_all(self._living, lambda one: one.actor.look.remote(path)):
                self._check_sight(member, sight, nonce, folder)
        finally:
            path.unlink(missing_ok=True)

    def _check_sight(self, member: Member, sight: Sight | Exception, nonce: str, folder: Path) -> None:
        if isinstance(sight, Exception) and member.host:
            lose(self._cluster, member, "between two cells")
            return
        if isinstance(sight, Exception):
            raise EngineError(
                f"a worker cannot start on {member.node.host}: {_last_line(sight)}; every machine of the cluster needs "
                "this environment"
            )
        member.host, member.pid = sight.host, sight.pid
        if sight.version != medexam.__version__:
            raise EngineError(
                f"{sight.host} has medexam {sight.version} and this process {medexam.__version__}: use one environment "
                "for all machines of the cluster"
            )
        if sight.said != nonce:
            raise RunFolderError(
                f"{sight.host} does not see {folder}: a distributed run needs a folder that all machines share; choose "
                "one by --runs-dir or MEDEXAM_RUNS"
            )
        if not sight.here:
            raise RunFolderError(
                f"{sight.host} does not see {Path.cwd()}, to which the spec's paths are relative: start the run in a "
                "folder that all machines share"
            )

    async def _reach(self, model: ModelSpec, needs: EngineNeeds) -> tuple[list[Member], EngineInfo]:
        from ray.exceptions import RayActorError

        found = await ask_all(self._living, lambda one: one.actor.prepare.remote(model, needs))
        there: list[tuple[Member, EngineInfo]] = []
        for member, info in found:
            if isinstance(info, EndpointSilentError):
                _log.warning("medexam: warning: %s: %s; the run goes on without this worker", member.host, info)
            elif isinstance(info, RayActorError):
                raise EngineError(f"the worker on {member.host} died while it prepared {model.label}")
            elif isinstance(info, Exception):
                raise info
            else:
                member.endpoints = info.endpoints
                there.append((member, info))
        if not there:
            raise next(info for _, info in found if isinstance(info, Exception))
        (first, seen), *others = there
        ours = seen.model_dump(exclude=_OWN)
        for member, info in others:
            if told := seen.identity.differences(info.identity):
                raise EngineError(
                    f"{first.host} and {member.host} reach different models ({'; '.join(told)}); give all machines "
                    "the same one"
                )
            theirs = info.model_dump(exclude=_OWN)
            if differing := [name for name in ours if ours[name] != theirs[name]]:
                raise EngineError(
                    f"{first.host} and {member.host} reach different models (they differ in {', '.join(differing)}: "
                    f"{seen.model} and {info.model}); give all machines the same one"
                )
        return [member for member, _ in there], seen

    async def ask(
        self, planned: AnyCell, observer: RunObserver, failures: FailureBudget, invocation: Invocation
    ) -> None:
        """Ask the cell's pending questions, as `medexam.experiments.run.scheduler.ask` does; the answers lie in parts.

        A worker that dies is warned of, and its questions go to the others. Raises `EngineError` where none is left, or
        for a fault that no other question would escape.
        """
        from ray.exceptions import RayActorError

        members = [one for one in self._reached[planned.cell.model][0] if not one.lost]
        shown = self._cluster.ray.put(_shown(planned))
        folder = planned.folder.path.absolute()
        # Newer than the metrics from now on, so that nobody takes the run for complete while its answers lie in parts.
        with open_private(folder / PREDICTIONS, "ab") as stream:
            os.utime(stream.fileno())
        words = read_words(planned.cell.program, planned.cell.dataset.language)
        jobs = {
            one.name: Job(planned.cell, planned.spec_digest, planned.answerer, folder, one.name, words)
            for one in members
        }
        for member, counted in await ask_all(members, lambda one: one.actor.begin.remote(jobs[one.name], shown)):
            if isinstance(counted, Exception) and not isinstance(counted, RayActorError):
                raise counted
            if isinstance(counted, RayActorError):
                lose(self._cluster, member, "before it asked anything")
            member.counted, member.over, member.hand, member.waiting, member.begun = counted, False, {}, 0, 0
        members = [one for one in members if not one.lost]
        if not members:
            raise EngineError("every worker of the Ray cluster is gone; run the same again to ask what is pending")
        round_ = Round(self._cluster, planned, folder, members, observer, failures)
        try:
            await round_.run()
        finally:
            still = [one for one in members if not one.lost]
            self._count(await ask_all(still, lambda one: one.actor.finish.remote()), invocation)

    @staticmethod
    def _count(finished: "Sequence[tuple[Member, PrefixCount | Exception | None]]", invocation: Invocation) -> None:
        """Add up what the servers' prefix caches counted, each server's once."""
        seen = set()
        for member, after in finished:
            own = any(mark in one for one in member.endpoints for mark in _LOOPBACK)
            servers = (member.host if own else "", member.endpoints)
            if servers not in seen and isinstance(after, PrefixCount):
                seen.add(servers)
                invocation.count_cached(member.counted, after)

    def describe(self) -> dict[str, Any]:
        """What `environment.json` says: the cluster, and who asked how many questions in this invocation."""
        workers = [{"name": one.name, "host": one.host, "asked": one.asked} for one in self._members]
        return {
            "kind": "ray",
            "ray": self._cluster.version,
            "workers": workers,
            "lost": [one.name for one in self._members if one.lost],
        }


def _shown(planned: AnyCell) -> Shown:
    """What the cell's questions are shown, without the corpus, the encoder and the other questions."""
    retrieval = planned.retrieval
    if retrieval is not None:
        found: dict[str, list[Hit]] = {}
        for question in planned.pending:
            hits = retrieval.find_per_option(question)
            found |= {query: hits[number] for number, query in retrieval.queries(question).items()}
        translated = retrieval.translations() if retrieval.translations is not None else {}
        retrieval = replace(
            retrieval,
            build=_build_nothing,
            cache=HitCache(Path(), ""),
            translations=dict if retrieval.translations is not None else None,
            _found=found,
            _translated={one.key: translated[one.key] for one in planned.pending if one.key in translated},
        )
    return Shown(retrieval, dict(planned.nearest._vectors) if planned.nearest is not None else {})


def _build_nothing(_: Any) -> Any:
    raise RunFolderError("a worker looks up no passages: the driver does")


def _last_line(error: Exception) -> str:
    """What ended an actor, without the way there."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
