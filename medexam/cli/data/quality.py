"""`medexam data quality`: how good translations are, by machine and by people."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.cli.data.translate import carry_out
from medexam.cli.options import (
    INCOMPLETE,
    FailuresOption,
    JsonOption,
    RunsDirOption,
    TrackingOption,
    refuse,
    refuse_others,
)
from medexam.cli.views.output import print_json
from medexam.errors import SpecError

if TYPE_CHECKING:
    from medexam.experiments.translate.outcome import TranslationOutcome
    from medexam.experiments.translate.plan import TranslationPlan
    from medexam.experiments.translate.quality import Quality
    from medexam.experiments.translate.scores import BertScore


def quality(
    context: typer.Context,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER...", help="Folders that `medexam data translate` made.", show_default=False),
    ] = None,
    back: Annotated[
        bool, typer.Option("--back/--no-back", help="Translate back with the same model, for the round trip.")
    ] = True,
    back_setup: Annotated[str, typer.Option(metavar="SETUP", help="The words that ask for the way back.")] = "expert",
    only_selected: Annotated[
        bool, typer.Option("--only-selected", help="Translate back the chosen translations alone.")
    ] = False,
    reference: Annotated[
        bool, typer.Option("--reference", help="Compare with the data set's own translation, where it has one.")
    ] = False,
    bert: Annotated[bool, typer.Option("--bert/--no-bert", help="Compute BERTScore beside BLEU.")] = True,
    bert_model: Annotated[str | None, typer.Option(metavar="MODEL", help="A folder or a hub id.")] = None,
    bert_layer: Annotated[int | None, typer.Option(min=1, help="Which layer; for known hub ids bert-score's.")] = None,
    sheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a CSV sheet of 60 questions for reviewers and stop.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses the questions of --sheet.")] = 0,
    reviews: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A filled-in sheet; may be repeated. Reads them and stops."),
    ] = None,
    runs_dir: RunsDirOption = None,
    max_failures: FailuresOption = None,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Round trip, reference scores and lost terms of translations, or a sheet for reviewers and what came back."""
    _check_options(context, folders, sheet, reviews, back=back, bert=bert, scored=back or reference)
    if reviews:
        _read_reviews(reviews, as_json=as_json)
        return
    from medexam.experiments.store.paths import default_runs_dir, run_paths
    from medexam.experiments.translate.plan import plan_stored

    runs = runs_dir or default_runs_dir()
    plans = [plan_stored(path) for path in run_paths(folders or [], runs)]
    if sheet is not None:
        _write_sheet(plans, sheet, seed)
        return
    scorer = _load_bert(bert_model, bert_layer) if bert and (back or reference) else None
    found, pending = [], 0
    for plan in plans:
        setup = back_setup if back else None
        measured, left = _measure(plan, setup, scorer, max_failures, only_selected=only_selected, reference=reference)
        plan.folder.write_json("quality.json", measured.document())
        found.append(measured)
        pending += left
        _track(plan, measured, tracking_uri, runs)
    if as_json:
        print_json([one.document() for one in found])
    else:
        _print(found)
    if pending:
        sys.stderr.write(f"medexam: incomplete: {pending} replies are still pending; run the same again to ask them\n")
        raise typer.Exit(INCOMPLETE)


def _check_options(
    context: typer.Context,
    folders: list[Path] | None,
    sheet: Path | None,
    reviews: list[Path] | None,
    *,
    back: bool,
    bert: bool,
    scored: bool,
) -> None:
    """Raises `SpecError` for an option that would be ignored, and without a folder to look at."""
    if reviews:
        refuse_others(context, {"reviews", "as_json"}, "--reviews reads filled-in sheets alone: leave it out")
        return
    if not folders:
        raise SpecError("name a FOLDER that `medexam data translate` made, or sheets to read with --reviews FILE")
    if sheet is not None:
        kept = {"folders", "sheet", "seed", "runs_dir"}
        refuse_others(context, kept, "--sheet writes a sheet for reviewers and stops: leave it out")
        return
    refuse(context, {"seed"}, "it chooses the questions of a sheet: name the sheet with --sheet FILE")
    if not back:
        asking = {"back_setup", "only_selected", "max_failures"}
        refuse(context, asking, "it is for the way back: leave it out, or --no-back")
    if not bert:
        refuse(context, {"bert_model", "bert_layer"}, "it is for BERTScore: leave it out, or --no-bert")
    if not scored:
        scoring = {"bert", "bert_model", "bert_layer"} if bert else {"bert_model", "bert_layer"}
        refuse(context, scoring, "nothing is scored with --no-back: leave it out, or add --reference")


