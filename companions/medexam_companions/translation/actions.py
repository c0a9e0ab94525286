"""What `medexam data translate` does: plan, ask, choose, and write the data set."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from medexam import Limits
from medexam.cli import (
    INCOMPLETE,
    Terminal,
    TerminalProgress,
    describe_stop,
    print_json,
    print_lines,
    print_notice,
    print_tables,
    send_to_mlflow,
)
from medexam.errors import DatasetError
from medexam.experiments import Carriers, Plan, Stop, carry_out, default_runs_dir, describe_answerers
from medexam.specs import BUILT, parse_overrides
from medexam_companions.translation.folder import MODEL_FILES, SELECTION
from medexam_companions.translation.outcome import TranslationOutcome, find_outcome, write_data_set
from medexam_companions.translation.plan import (
    WAYS_OUT,
    SetupRun,
    TranslationPlan,
    TranslationSpec,
    build_spec,
    plan_translation,
)
from medexam_companions.translation.settings import TranslateSettings
from medexam_companions.translation.tables import error_table, selection_table
from medexam_companions.translation.tracking import track_translation

DISCARDED_SHOWN = 10


def translate_set(dataset: str, settings: TranslateSettings, *, as_json: bool) -> None:
    """Translate a data set, or what is pending of it."""
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


def _build_spec(dataset: str, settings: TranslateSettings) -> TranslationSpec:
    return build_spec(
        parse_overrides(settings.overrides),
        dataset={"name": dataset, "language": settings.source, "path": settings.path, "limit": settings.limit},
        target=settings.target,
        setups=tuple(setup.strip() for setup in settings.setups.split(",") if setup.strip()),
        words=settings.words,
    )


def ask_pending(
    plan: "TranslationPlan", runs: "Plan", setups: "Sequence[SetupRun]", max_failures: int | None
) -> Stop | None:
    """Ask the pending texts of `runs`, as every run is asked; why it stopped early."""
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


def _print(outcome: TranslationOutcome, output: tuple[Path, int] | None) -> None:
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
    if target in BUILT.languages:
        return f"Check it: medexam data check {BUILT.name} --path {path.parent}"
    return f"medexam's own commands do not read exams in {target}: the file is for other programs."


def _incomplete(pending: int, stop: Stop | None) -> str:
    return (
        f"medexam: {describe_stop(stop)}: pending replies: {pending}, so the data set is not written; the "
        "same command asks them\n"
    )
