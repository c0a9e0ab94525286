"""From what a user gives to the runs that come of it: what the command line and the Python API have in common."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from medexam.errors import DatasetError, EngineError, SpecError, TrackingError
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.plan.plans import Plan
from medexam.experiments.run.spending import NO_LIMITS, Limits, Stop
from medexam.specs import load_document
from medexam.specs.base import Spec
from medexam.specs.loading import SpecSource
from medexam.text import print_notice

if TYPE_CHECKING:
    from medexam.datasets.own.audit import Proposal
    from medexam.experiments.run.runner import Executor
    from medexam.experiments.store.stored_run import StoredRun

Document = Mapping[str, Any]
_OWN_PROGRAMS: Mapping[str, dict[str, str]] = {
    "choice": {"kind": "zero_shot", "answer_format": "guided"},
    "short_answer": {"kind": "short_answer"},
    "spans": {"kind": "quote"},
}
"""Kind of one's own questions -> the program that asks them first."""
_WITHOUT_WORDS = ("fr", "ja", "zh")
"""Languages in which the prompts of exams have no words."""


def _read_spec(spec: SpecSource) -> dict[str, Any]:
    """Read the document of a spec as `load_document` does; a file of questions is a spec if all in it is clear."""
    path = Path(spec) if isinstance(spec, (str, Path)) else Path()
    if not path.suffix or not path.is_file() or path.suffix.lower() in (".yaml", ".yml") or _is_json_spec(path):
        return load_document(spec)
    from medexam.datasets.own.proposing import propose

    try:
        proposal = propose(path)
    except DatasetError as error:
        raise SpecError(f"{error}; a spec is a file NAME.yaml, and `medexam init {path}` writes one") from None
    if proposal.open:
        decisions = "; ".join(f"{name}: {decision}" for name, decision in proposal.open.items())
        raise SpecError(
            f"{path} can be read in several ways: `medexam init {path}` writes a spec in which you choose ({decisions})"
        )
    for line in proposal.notes:
        print_notice(line)
    document: dict[str, Any] = yaml.safe_load(render_own_spec(path, proposal, path.absolute()))
    return document


def render_own_spec(file: Path, proposal: "Proposal", path: Path, endpoint: str | None = None) -> str:
    """Write the spec that asks the questions of a file, as was proposed to read it, at a `path`, of the embedded model
    or of the one at an endpoint.
    """
    program = dict(_OWN_PROGRAMS[proposal.kind])
    if proposal.kind == "choice" and proposal.language in _WITHOUT_WORDS:
        program["prompt_language"] = "en"
    model = {"engine": "embedded"} if endpoint is None else {"engine": "vllm", "endpoints": endpoint}
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", file.name.split(".")[0])[:64].strip("_") or "questions"
    dataset = "".join(f"  {line}\n" for line in proposal.lines(path))
    tail = yaml.safe_dump({"model": model, "program": program}, sort_keys=False, default_flow_style=None)
    return f"{yaml.safe_dump({'name': name})}dataset:\n{dataset}{tail}"


def _is_json_spec(path: Path) -> bool:
    with suppress(OSError, ValueError):
        document = json.loads(path.read_bytes()) if path.suffix.lower() == ".json" else None
        return isinstance(document, dict) and not {"dataset", "program", "model", "experiments"}.isdisjoint(document)
    return False


def plan_spec(
    specs: SpecSource | Sequence[SpecSource],
    overrides: Document,
    *,
    runs_dir: Path,
    **settings: Any,
) -> Plan:
    """Plan what running a spec or several of them under `overrides` would do, as `plan_experiment` does under the
    `settings`, and tell its notes; a run that two of them plan is in it once.

    Unless it `only_look`s, raises what `Plan.check_ready` does.
    """
    sources = [specs] if isinstance(specs, str | Path | Mapping | Spec) else specs
    if not (documents := [_read_spec(source) for source in sources]):
        raise SpecError("no spec is given: give one or more")
    from medexam.experiments.plan.planner import plan_experiment

    plans = [plan_experiment(document, overrides, runs_dir=runs_dir, **settings) for document in documents]
    runs = dict[Path, PlannedCell]()
    for run in (run for plan in plans for run in plan.runs):
        first = runs.setdefault(run.folder.path, run).cell
        if (first.dataset, first.metrics) != (run.cell.dataset, run.cell.metrics):
            raise SpecError(
                f"two specs named {first.name} ask in one way, but other questions or with other metrics, and a run "
                "keeps those of one spec: give each another name"
            )
    plan = replace(plans[0], name=", ".join(plan.name for plan in plans), runs=(*runs.values(),), documents=documents)
    if not settings.get("only_look"):
        plan.check_ready()
    for line in plan.notes:
        print_notice(line)
    return plan


def carry_out(
    plan: Plan,
    *,
    limits: Limits = NO_LIMITS,
    workers: int | None = None,
    ray: str | None = None,
    progress: bool = True,
    track: bool | str = False,
) -> "tuple[list[StoredRun], Stop | None, str]":
    """Ask the plan's pending questions; return the runs, why asking ended early, and what was spent, in words.

    `workers` processes of this machine ask; with `ray`, the address of a cluster's head or
    empty for one on this machine, as many shards, by default one on each machine. What no model can be asked for is
    recorded in `track`, which is that of `send_to_mlflow`.
    """
    # Imported here: a plan that is only looked at needs nothing that asks.
    from medexam.experiments.compare.noise import describe_unequal_beside
    from medexam.experiments.entry.progress import RunProgress
    from medexam.experiments.run.runner import Runner

    plan.check_ready()
    cells = [planned for planned in plan.runs if planned.asks_model and planned.pending]
    try:
        with _executor(workers, ray, cells) as executor, RunProgress(plan.runs, disable=not progress) as observer:
            runner = Runner(plan, observer, limits=limits, executor=executor)
            runs, stop = runner.run()
    except EngineError as error:
        from medexam.experiments.track import track_failed

        send_to_mlflow(track_failed, plan.runs, str(error), track=track, runs_dir=plan.runs_dir)
        raise
    for line in describe_unequal_beside(runs):
        print_notice(f"warning: {line}")
    return runs, stop, runner.spending.describe()


@contextmanager
def _executor(workers: int | None, ray: str | None, cells: list[PlannedCell]) -> "Iterator[Executor | None]":
    """Open who asks these cells; None is this process. What is started for it ends with the block."""
    if not cells or (ray is None and workers in (None, 1)):
        yield None
        return
    from medexam.experiments.run.shard import SpreadExecutor, check_spreadable, run_here

    check_spreadable(cells)
    if ray is None:
        yield SpreadExecutor(workers or 1, run_here, kind="processes")
        return
    from medexam.experiments.run.shard import spread_on_ray

    print_notice(f"Preparing {f'the Ray cluster at {ray}' if ray else 'a Ray cluster on this machine'} ...")
    with spread_on_ray(ray or None, workers) as executor:
        yield executor


def send_to_mlflow(
    send: Callable[..., Any], *arguments: object, track: bool | str, runs_dir: Path
) -> tuple[list[Any], str] | None:
    """Call `send` with a store; return what is there now, and the store. An outage costs a line: folders are complete.

    `track` is an MLflow store; True: that of `MLFLOW_TRACKING_URI`, or the one beside the runs; False: none.
    """
    if not track:
        return None
    from medexam.experiments.track import default_tracking_uri

    uri = track if isinstance(track, str) else default_tracking_uri(runs_dir)
    try:
        copies = send(*arguments, tracking_uri=uri)
    except TrackingError as error:
        print_notice(str(error))
        return None
    return (copies if isinstance(copies, list) else [copies]), uri
