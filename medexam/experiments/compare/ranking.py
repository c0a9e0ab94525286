"""Which runs may be ranked by their scores: whole ones of one model, if all of a table asked the same questions.

It decides and says why; tables, pages and the terminal show it.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from medexam.experiments.store.answerers import describe_answerers
from medexam.experiments.store.parquet import read_right
from medexam.experiments.store.stored_run import AnyRun, tell_models_apart
from medexam.metrics.paired.pairs import ALPHA, mcnemar_p


def rivals(runs: Sequence[AnyRun]) -> list[bool]:
    """Return whether each run may be called the best of `runs`; none may if `why_unranked` gives a reason."""
    comparable = why_unranked(runs) is None
    return [comparable and is_rankable(run) for run in runs]


@dataclass(frozen=True)
class Standing:
    """The run with the most right answers, and those that are not told apart from it."""

    first: AnyRun
    level: tuple[AnyRun, ...]
    """In the order of the runs; empty if `first` is better than every other one."""
    is_tested: bool = True
    """Whether the folders say which questions were right; without that no run is shown to be better."""


def find_standing(runs: Sequence[AnyRun]) -> Standing | None:
    """Find who leads among those of `runs` that may be ranked; None for fewer than two, or without a right answer.

    A run is told apart from the first by McNemar's exact test, with p times the number of the others below 0.05
    (Bonferroni). What is right is read from the folders' `predictions.parquet`; without it nothing is tested.
    """
    rankable = [run for run, rival in zip(runs, rivals(runs), strict=True) if rival and run.benchmark.right_or_wrong]
    first = max(rankable, key=lambda run: run.metrics.right or 0, default=None)
    if first is None or len(rankable) < 2 or not first.metrics.right:
        return None
    outcomes = read_right(first.folder)
    level, is_tested = [], bool(outcomes)
    for other in rankable:
        if other is not first:
            other_outcomes = read_right(other.folder)
            is_tested = is_tested and bool(other_outcomes)
            gained = sum(right and other_outcomes.get(key) is False for key, right in outcomes.items())
            lost = sum(not right and other_outcomes.get(key) is True for key, right in outcomes.items())
            if gained <= lost or mcnemar_p(lost, gained) * (len(rankable) - 1) >= ALPHA:
                level.append(other)
    return Standing(first, tuple(level), is_tested)


def is_rankable(run: AnyRun) -> bool:
    """Return whether the run's score is one model's on all of its questions."""
    return run.complete and not run.mixed


def why_unranked(runs: Sequence[AnyRun]) -> str | None:
    """Explain why scores of `runs` are not ranked, with the command that compares them; None if they may be ranked."""
    difference = describe_difference(runs)
    if difference is None:
        return None
    by_dataset: dict[str, list[AnyRun]] = {}
    for run in runs:
        by_dataset.setdefault(run.record.cell.dataset.name, []).append(run)
    commands = [command for group in by_dataset.values() if (command := _compare_command(group)) is not None]
    way_out = "; ".join(commands) or "they share no question: run their specs on the same ones to compare them"
    return f"Scores are not ranked: the runs asked {difference}. {way_out}."


def ranking_notes(runs: Sequence[AnyRun]) -> list[str]:
    """List what a reader must know before ranking `runs` by a table of their scores; usually empty."""
    reason = why_unranked(runs)
    notes = [f"{note[0].upper()}{note[1:]}." for note in (*mixed_notes(runs), *tell_models_apart(runs)[1])]
    return notes if reason is None else [reason, *notes]


def mixed_notes(runs: Sequence[AnyRun]) -> list[str]:
    """List what to say of each run whose answers are of several models, without a full stop; usually empty."""
    return [
        f"the run {run.record.run_id} mixes models and is not ranked: {describe_answerers(run.answerers)}"
        for run in runs
        if run.mixed
    ]


def describe_difference(runs: Sequence[AnyRun]) -> str | None:
    """Describe how questions of `runs` differ, as `different languages (en, es)`; None if all asked the same ones."""
    datasets = [run.record.cell.dataset for run in runs]
    for aspect, values in (
        ("data sets", [dataset.name for dataset in datasets]),
        ("languages", [dataset.language for dataset in datasets]),
        ("forms of the questions", [dataset.label for dataset in datasets]),
    ):
        if len(distinct := dict.fromkeys(values)) > 1:
            return f"different {aspect} ({', '.join(distinct)})"
    return None if len({frozenset(run.record.questions) for run in runs}) == 1 else "different questions"


def _compare_command(runs: Sequence[AnyRun]) -> str | None:
    """Build the command that compares runs of one data set on the questions that all of them asked. None if no such
    question is there.
    """
    shared = len(frozenset.intersection(*(frozenset(run.record.questions) for run in runs)))
    if len(runs) < 2 or not shared:
        return None
    command = shlex.join(["medexam", "compare", *(str(run.folder.path) for run in runs)])
    return f"On the {shared:,} questions that they share, this compares them: {command}"
