"""What `medexam run` and `medexam plan` do: plan a spec, carry it out or show it, and say what came of it."""

from dataclasses import replace
from functools import partial

import typer

from medexam.cli.actions.outcome import print_runs
from medexam.cli.flags.run import PlanSettings, RunSettings
from medexam.cli.options import INCOMPLETE, check_resumed
from medexam.cli.views.debugging import debug_plan
from medexam.cli.views.meaning import print_meaning, save_meaning
from medexam.cli.views.output import print_json, send_to_mlflow
from medexam.cli.views.plan import print_plan
from medexam.cli.views.runs import describe_stop, print_notice
from medexam.errors import EngineError, SpecError
from medexam.experiments.entry.carry_out import Carriers, carry_out, plan_entries, plan_lines
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.plan.cells import Plan
from medexam.experiments.plan.document import plan_document
from medexam.experiments.plan.planner import plan_resume
from medexam.experiments.plan.price import describe_excess
from medexam.experiments.run.spending import Limits, Stop
from medexam.experiments.store.paths import default_runs_dir
from medexam.experiments.store.repeats import is_repeat
from medexam.experiments.store.stored_run import StoredRun
from medexam.specs.catalogue import CATALOGUE
from medexam.specs.suite import SuiteEntry
from medexam.text import count_of


def run_entries(entries: list[SuiteEntry], specs: list[str], settings: RunSettings, *, as_json: bool) -> None:
    """Run experiments that are read from `specs`, or continue one where it stopped."""
    if settings.resume is None:
        plan = _plan(entries, settings, fresh=settings.fresh, repeat=settings.repeat)
        _say_language(specs, settings, plan)
    else:
        if specs or settings.asks_otherwise or settings.fresh or settings.repeat:
            raise SpecError(
                "--resume RUN asks that run's pending questions, under its own spec: leave out SPEC, --set, --price, "
                "--limit, --fresh, --repeat and the flags that say what is asked, or run the spec without --resume"
            )
        check_resumed(settings.resume, settings.runs_dir)
        plan = _warn(plan_resume(settings.resume, runs_dir=settings.runs_dir or default_runs_dir()))
    if settings.debug and as_json:
        raise SpecError("--debug prints each call as text: leave out --json")
    if settings.debug:
        debug_plan(plan)
        return
    if settings.accept_model_change and not any(planned.asks_model for planned in plan.cells):
        raise SpecError("--accept-model-change: no program of this plan asks a model; leave it out")
    plan = replace(
        plan,
        accept_model_change=settings.accept_model_change,
        accept_refusals=settings.accept_refusals,
        keeps_items=not settings.without_items,
    )
    limits = Limits(
        settings.max_failures,
        settings.max_tokens,
        settings.max_cost,
        settings.max_minutes,
        in_flight=settings.in_flight,
    )
    carriers = Carriers(settings.executor, settings.ray_address, settings.workers, limits)
    try:
        runs, stop, expenses = carry_out(plan, carriers, partial(RunProgress, plan.cells), print_notice)
    except EngineError as error:
        from medexam.experiments.track.runs import track_failed

        send_to_mlflow(track_failed, plan.cells, str(error), tracking_uri=settings.tracking_uri, runs_dir=plan.runs_dir)
        raise
    is_complete = stop is None and all(run.complete for run in runs)
    incomplete, runs_dir = (
        "" if is_complete else _incomplete(" ".join(specs), plan, runs, stop, expenses),
        plan.runs_dir,
    )
    runs = [run for run in runs if not is_repeat(run.folder)]
    # MLflow weighs as much as a hundred thousand questions; it takes their place.
    del plan
    from medexam.experiments.track.runs import track_runs

    print_runs(runs_dir, runs, as_json=as_json)
    send_to_mlflow(track_runs, runs, tracking_uri=settings.tracking_uri, runs_dir=runs_dir)
    if incomplete:
        print_notice(incomplete)
        raise typer.Exit(INCOMPLETE)


def _say_language(specs: list[str], settings: RunSettings, plan: Plan) -> None:
    """Say that a shipped data set is asked in Spanish where the user named no language and there is another."""
    if settings.language or any(change.startswith("dataset") for change in settings.changes):
        return
    datasets = {(planned.cell.dataset.name, planned.cell.dataset.language) for planned in plan.cells}
    for name, language in datasets:
        if [name] == specs and language == "es" and len(datasets) == 1 and "en" in CATALOGUE[name].languages:
            print_notice(f"{name} is asked in Spanish, as the exams were held; for English add --language en")


def show_plan(entries: list[SuiteEntry], settings: PlanSettings, *, as_json: bool) -> None:
    """Say what would run."""
    planned = _plan(entries, settings, only_look=True)
    if as_json:
        print_json(plan_document(planned))
    else:
        print_plan(planned)


def _plan(
    entries: list[SuiteEntry], settings: PlanSettings, *, fresh: bool = False, repeat: int = 0, only_look: bool = False
) -> Plan:
    planned = plan_entries(
        entries, settings.limit, runs_dir=settings.runs_dir, fresh=fresh, repeat=repeat, only_look=only_look
    )
    limit = {} if settings.limit is None else {"dataset.limit": settings.limit}
    if (excess := describe_excess(planned.cells, settings.max_cost)) is not None:
        print_notice(f"warning: {excess}")
    for entry in entries:
        if settings.save is not None:
            save_meaning(entry.document, {**entry.overrides, **limit}, settings.save)
        if not settings.flags.is_empty and len(entries) == 1:
            print_meaning(entry.document, {**entry.overrides, **limit}, settings.save)
    return _warn(planned)


def _warn(planned: Plan) -> Plan:
    """Return the plan, after what its reader should know."""
    for line in plan_lines(planned):
        print_notice(line)
    return planned


def _incomplete(spec: str, plan: Plan, runs: list[StoredRun], stop: Stop | None, expenses: str) -> str:
    """Say in one line why the run is incomplete, what is pending, failed and was spent, and how to continue."""
    pending = {run.folder: run.metrics.failed + run.metrics.missing for run in runs}
    pending |= {planned.folder: len(planned.pending) for planned in plan.cells if planned.folder not in pending}
    folders = [folder for folder, count in pending.items() if count]
    failures = sorted((failure for run in runs for failure in run.failures), key=lambda failure: -failure.questions)
    mostly = f"; most failures were {failures[0].kind}: {failures[0].example}" if failures else ""
    if not folders:
        go_on = "nothing is left to ask"
    elif len(folders) == 1 and folders[0].exists():
        go_on = f"{folders[0].resume_command} asks them"
    else:
        go_on = f"run {spec} again with the same settings to ask them"
    count = count_of(sum(pending.values()), "question")
    money = "" if stop in (None, Stop.INTERRUPTED) else f"; spent: {expenses}"
    return f"{describe_stop(stop)}: {count} still pending{mostly}{money}; {go_on}"
