"""From what a user gives to the runs that come of it: what the command line and the Python API have in common."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from medexam.errors import SpecError
from medexam.experiments.plan.cells import Plan
from medexam.experiments.plan.planner import plan_experiment
from medexam.experiments.run.spending import NO_LIMITS, Limits
from medexam.experiments.store.paths import default_runs_dir
from medexam.specs import SpecSource, load_document

if TYPE_CHECKING:
    from medexam.experiments.run.executor import RunObserver
    from medexam.experiments.run.spending import Stop
    from medexam.experiments.store.stored_run import AnyRun


@dataclass(frozen=True)
class Carriers:
    """Who asks a plan's questions."""

    executor: Literal["local", "ray"] = "local"
    """`local`: this process asks. `ray`: the workers of a cluster do."""
    ray_address: str | None = None
    """The cluster's head; None starts a cluster on this machine."""
    ray_workers: int | None = None
    """None: one on each machine."""
    limits: Limits = NO_LIMITS
    """What may be spent before it stops."""


def plan_spec(
    spec: SpecSource,
    overrides: Mapping[str, Any],
    limit: int | None = None,
    *,
    runs_dir: Path | None,
    fresh: bool = False,
    repeat: int = 0,
    only_look: bool = False,
) -> Plan:
    """What running `spec` would do, as `plan_experiment` says; `limit` is `dataset.limit`."""
    overrides = dict(overrides)
    if limit is not None:
        if "dataset.limit" in overrides:
            raise SpecError("--limit and --set dataset.limit say the same: give one of them")
        overrides["dataset.limit"] = limit
    return plan_experiment(
        load_document(spec),
        overrides,
        runs_dir=runs_dir or default_runs_dir(),
        fresh=fresh,
        repeat=repeat,
        only_look=only_look,
    )


def plan_lines(plan: Plan) -> Iterator[str]:
    """What a user should know before the plan is carried out, a line each; usually none."""
    for warning in dict.fromkeys(warning for cell in plan.cells for warning in cell.warnings):
        yield f"warning: {warning}"
    yield from plan.news


def carry_out(
    plan: Plan,
    carriers: Carriers,
    watch: "Callable[[], AbstractContextManager[RunObserver]]",
    say: Callable[[str], None],
) -> "tuple[list[AnyRun], Stop | None]":
    """Ask the plan's pending questions, as `Runner.run` does; a cluster is opened only if a model is asked."""
    # Imported here: a plan that is only looked at needs nothing that asks.
    from medexam.experiments.run.runner import Runner

    asks = [planned for planned in plan.cells if planned.asks_model and planned.pending]
    if carriers.executor == "local" or not asks:
        with watch() as observer:
            return Runner(plan, observer, limits=carriers.limits).run()
    if any(planned.cell.model.engine == "batch" for planned in asks):
        raise SpecError("--executor ray: engine batch submits and waits in one process; leave --executor out")
    from medexam.experiments.run.ray.cluster import open_cluster
    from medexam.experiments.run.ray.executor import RayExecutor

    address = carriers.ray_address
    say(f"Preparing {f'the Ray cluster at {address}' if address else 'a Ray cluster on this machine'} ...")
    embedded = any(planned.cell.model.loads_weights for planned in asks)
    with open_cluster(address) as cluster, watch() as observer:
        executor = RayExecutor(cluster, workers=carriers.ray_workers, a_gpu_each=embedded)
        return Runner(plan, observer, limits=carriers.limits, executor=executor).run()
