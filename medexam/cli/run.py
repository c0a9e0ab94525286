"""`medexam run` and `medexam plan`: carry out an experiment, or say what carrying it out would do."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from medexam.cli.options import (
    INCOMPLETE,
    RUNS,
    SPEC_HELP,
    FailuresOption,
    JsonOption,
    OverridesOption,
    RayAddressOption,
    RunsDirOption,
    TrackingOption,
    settings_as_flags,
)
from medexam.cli.output import describe_stop, print_json, send_to_mlflow
from medexam.errors import SpecError
from medexam.kept import reads_kept
from medexam.text import count_of, print_notice

if TYPE_CHECKING:
    from medexam.experiments.plan.plans import Plan
    from medexam.experiments.run.spending import Stop
    from medexam.experiments.store.stored_run import StoredRun

_ASKED = "What is asked (repeat a flag, or put commas between values: a run for each)"


@dataclass(frozen=True)
class PlanSettings:
    """What is planned, beside the spec."""

    overrides: OverridesOption = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            rich_help_panel=_ASKED,
            help="The model: PROVIDER/MODEL, an address, ./FOLDER, hf:ORGANISATION/NAME, a profile or an engine.",
        ),
    ] = None
    program: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", rich_help_panel=_ASKED, help="The program, such as few_shot or zero_shot-guided."),
    ] = None
    language: Annotated[
        list[str] | None,
        typer.Option(metavar="LANGUAGE", rich_help_panel=_ASKED, help="The language of the questions, such as es."),
    ] = None
    years: Annotated[
        list[str] | None,
        typer.Option(
            metavar="YEARS", rich_help_panel=_ASKED, help="The years of the exams: 2016, 2013,2016 or 2013-2016."
        ),
    ] = None
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=_ASKED, help="Write the spec that these flags mean to this file."),
    ] = None
    price: Annotated[
        str | None,
        typer.Option(
            metavar="IN,OUT",
            help="US dollars for a million tokens of prompts and for a million of replies, such as 0.15,0.60.",
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(metavar="USD", min=0, help="Spend at most this many US dollars, those in flight included."),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Ask at most N questions, spread evenly over the exams.")] = (
        None
    )
    runs_dir: RunsDirOption = RUNS


@dataclass(frozen=True)
class RunSettings(PlanSettings):
    """How it is carried out, and by whom."""

    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Instead of a SPEC: ask the pending questions of this run.")
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start new runs beside those that exist.")] = False
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Ask one pending question of each cell, print every call with its reply, and keep nothing."
        ),
    ] = False
    repeat: Annotated[
        int, typer.Option(min=0, help="Ask every question N times more, in other orders, to see how far answers vary.")
    ] = 0
    without_items: Annotated[
        bool,
        typer.Option(
            "--without-items",
            help="Keep no question in the run's folder, where a licence forbids it; reports then need the data.",
        ),
    ] = False
    max_failures: FailuresOption = None
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Spend at most N tokens, those in flight included.")
    ] = None
    max_minutes: Annotated[float | None, typer.Option(metavar="MINUTES", min=0, help="Stop after that time.")] = None
    in_flight: Annotated[int | None, typer.Option(metavar="N", min=1, help="Ask at most N questions at once.")] = None
    tracking_uri: TrackingOption = None
    executor: Annotated[
        Literal["local", "ray"], typer.Option(help="local: this machine asks. ray: the machines of a cluster do.")
    ] = "local"
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="local: N processes; 1 by default. ray: N shards; one on each machine by default."
        ),
    ] = None
    ray_address: RayAddressOption = None


@settings_as_flags
def run(
    settings: RunSettings,
    specs: Annotated[
        list[str] | None,
        typer.Argument(help=SPEC_HELP, metavar="SPEC", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment, or continue it where it stopped.

    For example:
        medexam run quickstart
        medexam run headqa_v1 --set program.kind=longest --limit 200
        medexam run headqa_v1 quickstart --set model.name=my-model
        medexam run --resume 3c2aae
    """
    if settings.executor != "ray" and settings.ray_address is not None:
        raise typer.BadParameter("needs --executor ray", param_hint="--ray-address")
    if settings.resume is None and not specs:
        raise SpecError("nothing to run: give a SPEC, or a run to continue with --resume RUN")
    with reads_kept():
        if settings.resume is not None:
            plan = _plan_pending(settings.resume, specs, settings)
        else:
            start = {"fresh": settings.fresh, "repeat": settings.repeat, "keeps_items": not settings.without_items}
            plan = _plan(specs or [], settings, **start)
    if settings.debug:
        if as_json:
            raise SpecError("--debug prints each call as text: leave out --json")
        from medexam.cli.items import debug_plan

        debug_plan(plan)
        return
    from medexam.experiments.entry.carry_out import carry_out
    from medexam.experiments.run.spending import Limits

    limits = Limits(
        *(settings.max_failures, settings.max_tokens, settings.max_cost, settings.max_minutes),
        in_flight=settings.in_flight,
    )
    runs_dir, track = plan.runs_dir, settings.tracking_uri or True
    ray = (settings.ray_address or "") if settings.executor == "ray" else None
    runs, stop, expenses = carry_out(plan, limits=limits, workers=settings.workers, ray=ray, track=track)
    is_complete = stop is None and all(run.complete for run in runs)
    incomplete = "" if is_complete else _incomplete(" ".join(specs or []), plan, runs, stop, expenses)
    runs = [run for run in runs if not run.folder.repeat_number]
    # MLflow weighs as much as a hundred thousand questions; it takes their place.
    del plan
    from medexam.experiments.track import track_changes

    _print_runs(runs_dir, runs, as_json=as_json)
    send_to_mlflow(track_changes, runs, tracking_uri=settings.tracking_uri, runs_dir=runs_dir)
    if incomplete:
        print_notice(incomplete)
        raise typer.Exit(INCOMPLETE)


