"""Which runs may be ranked by their scores: whole ones, and only if all runs of a table asked the same questions.

It decides and says why; tables, pages and the terminal show it.
"""

import shlex
from collections.abc import Sequence

from medexam.experiments.summary import AnyRun


def rivals(runs: Sequence[AnyRun]) -> list[bool]:
    """Whether each run may be called the best of `runs`; none may if `why_unranked` gives a reason."""
    comparable = why_unranked(runs) is None
    return [comparable and run.complete for run in runs]


def best_places(scores: Sequence[float | None], among: Sequence[bool]) -> list[int]:
    """The places of the highest score `among` the runs that may be ranked, ties included; empty for fewer than two."""
    known = {
        place: score
        for place, (score, rival) in enumerate(zip(scores, among, strict=True))
        if rival and score is not None
    }
    return [place for place, score in known.items() if len(known) > 1 and score == max(known.values())]


def why_unranked(runs: Sequence[AnyRun]) -> str | None:
    """Why the scores of `runs` are not ranked, with the command that compares them; None if they may be ranked."""
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
    """What a reader must know before ranking `runs` by a table of their scores; usually empty."""
    reason = why_unranked(runs)
    return [] if reason is None else [reason]


def describe_difference(runs: Sequence[AnyRun]) -> str | None:
    """How the questions of `runs` differ, as `different languages (en, es)`; None if all asked the same ones."""
    datasets = [run.record.cell.dataset for run in runs]
    for what, values in (
        ("data sets", [dataset.name for dataset in datasets]),
        ("languages", [dataset.language for dataset in datasets]),
        ("forms of the questions", [dataset.label for dataset in datasets]),
    ):
        if len(distinct := dict.fromkeys(values)) > 1:
            return f"different {what} ({', '.join(distinct)})"
    return None if len({frozenset(run.record.questions) for run in runs}) == 1 else "different questions"


def _compare_command(runs: Sequence[AnyRun]) -> str | None:
    """What compares runs of one data set on the questions that all of them asked; None if there is no such question."""
    shared = len(frozenset.intersection(*(frozenset(run.record.questions) for run in runs)))
    if len(runs) < 2 or not shared:
        return None
    command = shlex.join(["medexam", "compare", *(str(run.folder.path) for run in runs)])
    return f"On the {shared:,} questions that they share, this compares them: {command}"
