"""`medexam data translate`: an exam in another language, by the engines of this framework."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.toolkit.commands import (
    INCOMPLETE,
    FailuresOption,
    JsonOption,
    PathOption,
    RunsDirOption,
    Setting,
    TrackingOption,
    default_runs_dir,
    describe_stop,
    print_json,
    print_notice,
    send_to_mlflow,
    settings_as_flags,
)
from medexam.toolkit.errors import DatasetError

if TYPE_CHECKING:
    from medexam.companions.translation.outcome import TranslationOutcome
    from medexam.companions.translation.plan import SetupRun, TranslationPlan, TranslationSpec
    from medexam.toolkit.asking import Stop
    from medexam.toolkit.runs import Plan

DISCARDED_SHOWN = 10


@dataclass(frozen=True)
class TranslateSettings:
    """From which language into which, how, and where to."""

    source: Annotated[str, Setting("The language to translate from.", flag="--from", metavar="LANGUAGE")] = "es"
    target: Annotated[str, Setting("A code such as en, or a name such as Basque.", flag="--to", metavar="LANGUAGE")] = (
        "en"
    )
    setups: Annotated[str, Setting("Set-ups to choose among.", metavar="A,B")] = "zero_shot,one_shot,expert"
    overrides: Annotated[
        tuple[str, ...],
        Setting("A key of model, base or dataset, such as model.engine=vllm.", flag="--set", metavar="KEY=VALUE"),
    ] = ()
    limit: Annotated[int | None, Setting("Translate at most N questions, spread evenly over the exams.", min=1)] = None
    path: PathOption = None
    words: Annotated[Path | None, Setting("A YAML file with prompts of your own.", metavar="FILE")] = None
    out: Annotated[
        Path | None, Setting("The folder to write; one of the runs directory by default.", metavar="DIR")
    ] = None
    runs_dir: RunsDirOption = None
    max_failures: FailuresOption = None
    tracking_uri: TrackingOption = None


@settings_as_flags
def translate(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A data set, as `medexam data list` names it.")],
    settings: TranslateSettings,
    as_json: JsonOption = False,
) -> None:
    """Translate a data set in several ways and keep one valid translation a question; continues where it stopped.

    Exit codes: 0 the data set is written, 2 no translation is valid, 3 replies are still pending.
    """
    from medexam.companions.translation.folder import SELECTION
    from medexam.companions.translation.outcome import find_outcome, write_data_set
    from medexam.companions.translation.plan import plan_translation
    from medexam.companions.translation.tracking import track_translation
    from medexam.toolkit.runs import describe_answerers

    runs = settings.runs_dir or default_runs_dir()
    plan_again = partial(plan_translation, _build_spec(dataset, settings), runs_dir=runs, out=settings.out)
    plan = plan_again()
    stop = ask_pending(plan, plan.runs, plan.setups, settings.max_failures)
    plan = plan_again()
    outcome = find_outcome(plan)
    plan.folder.write_json(SELECTION, outcome.document())
    output = write_data_set(plan, outcome) if not outcome.pending else None
    if outcome.mixed:
        sys.stderr.write(
            f"medexam: warning: more than one model replied ({describe_answerers(outcome.answered)}); translate into "
            "another folder with --out to have one\n"
        )
    if as_json:
        document = outcome.document() | {"folder": str(plan.folder.path), "path": str(output[0]) if output else None}
        print_json(document)
    else:
        _print(outcome, output)
    send_to_mlflow(track_translation, plan, outcome, tracking_uri=settings.tracking_uri, runs_dir=runs)
    if outcome.pending:
        sys.stderr.write(_incomplete(outcome.pending, stop))
        raise typer.Exit(INCOMPLETE)
    if output is None:
        raise DatasetError(
            f"none of the {len(outcome.candidates):,} questions has a valid translation, so no data set is written; "
            f"read the replies in {plan.folder.replies}, then try a stronger model with --set model.name=NAME or, if "
            "replies are cut off, a larger --set model.max_tokens=N, and another --out DIR"
        )


def _build_spec(dataset: str, settings: TranslateSettings) -> "TranslationSpec":
    from medexam.companions.translation.plan import build_spec
    from medexam.toolkit.specs import parse_overrides

    return build_spec(
        parse_overrides(settings.overrides),
        dataset={"name": dataset, "language": settings.source, "path": settings.path, "limit": settings.limit},
        target=settings.target,
        setups=tuple(setup.strip() for setup in settings.setups.split(",") if setup.strip()),
        words=settings.words,
    )


def ask_pending(
    plan: "TranslationPlan", runs: "Plan", setups: "Sequence[SetupRun]", max_failures: int | None
) -> "Stop | None":
    """Ask the pending texts of `runs`, as every run is asked; why it stopped early."""
    from medexam import Limits
    from medexam.companions.translation.folder import MODEL_FILES
    from medexam.companions.translation.plan import WAYS_OUT, check_goes_on
    from medexam.toolkit.progress import TerminalProgress
    from medexam.toolkit.runs import Carriers, carry_out

    check_goes_on(plan)
    plan.folder.create()
    plan.folder.write_json("translation.json", plan.record())
    by_role = {role: [run.cell for run in setups if run.role == role] for role in MODEL_FILES}
    cells = {cell.run_id: cell for role, part in by_role.items() for cell in plan.folder.admit_known(part, role)}
    pending_plan = replace(runs, cells=tuple(cells[cell.run_id] for cell in runs.cells), ways_out=WAYS_OUT)
    carriers = Carriers(limits=Limits(failures=max_failures))
    try:
        return carry_out(pending_plan, carriers, partial(TerminalProgress, pending_plan.cells), print_notice)[1]
    finally:
        for role, part in by_role.items():
            plan.folder.keep_models(part, role)


def _print(outcome: "TranslationOutcome", output: tuple[Path, int] | None) -> None:
    from medexam.companions.translation.tables import error_table, selection_table
    from medexam.toolkit.commands import Terminal, print_lines, print_tables

    console = Terminal()
    print_tables(console, [error_table(outcome)])
    console.print()
    print_tables(console, [selection_table(outcome)])
    discarded = outcome.selection.discarded
    if discarded:
        remainder = f" and {len(discarded) - DISCARDED_SHOWN:,} more" if len(discarded) > DISCARDED_SHOWN else ""
        line = f"Discarded: {', '.join(discarded[:DISCARDED_SHOWN])}{remainder}"
        print_lines(console, [f"{line}; selection.json lists all."])
    if output is not None:
        path, questions = output
        print_lines(console, [f"{questions:,} questions in {path}.", _next_step(path, outcome.target)])


def _next_step(path: Path, target: str) -> str:
    from medexam.toolkit.specs import BUILT

    if target in BUILT.languages:
        return f"Check it: medexam data check {BUILT.name} --path {path.parent}"
    return f"medexam's own commands do not read exams in {target}: the file is for other programs."


def _incomplete(pending: int, stop: "Stop | None") -> str:
    return (
        f"medexam: {describe_stop(stop)}: pending replies: {pending}, so the data set is not written; the "
        "same command asks them\n"
    )
