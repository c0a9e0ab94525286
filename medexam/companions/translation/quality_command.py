"""`medexam data quality`: how good translations are, by machine and by people."""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.companions.translation.translate_command import ask_pending
from medexam.toolkit.commands import (
    INCOMPLETE,
    FailuresOption,
    JsonOption,
    RunsDirOption,
    Setting,
    TrackingOption,
    default_runs_dir,
    print_json,
    print_tables,
    refuse,
    refuse_others,
    run_paths,
    send_to_mlflow,
    settings_as_flags,
)
from medexam.toolkit.errors import SpecError

if TYPE_CHECKING:
    from medexam.companions.translation.outcome import TranslationOutcome
    from medexam.companions.translation.plan import TranslationPlan
    from medexam.companions.translation.quality import Quality
    from medexam.companions.translation.scores import BertScore


@dataclass(frozen=True)
class QualitySettings:
    """What is measured of translations, or which sheet is written or read."""

    back: Annotated[
        bool, Setting("Translate back with the same model, for the round trip.", flag="--back/--no-back")
    ] = True
    back_setup: Annotated[str, Setting("The setup with the prompt for translating back.", metavar="SETUP")] = "expert"
    only_selected: Annotated[bool, Setting("Translate back only the chosen translations.")] = False
    reference: Annotated[bool, Setting("Compare with the data set's own translation, if it has one.")] = False
    bert: Annotated[bool, Setting("Compute BERTScore beside BLEU.", flag="--bert/--no-bert")] = True
    bert_model: Annotated[str | None, Setting("A folder or a hub id.", metavar="MODEL")] = None
    bert_layer: Annotated[int | None, Setting("The layer; for known hub ids that of bert-score by default.", min=1)] = (
        None
    )
    sheet: Annotated[
        Path | None, Setting("Write a CSV sheet of 60 questions for reviewers and stop.", metavar="FILE")
    ] = None
    seed: Annotated[int, Setting("Chooses the questions of --sheet.")] = 0
    reviews: Annotated[
        tuple[Path, ...], Setting("A filled-in sheet; may be repeated. Reads them and stops.", metavar="FILE")
    ] = ()
    runs_dir: RunsDirOption = None
    max_failures: FailuresOption = None
    tracking_uri: TrackingOption = None

    @property
    def scored(self) -> bool:
        """Whether there are texts to compare."""
        return self.back or self.reference


