"""Tables of several runs as one: a matrix of a score by groups of questions, or rows under their runs' names."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from medexam.experiments.compare.ranking import best_places, rivals
from medexam.experiments.report.formatting import NONE, percent, with_interval
from medexam.experiments.report.tables import Table
from medexam.experiments.store.stored_run import ExamRun
from medexam.metrics import Metrics, Scores

Groups = Callable[[Metrics], Mapping[Any, Scores]]
"""The scores of each group of questions, by what groups them."""


def matrix(what: str, runs: Sequence[ExamRun], names: Sequence[str], groups: Groups) -> Table:
    """The accuracy of several runs in each group of questions, one row a group and one column a run.

    `n` is a span where the runs have scored different numbers of the group's questions. The highest accuracy of a row
    is stressed among runs that may be ranked, ties included.
    """
    first = ("n", "Chance")
    rows, best, among = [], set(), rivals(runs)
    found = [groups(run.metrics) for run in runs]
    for row, group in enumerate(sorted({group for each in found for group in each})):
        scores = [each.get(group) for each in found]
        rows.append((str(group), *_size_and_chance(scores), *map(_accuracy, scores)))
        accuracies = [None if score is None else score.accuracy for score in scores]
        best |= {(row, 1 + len(first) + at) for at in best_places(accuracies, among)}
    return Table(f"By {what.lower()}", (what, *first, *names), tuple(rows), best=frozenset(best))


def stack(tables: Sequence[Table], names: Sequence[str]) -> list[Table]:
    """Tables of several runs as one, with the run's name before each row; one for each set of headers."""
    stacked: dict[tuple[str, ...], Table] = {}
    for table, name in zip(tables, names, strict=True):
        rows = tuple((name, *cells) for cells in table.rows)
        before = stacked.get(table.headers)
        if before is None:
            stacked[table.headers] = replace(
                table,
                headers=("Run", *table.headers),
                rows=rows,
                best=frozenset(),
                text_columns=table.text_columns + 1,
            )
        else:
            stacked[table.headers] = replace(before, rows=before.rows + rows)
    return list(stacked.values())


def merge(captions: Sequence[str], names: Sequence[str]) -> str:
    """Captions of several runs as one: the sentences that all of them have, then each run's own under its name."""
    sentences = [re.split(r"(?<=\.) ", caption) for caption in captions]
    shared = [each for each in sentences[0] if all(each in others for others in sentences)] if sentences else []
    own = [
        f"{name}: {' '.join(rest)}"
        for name, each in zip(names, sentences, strict=True)
        if (rest := [sentence for sentence in each if sentence not in shared])
    ]
    return " ".join([*shared, *own])


def _size_and_chance(scores: Sequence[Scores | None]) -> tuple[str, str]:
    known = [score for score in scores if score is not None]
    fewest, most = min(score.n for score in known), max(score.n for score in known)
    chance = next((score.chance_accuracy for score in known if score.chance_accuracy is not None), None)
    return str(most) if fewest == most else f"{fewest} to {most}", percent(chance)


def _accuracy(score: Scores | None) -> str:
    return NONE if score is None else with_interval(percent(score.accuracy), score.accuracy_interval)
