"""`medexam data translate`: an exam in another language, by the engines of this framework."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medexam.cli.options import INCOMPLETE, FailuresOption, JsonOption, PathOption, RunsDirOption, TrackingOption
from medexam.cli.views.output import print_json
from medexam.errors import DatasetError

if TYPE_CHECKING:
    from medexam.experiments.run.runner import Stop
    from medexam.experiments.translate.outcome import TranslationOutcome
    from medexam.experiments.translate.plan import Task, TranslationPlan
    from medexam.experiments.translate.quality import Quality

DISCARDED_SHOWN = 10

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A key of model or dataset, such as model.engine=vllm."),
]


def translate(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="headqa_sample, headqa_v1 or headqa_v2.")],
    source: Annotated[str, typer.Option("--from", metavar="LANGUAGE", help="The language that is read.")] = "es",
    target: Annotated[
        str, typer.Option("--to", metavar="LANGUAGE", help="A code such as en, or a name such as Basque.")
    ] = "en",
    setups: Annotated[str, typer.Option(metavar="A,B", help="Set-ups to choose among.")] = "zero_shot,one_shot,expert",
    settings: SetOption = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Translate at most N questions, spread evenly over the exams.")
    ] = None,
    path: PathOption = None,
    words: Annotated[Path | None, typer.Option(metavar="FILE", help="A YAML file with prompts of your own.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder to write; one of the runs directory by default.")
    ] = None,
    runs_dir: RunsDirOption = None,
    max_failures: FailuresOption = None,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Translate a data set in several ways and keep one valid translation a question; goes on where it stopped.

    Exit codes: 0 the data set is written, 2 no translation is valid, 3 replies are still pending.
    """
    from medexam.experiments.store.answerers import describe_answerers
    from medexam.experiments.store.paths import default_runs_dir
    from medexam.experiments.translate.outcome import find_outcome, write_data_set
    from medexam.experiments.translate.plan import build_spec, plan_translation
    from medexam.specs import parse_overrides

    chosen = tuple(one.strip() for one in setups.split(",") if one.strip())
    about: dict[str, Any] = {"name": dataset, "language": source, "path": path, "limit": limit}
    spec = build_spec(parse_overrides(settings or []), dataset=about, target=target, setups=chosen, words=words)
    runs = runs_dir or default_runs_dir()
    plan = plan_translation(spec, runs_dir=runs, out=out)
    stop = carry_out(plan, plan.tasks, max_failures)
    plan = plan_translation(spec, runs_dir=runs, out=out)
    outcome = find_outcome(plan)
    plan.folder.write_json("selection.json", outcome.document())
    written = write_data_set(plan, outcome) if not outcome.pending else None
    track_outcome(plan, outcome, None, tracking_uri, runs)
    if len(outcome.answered) > 1:
        sys.stderr.write(
            f"medexam: warning: more than one model replied ({describe_answerers(outcome.answered)}); translate into "
            "another folder with --out to have one\n"
        )
    if as_json:
        document = outcome.document() | {"folder": str(plan.folder.path), "path": str(written[0]) if written else None}
        print_json(document)
    else:
        _print(outcome, written)
    if outcome.pending:
        sys.stderr.write(_incomplete(outcome.pending, stop))
        raise typer.Exit(INCOMPLETE)
    if written is None:
        raise DatasetError(
            f"none of the {len(outcome.candidates):,} questions has a valid translation, so no data set is written; "
            f"read the replies in {plan.folder.replies}, then try a stronger model with --set model.name=NAME or, "
            "where replies are cut off, more room with --set model.max_tokens=N and another --out DIR"
        )


def carry_out(plan: "TranslationPlan", tasks: "tuple[Task, ...]", max_failures: int | None) -> "Stop | None":
    """Ask the pending texts of `tasks`, with a bar for each; why it stopped early."""
    from medexam.cli.data.translate_view import TranslationProgress
    from medexam.experiments.translate.plan import check_goes_on
    from medexam.experiments.translate.runner import run_tasks

    check_goes_on(plan)
    plan.folder.create()
    plan.folder.write_json("translation.json", plan.record())
    with TranslationProgress() as progress:
        return run_tasks(tasks, plan.spec.model, plan.folder, progress, max_failures=max_failures)


def track_outcome(
    plan: "TranslationPlan",
    outcome: "TranslationOutcome",
    quality: "Quality | None",
    tracking_uri: str | None,
    runs_dir: Path,
) -> None:
    """Send what came out to MLflow; an outage costs nothing but a line, for the folder is complete."""
    from medexam.errors import TrackingError
    from medexam.experiments.track.store import default_tracking_uri
    from medexam.experiments.translate.tracking import track_translation

    try:
        track_translation(plan, outcome, quality, tracking_uri=tracking_uri or default_tracking_uri(runs_dir))
    except TrackingError as error:
        sys.stderr.write(f"medexam: {error}\n")


def _print(outcome: "TranslationOutcome", written: tuple[Path, int] | None) -> None:
    from rich.console import Console

    from medexam.experiments.translate.tables import error_table, selection_table

    console = Console()
    console.print(error_table(outcome))
    console.print()
    console.print(selection_table(outcome))
    discarded = outcome.selection.discarded
    if discarded:
        more = f" and {len(discarded) - DISCARDED_SHOWN:,} more" if len(discarded) > DISCARDED_SHOWN else ""
        shown = f"Discarded: {', '.join(discarded[:DISCARDED_SHOWN])}{more}"
        console.print(f"{shown}; selection.json lists all.", highlight=False, soft_wrap=True)
    if written is not None:
        path, questions = written
        console.print(f"{questions:,} questions in {path}.", highlight=False, soft_wrap=True)
        console.print(_next_step(path, outcome.target), highlight=False, soft_wrap=True)


def _next_step(path: Path, target: str) -> str:
    from medexam.datasets.catalogue import CATALOGUE

    if target in CATALOGUE["headqa_v2"].languages:
        return f"Check it: medexam data check headqa_v2 --path {path.parent}"
    return f"medexam's own commands do not read exams in {target}: the file is for other programs."


def _incomplete(pending: int, stop: "Stop | None") -> str:
    why = {
        None: "incomplete",
        "interrupted": "interrupted",
        "failures": "stopped early, for as many questions failed as --max-failures allows",
    }[stop]
    return (
        f"medexam: {why}: {pending} replies are still pending, so the data set is not written; run the same again to "
        "ask them\n"
    )