def _measure(
    plan: "TranslationPlan",
    back_setup: str | None,
    bert: "BertScore | None",
    max_failures: int | None,
    *,
    only_selected: bool,
    reference: bool,
) -> "tuple[Quality, int]":
    """All that is found of one translation, and how many replies of the way back are still pending."""
    from medexam.experiments.translate.outcome import find_outcome
    from medexam.experiments.translate.quality import (
        Quality,
        count_terms,
        measure_back,
        measure_reference,
        plan_back,
    )

    outcome = find_outcome(plan)
    _check_any(plan, outcome)
    rows, signatures, pending = [], [], 0
    if back_setup is not None:
        tasks = plan_back(plan, outcome, back_setup, only_selected=only_selected)
        if any(task.pending for task in tasks.values()):
            carry_out(plan, tuple(tasks.values()), max_failures)
            tasks = plan_back(plan, outcome, back_setup, only_selected=only_selected)
        pending = sum(len(task.pending) for task in tasks.values())
        measured, signed = measure_back(plan, outcome, tasks, bert)
        rows += measured
        signatures += signed
    if reference:
        measured, signed = measure_reference(plan, outcome, bert)
        rows += measured
        signatures += signed
    terms = count_terms(plan, outcome)
    unique = tuple(dict.fromkeys(signatures))
    return Quality(outcome.source, outcome.target, tuple(rows), terms, unique), pending


def _check_any(plan: "TranslationPlan", outcome: "TranslationOutcome") -> None:
    if not outcome.selection.choices:
        raise SpecError(
            f"{plan.folder.path} holds no valid translation yet: finish it with `medexam data translate`, or translate "
            "with another model"
        )


def _load_bert(model: str | None, layer: int | None) -> "BertScore":
    from medexam.experiments.translate.scores import BERT_MODEL, BertScore

    return BertScore(model or BERT_MODEL, layer)


def _track(plan: "TranslationPlan", measured: "Quality", tracking_uri: str | None, runs_dir: Path) -> None:
    from medexam.cli.data.translate import track_outcome
    from medexam.experiments.translate.outcome import find_outcome

    track_outcome(plan, find_outcome(plan), measured, tracking_uri, runs_dir)


def _print(found: "list[Quality]") -> None:
    from rich.console import Console

    from medexam.experiments.translate.tables import score_table, terms_table

    console = Console()
    if any(one.measured for one in found):
        console.print(score_table(found))
    console.print(terms_table(found))


def _write_sheet(plans: "list[TranslationPlan]", path: Path, seed: int) -> None:
    from medexam.datasets import sample_evenly
    from medexam.datasets.translate import text_of, write_sheet
    from medexam.datasets.translate.reviews import SHEET_QUESTIONS
    from medexam.experiments.translate.outcome import find_outcome

    if len(plans) > 1:
        raise SpecError("--sheet takes one translation at a time: name one folder")
    (plan,) = plans
    outcome = find_outcome(plan)
    _check_any(plan, outcome)
    chosen = [question for question in plan.exam_set.questions if question.key in outcome.texts]
    questions = sample_evenly(chosen, SHEET_QUESTIONS, seed)
    write_sheet(path, [text_of(question) for question in questions], outcome.texts)
    sys.stderr.write(
        f"{len(questions)} questions in {path}: give each reviewer a copy under a name of its own, and read them with "
        "--reviews\n"
    )


def _read_reviews(paths: list[Path], *, as_json: bool) -> None:
    from medexam.datasets.translate import read_reviews
    from medexam.datasets.translate.reviews import ASPECTS
    from medexam.metrics.raters import agree

    reviews = read_reviews(paths)
    agreements = [
        each for aspect in ASPECTS for each in agree(aspect, {one.reviewer: one.marks[aspect] for one in reviews})
    ]
    if as_json:
        document = {
            "reviews": [
                {"reviewer": one.reviewer, "means": {aspect: one.mean(aspect) for aspect in one.marks}}
                for one in reviews
            ],
            "agreement": [
                {"aspect": each.aspect, "reviewers": each.raters, "n": each.n, "same": each.same, "kappa": each.kappa}
                for each in agreements
            ],
        }
        print_json(document)
        return
    from rich.console import Console

    from medexam.experiments.translate.tables import agreement_table, review_table

    console = Console()
    console.print(review_table(reviews))
    if agreements:
        console.print(agreement_table(agreements))
