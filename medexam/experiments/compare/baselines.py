"""Which stored runs show what passages change: each that retrieves, against the same asking without them.

It reads the runs' predictions and the answer key of their data set; nothing is asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.run_folder import RunFolder
from medexam.experiments.store.stored_run import ExamRun
from medexam.metrics.paired.pairs import count_flips
from medexam.metrics.paired.results import Flips
from medexam.predictions import Prediction
from medexam.questions import ExamSet
from medexam.specs import ProgramSpec

_PASSAGES_ONLY = {
    *("kind", "then", "examples", "context", "retriever", "k", "query", "query_language", "retrieval_prompt"),
    *("rounds", "queries", "keep", "reader", "revision", "least", "unsupported", "cite"),
}
"""Settings that a program with passages may have otherwise than the same program without."""


@dataclass(frozen=True)
class Against:
    """One run that retrieves, beside a baseline."""

    run: ExamRun
    flips: Flips
    passages: Mapping[str, tuple[str, ...]]
    """Key of each question that flipped -> ids of the passages that `run` found, most relevant first."""


@dataclass(frozen=True)
class Contrast:
    """A run without passages, and the runs that add them."""

    baseline: ExamRun
    against: tuple[Against, ...]
    """At least one, in the order of the runs."""


def contrast_runs(runs: Sequence[ExamRun]) -> list[Contrast]:
    """Return every run without passages that is a baseline of another of `runs`, with those runs; usually empty.

    A baseline has the data set, the language and the model of the run that retrieves. Where one of them asks in the
    same way too, the others are left aside. Raises `DatasetError` where the data set cannot be read, lacks a
    question that both were asked, or holds other texts.
    """
    read = cache(RunFolder.read_predictions)
    pairs = [(baseline, run) for run in runs for baseline in _baselines(run, runs)]
    contrasts = []
    for baseline in runs:
        retrieval_runs = [run for other, run in pairs if other is baseline]
        if retrieval_runs:
            before = read(baseline.folder)
            comparisons = (
                _against(baseline, before, run, load_items(run.folder), read(run.folder)) for run in retrieval_runs
            )
            contrasts.append(Contrast(baseline, tuple(comparisons)))
    return contrasts


def _against(
    baseline: ExamRun, before: Mapping[str, Prediction], run: ExamRun, exams: ExamSet, after: Mapping[str, Prediction]
) -> Against:
    baseline_keys = set(baseline.record.questions)
    shared_keys = [question.key for question in exams.questions if question.key in baseline_keys]
    flips = count_flips(shared_keys, exams.golds, before, after)
    passages = {
        question: tuple(passage.id for passage in after[question].passages or ())
        for question in (*flips.right_to_wrong, *flips.wrong_to_right)
    }
    return Against(run, flips, passages)


def _baselines(run: ExamRun, runs: Sequence[ExamRun]) -> list[ExamRun]:
    """Return the runs to compare `run` with; none where it does not retrieve or asks no model."""
    if not run.benchmark.right_or_wrong or run.model is None or run.record.cell.program.retrieval is None:
        return []
    candidates = [other for other in runs if _is_comparable(run, other)]
    return [other for other in candidates if _asks_alike(run, other)] or candidates


def _is_comparable(run: ExamRun, other: ExamRun) -> bool:
    dataset, other_dataset = run.record.cell.dataset, other.record.cell.dataset
    return (
        other.model == run.model
        and not other.mixed
        and other.record.cell.program.retrieval is None
        and (dataset.name, dataset.language) == (other_dataset.name, other_dataset.language)
        and run.record.dataset_fingerprint == other.record.dataset_fingerprint
        and not set(run.record.questions).isdisjoint(other.record.questions)
    )


def _asks_alike(run: ExamRun, other: ExamRun) -> bool:
    """Return whether `other` asks as `run` does behind its passages."""
    program, other_program = run.record.cell.program, other.record.cell.program
    return other_program.kind == program.asked_as and _asking(program) == _asking(other_program)


def _asking(program: ProgramSpec) -> dict[str, Any]:
    """Return the settings that say how a question is asked, whatever stands before it."""
    asking = {"shows_options": program.shows_options, "words": program.words}
    return program.model_dump(exclude=_PASSAGES_ONLY) | asking
