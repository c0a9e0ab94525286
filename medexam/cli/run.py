"""`medexam run` and `medexam plan`: carry out an experiment, or say what carrying it out would do."""

import sys
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medexam.cli.help.completion import complete_spec
from medexam.cli.options import (
    INCOMPLETE,
    FailuresOption,
    JsonOption,
    OverridesOption,
    RayAddressOption,
    RunsDirOption,
    TrackingOption,
    TrustOption,
    check_resumed,
    data_read_once,
    settings_as_flags,
)
from medexam.cli.views.meaning import ShortFlags, add_axes, print_meaning, save_meaning
from medexam.cli.views.output import print_json, send_to_mlflow
from medexam.cli.views.runs import describe_stop, print_notice
from medexam.errors import SpecError
from medexam.experiments.store.paths import default_runs_dir
from medexam.settings import Setting
from medexam.text import count_of, hide_address

if TYPE_CHECKING:
    from medexam.experiments.plan.cells import Plan
    from medexam.experiments.run.spending import Stop
    from medexam.experiments.store.stored_run import AnyRun

SPEC_HELP = "A YAML file, the name of a shipped experiment, suite or data set, or a table of your own questions."
SPEC_PANEL = "What is asked (repeated, or with commas between values: a run of each)"
OptionalSpec = Annotated[
    str | None, typer.Argument(help=SPEC_HELP, metavar="SPEC", show_default=False, autocompletion=complete_spec)
]
OptionalSpecs = Annotated[
    list[str] | None,
    typer.Argument(help=SPEC_HELP, metavar="SPEC...", show_default=False, autocompletion=complete_spec),
]


