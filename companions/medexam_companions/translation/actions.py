"""What `medexam data translate` and `medexam data quality` do: plan, ask, choose, write the data set, and measure."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from medexam import Limits
from medexam.cli import INCOMPLETE, describe_stop, print_json, send_to_mlflow
from medexam.errors import DatasetError, SpecError
from medexam.experiments import (
    Plan,
    Stop,
    Terminal,
    Unbroken,
    carry_out,
    default_runs_dir,
    print_blocks,
    run_paths,
)
from medexam.specs import BUILT, parse_overrides
from medexam_companions.translation.commands import QualitySettings, TranslateSettings
from medexam_companions.translation.outcome import TranslationOutcome, find_outcome, write_data_set
from medexam_companions.translation.plan import (
    QUALITY,
    SELECTION,
    TranslationPlan,
    build_spec,
    load_plan,
    plan_translation,
)
from medexam_companions.translation.quality import plan_back, score_back, score_reference
from medexam_companions.translation.scores import BERT_MODEL, BertScore
from medexam_companions.translation.tables import score_table, selection_tables
from medexam_companions.translation.tracking import track_translation


def translate_set(dataset: str, settings: TranslateSettings, *, as_json: bool) -> None:
    """Translate a data set, or what is pending of it."""
    runs = settings.runs_dir or default_runs_dir()
    spec = build_spec(
        parse_overrides(settings.overrides or ()),
        dataset={"name": dataset, "language": settings.source, "path": settings.path, "limit": settings.limit},
        target=settings.target,
        setups=tuple(setup.strip() for setup in settings.setups.split(",") if setup.strip()),
        words=settings.words,
    )
    plan_again = partial(plan_translation, spec, runs_dir=runs, out=settings.out)
    plan = plan_again()
    plan.save()
    stop = _ask(plan.runs, settings.max_failures)
    plan = plan_again()
    outcome = find_outcome(plan)
    plan.folder.write_json(SELECTION, outcome.document)
    output = write_data_set(plan, outcome) if not outcome.pending else None
    if outcome.mixed:
        models = ", ".join(f"{each['name']} {each['answers']:,}" for each in outcome.document["answered_by"])
        sys.stderr.write(
            f"medexam: warning: more than one model replied ({models}); translate into another folder with --out to "
            "have one\n"
        )
    if as_json:
        print_json({**outcome.document, "folder": str(plan.folder.path), "path": output and str(output[0])})
    else:
        _print(outcome, output)
    send_to_mlflow(track_translation, plan, outcome, tracking_uri=settings.tracking_uri, runs_dir=runs)
    if outcome.pending:
        sys.stderr.write(
            f"medexam: {describe_stop(stop)}: pending replies: {outcome.pending}, so the data set is not written; the "
            "same command asks them\n"
        )
        raise typer.Exit(INCOMPLETE)
    if output is None:
        raise DatasetError(
            f"none of the {len(outcome.candidates):,} questions has a valid translation, so no data set is written; "
            f"read the replies in {plan.folder.path / 'replies'}, then try a stronger model with --set model.name=NAME "
            "or, if replies are cut off, a larger --set model.max_tokens=N, and another --out DIR"
        )


def measure_quality(settings: QualitySettings, folders: Sequence[Path], *, as_json: bool) -> None:
    """Measure translations."""
    runs = settings.runs_dir or default_runs_dir()
    bert = BertScore(settings.bert_model or BERT_MODEL, settings.bert_layer) if settings.bert else None
    documents, pending = [], 0
    for plan in map(load_plan, run_paths(folders, runs)):
        outcome = find_outcome(plan)
        if not outcome.choices:
            raise SpecError(
                f"{plan.folder.path} holds no valid translation yet: finish it with `medexam data translate`, or "
                "translate with another model"
            )
        document, pending_here = _measure(plan, outcome, settings, bert)
        plan.folder.write_json(QUALITY, document)
        documents.append(document)
        pending += pending_here
        send_to_mlflow(track_translation, plan, outcome, tracking_uri=settings.tracking_uri, runs_dir=runs)
    if as_json:
        print_json(documents)
    else:
        print_blocks(Terminal(), [score_table(documents)])
    if pending:
        sys.stderr.write(f"medexam: incomplete: pending replies: {pending}; the same command asks them\n")
        raise typer.Exit(INCOMPLETE)


def _measure(
    plan: TranslationPlan, outcome: TranslationOutcome, settings: QualitySettings, bert: BertScore | None
) -> tuple[dict[str, Any], int]:
    """Measure all that is found of one translation; return how many replies of the way back are still pending too."""
    rows, pending = [], 0
    if settings.back:
        back = plan_back(plan, outcome)
        if back.runs[0].pending:
            _ask(back, settings.max_failures)
            back = plan_back(plan, outcome)
        pending = len(back.runs[0].pending)
        rows += score_back(plan, back, bert)
    if settings.reference:
        rows += score_reference(plan, outcome, bert)
    signatures = dict.fromkeys(line for row in rows for line in row.pop("signatures"))
    document = {
        "source": plan.spec.dataset.language,
        "target": plan.spec.target,
        "signatures": list(signatures),
        "measured": rows,
    }
    return document, pending


def _ask(plan: Plan, max_failures: int | None) -> Stop | None:
    """Ask what is pending, as every run is asked; return why it stopped early."""
    plan = replace(plan, ways_out="or translate into another folder with --out DIR")
    return carry_out(plan, limits=Limits(failures=max_failures))[1]


def _print(outcome: TranslationOutcome, output: tuple[Path, int] | None) -> None:
    console = Terminal()
    print_blocks(console, selection_tables(outcome.document))
    if output is not None:
        path, questions = output
        check = f"Check it: medexam data check {BUILT.name} --path {path.parent}"
        print_blocks(console, [Unbroken(f"{questions:,} questions in {path}."), Unbroken(check)])