@settings_as_flags
def quality(
    context: typer.Context,
    settings: QualitySettings,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER...", help="Folders that `medexam data translate` made.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure round trip, reference scores and lost terms of translations, or write a sheet or read filled-in ones."""
    _check(context, settings, folders)
    if settings.reviews:
        _read_reviews(settings.reviews, as_json=as_json)
        return
    from medexam.companions.translation.folder import QUALITY
    from medexam.companions.translation.outcome import find_outcome
    from medexam.companions.translation.plan import load_plan
    from medexam.companions.translation.scores import BERT_MODEL, BertScore
    from medexam.companions.translation.tables import score_table, terms_table
    from medexam.companions.translation.tracking import track_translation

    runs = settings.runs_dir or default_runs_dir()
    plans = [load_plan(path) for path in run_paths(folders or [], runs)]
    if settings.sheet is not None:
        _write_sheet(plans, settings.sheet, settings.seed)
        return
    scored = settings.bert and settings.scored
    bert = BertScore(settings.bert_model or BERT_MODEL, settings.bert_layer) if scored else None
    qualities, outcomes, pending = [], [], 0
    for plan in plans:
        outcome = find_outcome(plan)
        entry, pending_count = _measure(plan, outcome, settings, bert)
        plan.folder.write_json(QUALITY, entry.document())
        qualities.append(entry)
        outcomes.append(outcome)
        pending += pending_count
    if as_json:
        print_json([entry.document() for entry in qualities])
    else:
        from medexam.toolkit.commands import Terminal

        scores = [score_table(qualities)] if any(entry.measured for entry in qualities) else []
        print_tables(Terminal(), [*scores, terms_table(qualities)])
    for plan, outcome in zip(plans, outcomes, strict=True):
        send_to_mlflow(track_translation, plan, outcome, tracking_uri=settings.tracking_uri, runs_dir=runs)
    if pending:
        sys.stderr.write(f"medexam: incomplete: pending replies: {pending}; the same command asks them\n")
        raise typer.Exit(INCOMPLETE)


def _check(context: typer.Context, settings: QualitySettings, folders: list[Path] | None) -> None:
    """Raise `SpecError` for an option that would be ignored, and without a folder to look at."""
    if settings.reviews:
        refuse_others(context, {"reviews", "as_json"}, "--reviews reads filled-in sheets alone: leave it out")
        return
    if not folders:
        raise SpecError("name a FOLDER that `medexam data translate` made, or sheets to read with --reviews FILE")
    if settings.sheet is not None:
        options = {"folders", "sheet", "seed", "runs_dir"}
        refuse_others(context, options, "--sheet writes a sheet for reviewers and stops: leave it out")
        return
    refuse(context, {"seed"}, "it chooses the questions of a sheet: name the sheet with --sheet FILE")
    if not settings.back:
        asking = {"back_setup", "only_selected", "max_failures"}
        refuse(context, asking, "it is for translating back, and --no-back turns that off: leave one of them out")
    if not settings.bert:
        refuse(
            context,
            {"bert_model", "bert_layer"},
            "it is for BERTScore, and --no-bert turns that off: leave one of them out",
        )
    if not settings.scored:
        scoring = {"bert_model", "bert_layer"} | ({"bert"} if settings.bert else set())
        refuse(context, scoring, "nothing is scored with --no-back: leave it out, or add --reference")


def _measure(
    plan: "TranslationPlan", outcome: "TranslationOutcome", settings: QualitySettings, bert: "BertScore | None"
) -> "tuple[Quality, int]":
    """Measure all that is found of one translation; return how many replies of the way back are still pending too."""
    from medexam.companions.translation.quality import (
        Quality,
        count_terms,
        measure_back,
        measure_reference,
        plan_back,
    )

    _check_any(plan, outcome)
    rows, signatures, pending = [], [], 0
    if settings.back:
        plan_again = partial(plan_back, plan, outcome, settings.back_setup, only_selected=settings.only_selected)
        runs, setups = plan_again()
        if any(run.cell.pending for run in setups.values()):
            ask_pending(plan, runs, tuple(setups.values()), settings.max_failures)
            _, setups = plan_again()
        pending = sum(len(run.cell.pending) for run in setups.values())
        measured, signed = measure_back(plan, outcome, setups, bert)
        rows += measured
        signatures += signed
    if settings.reference:
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


def _write_sheet(plans: "list[TranslationPlan]", path: Path, seed: int) -> None:
    from medexam.companions.translation.layout import text_of
    from medexam.companions.translation.outcome import find_outcome
    from medexam.companions.translation.writing import SHEET_QUESTIONS, write_sheet
    from medexam.toolkit.data import sample_evenly

    if len(plans) > 1:
        raise SpecError("--sheet takes one translation at a time: name one folder")
    (plan,) = plans
    outcome = find_outcome(plan)
    _check_any(plan, outcome)
    candidates = [question for question in plan.exam_set.questions if question.key in outcome.texts]
    questions = sample_evenly(candidates, SHEET_QUESTIONS, seed)
    write_sheet(path, [text_of(question) for question in questions], outcome.texts)
    sys.stderr.write(
        f"{len(questions)} questions in {path}: give each reviewer a copy under a name of its own, and read them with "
        "--reviews\n"
    )


def _read_reviews(paths: tuple[Path, ...], *, as_json: bool) -> None:
    from medexam.companions.audit.agreement import agree
    from medexam.companions.translation.writing import ASPECTS, read_reviews

    reviews = read_reviews(paths)
    agreements = [
        agreement
        for aspect in ASPECTS
        for agreement in agree(aspect, {review.reviewer: review.marks[aspect] for review in reviews})
    ]
    if as_json:
        document = {
            "reviews": [
                {"reviewer": review.reviewer, "means": {aspect: review.mean(aspect) for aspect in review.marks}}
                for review in reviews
            ],
            "agreement": [
                {
                    "aspect": agreement.aspect,
                    "reviewers": agreement.raters,
                    "n": agreement.n,
                    "same": agreement.same,
                    "kappa": agreement.kappa,
                }
                for agreement in agreements
            ],
        }
        print_json(document)
        return
    from medexam.companions.translation.tables import agreement_table, review_table
    from medexam.toolkit.commands import Terminal

    print_tables(Terminal(), [review_table(reviews), *([agreement_table(agreements)] if agreements else [])])