def _number_of_workers(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if text.isdecimal() and int(text):
        return int(text)
    raise SpecError(f"--workers {text}: give auto, or a number of at least 1")


@dataclass(frozen=True)
class PlanSettings:
    """What is planned, beside the spec."""

    overrides: OverridesOption = ()
    model: Annotated[
        tuple[str, ...],
        Setting(
            "The model: PROVIDER/MODEL, an address, ./FOLDER, FILE.gguf, hf:ORGANISATION/NAME, a profile or an engine.",
            metavar="MODEL",
            panel=SPEC_PANEL,
        ),
    ] = ()
    program: Annotated[
        tuple[str, ...], Setting("The program, such as few_shot or zero_shot-guided.", metavar="KIND", panel=SPEC_PANEL)
    ] = ()
    language: Annotated[
        tuple[str, ...], Setting("The language of the questions, such as es.", metavar="LANGUAGE", panel=SPEC_PANEL)
    ] = ()
    years: Annotated[
        tuple[str, ...],
        Setting("The years of the exams: 2016, 2013,2016 or 2013-2016.", metavar="YEARS", panel=SPEC_PANEL),
    ] = ()
    temperature: Annotated[
        tuple[str, ...],
        Setting("The temperature of the sampling; 0 takes the likeliest token.", metavar="T", panel=SPEC_PANEL),
    ] = ()
    samples: Annotated[
        tuple[str, ...],
        Setting("Ask each question N times and take the commonest answer.", metavar="N", panel=SPEC_PANEL),
    ] = ()
    save: Annotated[
        Path | None, Setting("Write the spec that these flags mean to this file.", metavar="FILE", panel=SPEC_PANEL)
    ] = None
    price: Annotated[
        str | None,
        Setting(
            "US dollars for a million tokens of prompts and for a million of replies, such as 0.15,0.60.",
            metavar="IN,OUT",
        ),
    ] = None
    limit: Annotated[int | None, Setting("Ask at most N questions, spread evenly over the exams.", min=1)] = None
    runs_dir: RunsDirOption = None

    @property
    def changes(self) -> tuple[str, ...]:
        """The keys that are overridden, as KEY=VALUE."""
        price = (f"model.price=[{self.price}]",) if self.price else ()
        return (*price, *self.overrides)

    @property
    def flags(self) -> ShortFlags:
        """What is set by flags of their own."""
        return ShortFlags(self.model, self.program, self.language, self.years, self.temperature, self.samples)

    @property
    def asks_otherwise(self) -> bool:
        """Whether anything changes what a spec asks."""
        return bool(self.changes) or not self.flags.is_empty or self.limit is not None or self.save is not None


@dataclass(frozen=True)
class RunSettings(PlanSettings):
    """How it is carried out, and by whom."""

    resume: Annotated[
        str | None, Setting("Instead of a SPEC: ask the pending questions of this run.", metavar="RUN")
    ] = None
    fresh: Annotated[bool, Setting("Start new runs beside those that exist.")] = False
    debug: Annotated[
        bool, Setting("Ask one pending question of each cell, print every call with its reply, and keep nothing.")
    ] = False
    repeat: Annotated[
        int, Setting("Ask every question N times more, in other orders, to see how far answers vary.", min=0)
    ] = 0
    accept_model_change: Annotated[
        bool, Setting("Continue although the model has changed; every table then says so.")
    ] = False
    accept_refusals: Annotated[
        bool, Setting("Count questions that a server refused in three runs in a row as unanswered.")
    ] = False
    max_failures: FailuresOption = None
    max_tokens: Annotated[
        int | None, Setting("Stop when N tokens of prompts and replies are spent.", metavar="N", min=1)
    ] = None
    max_cost: Annotated[float | None, Setting("Stop when this many US dollars are spent.", metavar="USD", min=0)] = None
    max_minutes: Annotated[float | None, Setting("Stop after that time.", metavar="MINUTES", min=0)] = None
    tracking_uri: TrackingOption = None
    executor: Annotated[
        Literal["local", "ray"], Setting("local: this machine asks. ray: the workers of a cluster do.")
    ] = "local"
    workers: Annotated[
        int | Literal["auto"] | None,
        Setting(
            "local: N processes, or auto; 1 by default. ray: N workers; one on each machine by default.",
            metavar="N|auto",
            parse=_number_of_workers,
        ),
    ] = None
    ray_address: RayAddressOption = None

    def __post_init__(self) -> None:
        """Refuse what only a cluster takes."""
        if self.executor != "ray" and self.ray_address is not None:
            raise typer.BadParameter("needs --executor ray", param_hint="--ray-address")


@settings_as_flags
@data_read_once()
def run(
    settings: RunSettings,
    specs: OptionalSpecs = None,
    as_json: JsonOption = False,
    trust: TrustOption = False,  # noqa: ARG001 - its callback has done it
) -> None:
    """Run an experiment, or continue it where it stopped."""
    if settings.resume is None:
        if not specs:
            raise SpecError("nothing to run: give a SPEC, or a run to continue with --resume RUN")
        plan = _plan(specs, settings, fresh=settings.fresh, repeat=settings.repeat)
        _say_language(specs, settings, plan)
    elif specs or settings.asks_otherwise or settings.fresh or settings.repeat:
        raise SpecError(
            "--resume RUN asks that run's pending questions, under its own spec: leave out SPEC, --set, --price, "
            "--limit, --fresh, --repeat and the flags that say what is asked, or run the spec without --resume"
        )
    else:
        check_resumed(settings.resume, settings.runs_dir)
        from medexam.experiments.plan.planner import plan_resume
        from medexam.experiments.report.current import load_complete
        from medexam.experiments.track.store import named_tracking_uri

        runs_dir = settings.runs_dir or default_runs_dir()
        elsewhere = settings.tracking_uri or named_tracking_uri()
        complete = None if elsewhere else load_complete(settings.resume, runs_dir, print_notice)
        if complete is not None:
            _print(complete.folder.path.parent, [complete], None, as_json=as_json)
            return
        plan = _warn(plan_resume(settings.resume, runs_dir=runs_dir))
    if settings.debug and as_json:
        raise SpecError("--debug prints each call as text: leave out --json")
    if settings.debug:
        from medexam.cli.views.debugging import debug_plan

        debug_plan(plan)
        return
    if settings.accept_model_change and not any(planned.asks_model for planned in plan.cells):
        raise SpecError("--accept-model-change: no program of this plan asks a model; leave it out")
    plan = replace(plan, accept_model_change=settings.accept_model_change, accept_refusals=settings.accept_refusals)
    from medexam.cli.progress.run import TerminalProgress
    from medexam.experiments.entry.carry_out import Carriers, carry_out
    from medexam.experiments.run.spending import Limits
    from medexam.experiments.store.repeats import is_repeat

    limits = Limits(settings.max_failures, settings.max_tokens, settings.max_cost, settings.max_minutes)
    carriers = Carriers(settings.executor, settings.ray_address, settings.workers, limits)
    runs, stop = carry_out(plan, carriers, partial(TerminalProgress, plan.cells), print_notice)
    is_complete = stop is None and all(run.complete for run in runs)
    incomplete, runs_dir = "" if is_complete else _incomplete(" ".join(specs or ()), plan, runs, stop), plan.runs_dir
    runs = [run for run in runs if not is_repeat(run.folder)]
    # MLflow weighs as much as a hundred thousand questions; it takes their place.
    del plan
    from medexam.experiments.track.runs import track
    from medexam.experiments.track.store import named_tracking_uri

    _print(runs_dir, runs, settings.tracking_uri or named_tracking_uri(), as_json=as_json)
    send = partial(track, page=True, only_new=True)
    send_to_mlflow(send, runs, tracking_uri=settings.tracking_uri, runs_dir=runs_dir)
    if incomplete:
        print_notice(incomplete)
        raise typer.Exit(INCOMPLETE)


def _say_language(specs: list[str], settings: RunSettings, plan: "Plan") -> None:
    """Say that a shipped data set is asked in Spanish where the user named no language and there is another."""
    from medexam.specs.catalogue import CATALOGUE

    if settings.language or any(change.startswith("dataset") for change in settings.changes):
        return
    datasets = {(planned.cell.dataset.name, planned.cell.dataset.language) for planned in plan.cells}
    for name, language in datasets:
        if [name] == specs and language == "es" and len(datasets) == 1 and "en" in CATALOGUE[name].languages:
            print_notice(f"{name} is asked in Spanish, as the exams were held; for English add --language en")


@settings_as_flags
def plan(
    specs: Annotated[list[str], typer.Argument(help=SPEC_HELP, metavar="SPEC...", autocompletion=complete_spec)],
    settings: PlanSettings,
    as_json: JsonOption = False,
) -> None:
    """Say what would run: cells, questions, calls and one rendered prompt each."""
    planned = _plan(specs, settings, only_look=True)
    from medexam.cli.views.plan import print_plan
    from medexam.experiments.plan.document import plan_document

    if as_json:
        print_json(plan_document(planned))
    else:
        print_plan(planned)


def _plan(
    specs: list[str], settings: PlanSettings, *, fresh: bool = False, repeat: int = 0, only_look: bool = False
) -> "Plan":
    from medexam.experiments.entry.named_parts import ask_addresses, read_spec
    from medexam.specs import parse_overrides
    from medexam.specs.suite import SuiteEntry, load_entries

    flags, changes = settings.flags, parse_overrides(settings.changes)
    entries = []
    for entry in load_entries(specs, read_spec):
        overrides = {**entry.overrides, **flags.overrides(entry.document), **changes}
        document = add_axes(entry.document, flags.axes())
        entries.append(SuiteEntry(*ask_addresses(document, overrides, only_look=only_look)))
    if settings.save is not None and len(entries) > 1:
        raise SpecError("--save writes one spec: give one SPEC, not a suite, or leave --save out")
    from medexam.experiments.entry.carry_out import plan_entries

    planned = plan_entries(
        entries,
        settings.limit,
        runs_dir=settings.runs_dir,
        fresh=fresh,
        repeat=repeat,
        only_look=only_look,
    )
    for entry in entries if settings.save is not None or not flags.is_empty else ():
        limit = {} if settings.limit is None else {"dataset.limit": settings.limit}
        meaning = {**entry.overrides, **limit}
        if settings.save is not None:
            save_meaning(entry.document, meaning, settings.save)
        if not flags.is_empty:
            print_meaning(entry.document, meaning, settings.save)
    return _warn(planned)


def _warn(planned: "Plan") -> "Plan":
    """Return the plan, after what its reader should know."""
    from medexam.experiments.entry.carry_out import plan_lines

    for line in plan_lines(planned):
        print_notice(line)
    return planned


def _print(runs_dir: Path, runs: "list[AnyRun]", tracking_uri: str | None, *, as_json: bool) -> None:
    from medexam.experiments.store.stored_run import describe_lookups, run_document

    for run in runs:
        if (empty := describe_lookups(run.metrics)) is not None:
            print_notice(f"warning: {run.folder.name}: {empty}")
    if as_json:
        print_json([run_document(run) for run in runs])
    if as_json or not runs:
        return
    from medexam.cli.terminal import Terminal
    from medexam.experiments.report.run_blocks import overview_blocks
    from medexam.experiments.report.run_tables import failure_tables
    from medexam.experiments.report.shown import print_blocks

    print_blocks(Terminal(), [*overview_blocks(runs), *(table for run in runs for table in failure_tables(run))])
    if len({run.record.cell.dataset.label for run in runs}) > 1 and len({run.record.cell.name for run in runs}) > 1:
        from medexam.experiments.report.leaderboard import make_leaderboard

        print_blocks(Terminal(), make_leaderboard(runs).blocks())
    for run in runs:
        if run.note is not None:
            print_notice(f"warning: {run.folder.name}: {run.note}")
        if run.record.stopped is not None:
            print_notice(f"{run.folder.name} {run.record.stopped.describe()}")
    sys.stderr.write(f"Runs are in {runs_dir}.\n")
    sys.stderr.write(f"A page of every question and reply: {sys.argv[0]} report {runs_dir} --html report.html\n")
    if find_spec("mlflow"):
        sys.stderr.write(f"The MLflow UI: {_ui_of(runs_dir, tracking_uri)}\n")


def _ui_of(runs_dir: Path, tracking_uri: str | None) -> str:
    """Return the command that opens the UI; an MLflow server's own address."""
    if tracking_uri is None:
        return f"{sys.argv[0]} ui --runs-dir {runs_dir}"
    address = hide_address(tracking_uri)
    is_server = tracking_uri.startswith(("http://", "https://"))
    return address if is_server else f"{sys.argv[0]} ui --tracking-uri {address}"


def _incomplete(spec: str, plan: "Plan", runs: "list[AnyRun]", stop: "Stop | None") -> str:
    """Say in one line why the run is incomplete, how much is pending, what failed, and which command continues it."""
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
    return f"{describe_stop(stop)}: {count_of(sum(pending.values()), 'question')} still pending{mostly}; {go_on}"
