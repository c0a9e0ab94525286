"""What `medexam data quality` does: measure translations, write a sheet for reviewers, or read filled-in ones."""

import sys
from functools import partial
from pathlib import Path

import typer

from medexam.cli import INCOMPLETE, Terminal, print_json, print_tables, send_to_mlflow
from medexam.datasets import sample_evenly
from medexam.errors import SpecError
from medexam.experiments import default_runs_dir, run_paths
from medexam_companions.audit.agreement import agree
from medexam_companions.translation.actions import ask_pending
from medexam_companions.translation.folder import QUALITY
from medexam_companions.translation.layout import text_of
from medexam_companions.translation.outcome import TranslationOutcome, find_outcome
from medexam_companions.translation.plan import TranslationPlan, load_plan
from medexam_companions.translation.quality import Quality, count_terms, measure_back, measure_reference, plan_back
from medexam_companions.translation.scores import BERT_MODEL, BertScore
from medexam_companions.translation.settings import QualitySettings
from medexam_companions.translation.tables import agreement_table, review_table, score_table, terms_table
from medexam_companions.translation.tracking import track_translation
from medexam_companions.translation.writing import ASPECTS, SHEET_QUESTIONS, read_reviews, write_sheet


def measure_quality(settings: QualitySettings, folders: list[Path] | None, *, as_json: bool) -> None:
    """Measure translations, or write a sheet or read filled-in ones."""
    if settings.reviews:
        _read_reviews(settings.reviews, as_json=as_json)
        return
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
        scores = [score_table(qualities)] if any(entry.measured for entry in qualities) else []
        print_tables(Terminal(), [*scores, terms_table(qualities)])
    for plan, outcome in zip(plans, outcomes, strict=True):
        send_to_mlflow(track_translation, plan, outcome, tracking_uri=settings.tracking_uri, runs_dir=runs)
    if pending:
        sys.stderr.write(f"medexam: incomplete: pending replies: {pending}; the same command asks them\n")
        raise typer.Exit(INCOMPLETE)


def _measure(
    plan: "TranslationPlan", outcome: "TranslationOutcome", settings: QualitySettings, bert: "BertScore | None"
) -> tuple[Quality, int]:
    """Measure all that is found of one translation; return how many replies of the way back are still pending too."""
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


def _check_any(plan: TranslationPlan, outcome: TranslationOutcome) -> None:
    if not outcome.selection.choices:
        raise SpecError(
            f"{plan.folder.path} holds no valid translation yet: finish it with `medexam data translate`, or translate "
            "with another model"
        )


def _write_sheet(plans: list[TranslationPlan], path: Path, seed: int) -> None:
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
    print_tables(Terminal(), [review_table(reviews), *([agreement_table(agreements)] if agreements else [])])