@settings_as_flags
def plan(
    specs: Annotated[list[str], typer.Argument(help=SPEC_HELP, metavar="SPEC")],
    settings: PlanSettings,
    as_json: JsonOption = False,
) -> None:
    """Say what would run: cells, questions, calls and one rendered prompt each.

    For example:
        medexam plan quickstart
    """
    planned = _plan(specs, settings, only_look=True)
    from medexam.experiments.report.shown import Terminal, print_blocks

    print_json(planned.cells) if as_json else print_blocks(Terminal(), planned.blocks())


def _plan(specs: list[str], settings: PlanSettings, **how: Any) -> "Plan":
    """Plan specs, each with what flags change; raises `SpecError` for what cannot be asked."""
    from medexam.cli.meaning import FLAGS, read_flags, state_meaning
    from medexam.experiments.entry.carry_out import plan_spec
    from medexam.specs import parse_overrides

    flags = {name: getattr(settings, name) or [] for name in FLAGS}
    price = [f"model.price=[{settings.price}]"] if settings.price else []
    changes = read_flags(flags) | parse_overrides([*price, *(settings.overrides or [])])
    changes |= {} if settings.limit is None else {"dataset.limit": settings.limit}
    planned = plan_spec(specs, changes, runs_dir=settings.runs_dir, **how)
    if excess := planned.describe_excess(settings.max_cost):
        print_notice(f"warning: {excess}")
    if settings.save is not None and len(planned.documents) > 1:
        raise SpecError("--save writes one spec: give one SPEC, or leave --save out")
    if len(planned.documents) == 1 and (any(flags.values()) or settings.save is not None):
        state_meaning(planned.documents[0], changes, settings.save)
    return planned


def _plan_pending(run_name: str, specs: list[str] | None, settings: RunSettings) -> "Plan":
    """Plan the pending questions of a run; raises `SpecError` for what would change what it asks."""
    changes = [name for name in PlanSettings.__dataclass_fields__ if name not in ("max_cost", "runs_dir")]
    if specs or any(getattr(settings, name) for name in (*changes, "fresh", "repeat", "without_items")):
        raise SpecError(
            "--resume RUN asks that run's pending questions, under its own spec: leave out SPEC, --set, --price, "
            "--limit, --fresh, --repeat, --without-items and such flags, or run the spec without --resume"
        )
    from medexam.experiments.plan.planner import plan_resume
    from medexam.experiments.store.run_folder import find_run

    plan = plan_resume(find_run(run_name, settings.runs_dir))
    for line in plan.notes:
        print_notice(line)
    return plan


def _print_runs(runs_dir: Path, runs: "list[StoredRun]", *, as_json: bool) -> None:
    """Print runs as tables or JSON, what is to be known of them, and the commands that show more."""
    from medexam.experiments.report.leaderboard import make_leaderboard
    from medexam.experiments.report.run_blocks import overview_blocks
    from medexam.experiments.report.run_tables import failure_tables
    from medexam.experiments.report.shown import Terminal, print_blocks

    for run in runs:
        metrics = run.metrics
        if metrics.without_passages > metrics.n / 10:
            print_notice(
                f"warning: {run.folder.name}: the search found no passage for {metrics.without_passages:,} of "
                f"{metrics.n:,} questions: check that the corpus is in their language and was read correctly"
            )
    if as_json:
        print_json([run.document() for run in runs])
        return
    if not runs:
        return
    print_blocks(Terminal(), [*overview_blocks(runs), *failure_tables(runs)])
    if len({run.record.cell.dataset.label for run in runs}) > 1 and len({run.record.cell.name for run in runs}) > 1:
        print_blocks(Terminal(), make_leaderboard(runs).blocks())
    for run in runs:
        if run.note is not None:
            print_notice(f"warning: {run.folder.name}: {run.note}")
    sys.stderr.write(f"Runs are in {runs_dir}.\n")
    sys.stderr.write(f"A page of every question and reply: {sys.argv[0]} report {runs_dir} --html report.html\n")


def _incomplete(spec: str, plan: "Plan", runs: "list[StoredRun]", stop: "Stop | None", expenses: str) -> str:
    """Say in one line why the run is incomplete, what is pending, failed and was spent, and how to continue."""
    pending = {run.folder: run.metrics.failed + run.metrics.missing for run in runs}
    pending |= {planned.folder: len(planned.pending) for planned in plan.runs if planned.folder not in pending}
    folders = [folder for folder, count in pending.items() if count]
    failures = sorted((failure for run in runs for failure in run.failures), key=lambda failure: -failure["questions"])
    mostly = f"; most failures were {failures[0]['kind']}: {failures[0]['example']}" if failures else ""
    if not folders:
        go_on = "nothing is left to ask"
    elif len(folders) == 1 and folders[0].exists():
        go_on = f"{folders[0].resume_command} asks them"
    else:
        go_on = f"run {spec} again with the same settings to ask them"
    count = count_of(sum(pending.values()), "question")
    money = "" if stop in (None, "interrupted") else f"; spent: {expenses}"
    return f"{describe_stop(stop)}: {count} still pending{mostly}{money}; {go_on}"
