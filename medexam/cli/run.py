"""`medexam run` and `medexam plan`: carry out an experiment, or say what carrying it out would do."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from medexam.experiments.planning import Plan
    from medexam.experiments.summary import StoredRun

INCOMPLETE = 3

SpecArgument = Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped experiment.", metavar="SPEC")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, such as dataset.language=es.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Ask at most N questions, spread evenly over the exams.")]
RunsDirOption = Annotated[Path | None, typer.Option(help="Where runs are kept; $MEDEXAM_RUNS or ./runs by default.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def run(
    spec: SpecArgument,
    settings: SetOption = None,
    limit: LimitOption = None,
    runs_dir: RunsDirOption = None,
    resume: Annotated[str | None, typer.Option(metavar="RUN", help="Continue this run, and no other.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start new runs beside those that exist.")] = False,
    tracking_uri: Annotated[str | None, typer.Option(help="MLflow store or server; the runs' own by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment, or continue it where it stopped."""
    if resume is not None and fresh:
        raise typer.BadParameter("--resume continues a run and --fresh starts another: give one of them")
    plan = _plan(spec, settings, limit, runs_dir, resume=resume, fresh=fresh)
    from medexam.cli.progress import TerminalProgress
    from medexam.experiments.runner import run_plan

    with TerminalProgress() as progress:
        runs, interrupted = run_plan(plan, progress)
    _track(runs, plan, tracking_uri)
    if as_json:
        from medexam.experiments.summary import run_document

        sys.stdout.write(json.dumps([run_document(stored) for stored in runs], ensure_ascii=False, indent=2) + "\n")
    elif runs:
        _print_table(plan, runs, tracking_uri)
    if interrupted or not all(stored.complete for stored in runs):
        _say_incomplete(spec, plan, runs, interrupted)
        raise typer.Exit(INCOMPLETE)


def plan(
    spec: SpecArgument,
    settings: SetOption = None,
    limit: LimitOption = None,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what would run: cells, questions, calls and one rendered prompt each."""
    planned = _plan(spec, settings, limit, runs_dir, only_look=True)
    from medexam.cli.plan_view import plan_document, print_plan

    if as_json:
        sys.stdout.write(json.dumps(plan_document(planned), ensure_ascii=False, indent=2) + "\n")
    else:
        print_plan(planned)


def _plan(
    spec: str,
    settings: list[str] | None,
    limit: int | None,
    runs_dir: Path | None,
    *,
    resume: str | None = None,
    fresh: bool = False,
    only_look: bool = False,
) -> "Plan":
    from medexam.specs import load_document, parse_overrides

    document = load_document(spec)
    overrides: dict[str, Any] = parse_overrides(settings or [])
    if limit is not None:
        overrides["dataset.limit"] = limit
    from medexam.experiments.places import default_runs_dir
    from medexam.experiments.planning import plan_experiment

    planned = plan_experiment(
        document,
        overrides,
        runs_dir=runs_dir or default_runs_dir(),
        resume=resume,
        fresh=fresh,
        only_look=only_look,
    )
    for warning in dict.fromkeys(warning for cell in planned.cells for warning in cell.warnings):
        sys.stderr.write(f"medexam: warning: {warning}\n")
    return planned


def _track(runs: "list[StoredRun]", plan: "Plan", tracking_uri: str | None) -> None:
    """Send the runs to MLflow; an outage costs nothing but a line, for the folders are complete."""
    from medexam.errors import TrackingError
    from medexam.experiments.tracking import default_tracking_uri, track

    try:
        track(runs, tracking_uri=tracking_uri or default_tracking_uri(plan.runs_dir))
    except TrackingError as error:
        sys.stderr.write(f"medexam: {error}\n")


def _print_table(plan: "Plan", runs: "list[StoredRun]", tracking_uri: str | None) -> None:
    from rich.console import Console

    from medexam.experiments.tables import build_table

    Console().print(build_table(runs))
    where = f"--tracking-uri {tracking_uri}" if tracking_uri else f"--runs-dir {plan.runs_dir}"
    sys.stderr.write(f"Runs are in {plan.runs_dir}. See them in the MLflow UI: {sys.argv[0]} ui {where}\n")


def _say_incomplete(spec: str, plan: "Plan", runs: "list[StoredRun]", interrupted: bool) -> None:
    why = "interrupted" if interrupted else "incomplete"
    begun = {stored.record.run_id for stored in runs}
    left = sum(stored.metrics.failed + stored.metrics.missing for stored in runs)
    left += sum(len(planned.owed) for planned in plan.cells if planned.folder.run_id not in begun)
    failure = next((stored.failure for stored in reversed(runs) if stored.failure), None)
    last = f"; the last failure was {failure}" if failure else ""
    sys.stderr.write(
        f"medexam: {why}: {left} questions are still owed{last}; run {spec} again with the same settings to ask them\n"
    )
