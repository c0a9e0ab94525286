"""From what a user gives to the runs that come of it: what the command line and the Python API have in common."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from medexam.errors import SpecError
from medexam.experiments.entry.named_parts import ask_addresses, read_spec
from medexam.experiments.plan.cells import AnyCell, Plan, join_plans
from medexam.experiments.plan.hosted import check_keys
from medexam.experiments.plan.planner import plan_experiment
from medexam.experiments.run.spending import NO_LIMITS, Limits, Stop
from medexam.experiments.store.paths import default_runs_dir
from medexam.specs.base import Spec
from medexam.specs.loading import SpecSource
from medexam.specs.suite import SuiteEntry, load_entries

if TYPE_CHECKING:
    from medexam.experiments.entry.progress import RunProgress
    from medexam.experiments.run.runner import Executor
    from medexam.experiments.store.stored_run import StoredRun


class Outcome(NamedTuple):
    """What came of a plan."""

    runs: "list[StoredRun]"
    stop: Stop | None
    """Why it ended early; None if it did not."""
    spent: str
    """What was spent, in a few words."""


@dataclass(frozen=True)
class Carriers:
    """Who asks a plan's questions."""

    executor: Literal["local", "ray"] = "local"
    """`local`: this machine asks. `ray`: the machines of a cluster do."""
    ray_address: str | None = None
    """The cluster's head; None starts a cluster on this machine."""
    workers: int | Literal["auto"] | None = None
    """local: processes, 1 or None is this one, `auto` as many as help. ray: the machines in turn, None or `auto` is one
    on each."""
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
    """Plan what running `spec` would do, as `plan_experiment` says; `limit` is `dataset.limit`.

    Unless `only_look`, raises `EngineError` too for a hosted model of no provider, or without its key.
    """
    overrides = dict(overrides)
    if limit is not None:
        if "dataset.limit" in overrides:
            raise SpecError("--limit and --set dataset.limit set the same key: give one of them")
        overrides["dataset.limit"] = limit
    document, overrides = ask_addresses(read_spec(spec), overrides, only_look=only_look)
    plan = plan_experiment(
        document, overrides, runs_dir=runs_dir or default_runs_dir(), fresh=fresh, repeat=repeat, only_look=only_look
    )
    if not only_look:
        check_keys(plan.cells)
    return plan


def plan_entries(entries: Sequence[SuiteEntry], limit: int | None = None, **settings: Any) -> Plan:
    """Plan one experiment or several as `plan_spec` does."""
    plans = [plan_spec(entry.document, entry.overrides, limit, **settings) for entry in entries]
    return plans[0] if len(plans) == 1 else join_plans(plans)


def plan_specs(
    specs: SpecSource | Sequence[SpecSource], overrides: Mapping[str, Any], limit: int | None, **settings: Any
) -> Plan:
    """Plan a spec, a suite or several of them as `plan_spec` does; `overrides` are set in each experiment."""
    sources = [specs] if isinstance(specs, str | Path | Mapping | Spec) else specs
    entries = [
        SuiteEntry(entry.document, {**entry.overrides, **overrides}) for entry in load_entries(sources, read_spec)
    ]
    if not entries:
        raise SpecError("no spec is given: give one or more")
    return plan_entries(entries, limit, **settings)


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield what a user should know before the plan is carried out, a line each; usually none."""
    for warning in dict.fromkeys(warning for cell in plan.cells for warning in cell.warnings):
        yield f"warning: {warning}"
    yield from plan.news


def carry_out(
    plan: Plan,
    carriers: Carriers,
    watch: "Callable[[], AbstractContextManager[RunProgress]]",
    say: Callable[[str], None],
) -> Outcome:
    """Ask the plan's pending questions, as `Runner.run` does; a cluster is opened only if a model is asked."""
    # Imported here: a plan that is only looked at needs nothing that asks.
    from medexam.experiments.compare.equal_runs import describe_unequal_beside
    from medexam.experiments.plan.installed import check_installed
    from medexam.experiments.run.runner import Runner

    check_installed([planned for planned in plan.cells if planned.pending])
    cells = [planned for planned in plan.cells if planned.asks_model and planned.pending]
    with _executor(carriers, cells, say) as executor, watch() as observer:
        runner = Runner(plan, observer, limits=carriers.limits, executor=executor)
        runs, stop = runner.run()
    for line in describe_unequal_beside(runs):
        say(f"warning: {line}")
    return Outcome(runs, stop, runner.spending.describe())


@contextmanager
def _executor(carriers: Carriers, cells: list[AnyCell], say: Callable[[str], None]) -> "Iterator[Executor | None]":
    """Open who asks these cells; None is this process. What is started for it ends with the block."""
    from medexam.experiments.run.spread import ProcessExecutor, choose_number

    if not cells:
        yield None
    elif carriers.executor == "ray":
        with _open_ray(carriers, cells, say) as executor:
            yield executor
    else:
        number, reason = choose_number(cells, carriers.workers)
        if reason:
            say(f"{number} process{'es' * (number > 1)} of this machine ask{'s' * (number == 1)}: {reason}")
        yield None if number == 1 else ProcessExecutor(number)


@contextmanager
def _open_ray(carriers: Carriers, cells: list[AnyCell], say: Callable[[str], None]) -> "Iterator[Executor]":
    if engine := next((one.cell.model.engine for one in cells if one.cell.model.ask_engine("works_in_folder")), None):
        raise SpecError(f"--executor ray: engine {engine} works in one process; leave --executor out")
    from medexam.experiments.run.ray import RayExecutor, open_cluster

    address = carriers.ray_address
    say(f"Preparing {f'the Ray cluster at {address}' if address else 'a Ray cluster on this machine'} ...")
    loads_weights = any(planned.cell.model.loads_weights for planned in cells)
    number = None if carriers.workers == "auto" else carriers.workers
    with open_cluster(address) as ray:
        yield RayExecutor(ray, number, loads_weights=loads_weights)
