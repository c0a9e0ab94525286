"""A run's scores by a column of its data: one that the items have, one made of their texts, or one of a file.

It reads answers and data as they are now, and asks no model.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from medexam.benchmarks import find_benchmark
from medexam.benchmarks.registry import find_stored_benchmark
from medexam.datasets.own.tables import SourceTable, read_file, read_own_table, value_of
from medexam.distributions import rate_interval
from medexam.errors import SpecError
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics.tasks import cluster_scores, resample_clusters
from medexam.predictions import Prediction, Status
from medexam.questions import AnySet
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import CATALOGUE
from medexam.tables import NONE, Captioned, Interval, Table, percent, with_interval
from medexam.text import is_negated

_MOST_NUMBERS = 20
"""Different numbers in a column from which on its rows are quarters."""
_WITHOUT_SPACES = frozenset({"ja", "zh"})
"""Languages whose texts are measured in characters."""
_DIGIT = re.compile(r"\d")
_MADE: dict[str, Callable[[Any], Any]] = {
    "negation": lambda item: _yes(is_negated(_stem(item))),
    "numbers": lambda item: _yes(_DIGIT.search(_stem(item)) is not None),
    "picture": lambda item: _yes(getattr(item, "image", None) is not None),
    "length": lambda item: len(_stem(item)) if item.language in _WITHOUT_SPACES else len(_stem(item).split()),
    "options": lambda item: len(item.options),
}
"""What is made of an item's texts."""
_CAPTIONS = {
    "negation": "Yes: a word of the stem's last sentence, such as `not` or `excepto`, may ask for the wrong option.",
    "numbers": "Yes: the stem has a digit.",
    "length": "Words of the stem (characters in Japanese and Chinese), in quarters of the questions.",
}


@dataclass(frozen=True)
class GroupScore:
    """The score of the questions that share a value."""

    value: str
    n: int
    """Scored questions."""
    score: float | None
    """Their mean, a fraction of 1; None if none is scored."""
    interval: Interval | None
    """95 %; None if there is none."""
    unscored: int
    """Questions whose asking failed or that were not asked yet."""


@dataclass(frozen=True)
class Breakdown:
    """One run's scores by the values of one column."""

    column: str
    measure: str
    groups: tuple[GroupScore, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON-ready dictionary."""
        return asdict(self)

    def table(self, title: str, name: str) -> Captioned:
        """Show a row a value; `name` is what the measure is called."""
        unscored = any(group.unscored for group in self.groups)
        rows = tuple(
            (
                group.value,
                str(group.n),
                with_interval(percent(group.score), group.interval),
                *((str(group.unscored),) if unscored else ()),
            )
            for group in self.groups
        )
        headers = (self.column.capitalize(), "n", name, *(("Failed or missing",) if unscored else ()))
        caption = f"Percent of n, in brackets 95 % intervals. {_CAPTIONS.get(self.column, '')}".strip()
        return Table(title, headers, rows), caption


def break_down(run: AnyRun, columns: Sequence[str]) -> list[Breakdown]:
    """Score the run by each column: one of its items, of the user's own table of questions, or `FILE:COLUMN` of a table
    with a column `question` of keys. Questions without their options have the columns of their exam.

    Raises `SpecError` if there is no such column, and `DatasetError` if the data cannot be read.
    """
    items = load_items(run.folder)
    predictions = run.folder.read_predictions()
    measure, scores = _score_items(run, items, predictions)
    dataset = run.record.cell.dataset
    entry = CATALOGUE.get(dataset.name)
    if entry is not None and entry.exam is not None:
        dataset = dataset.model_copy(update={"name": entry.exam})
        described = find_benchmark(dataset).load(dataset.whole).only(run.record.questions)
    else:
        described = items
    return [
        Breakdown(
            column, measure, _score_groups(run, items, _group(items, _read_column(dataset, described, column)), scores)
        )
        for column in columns
    ]


def _score_items(run: AnyRun, items: AnySet, predictions: Mapping[str, Prediction]) -> tuple[str, Mapping[str, float]]:
    """Return the measure that the run is known by, and the score of each item that has one."""
    benchmark = run.benchmark
    if benchmark.right_or_wrong:
        return "accuracy", {
            item.key: float(benchmark.is_right(prediction, items.golds[item.key]))
            for item in items.questions
            if (prediction := predictions.get(item.key)) is not None and prediction.status is not Status.FAILED
        }
    scores_by_measure = benchmark.item_scores(items, predictions)
    measure = next((name for name in (*run.metrics.measures, *scores_by_measure) if name in scores_by_measure), None)
    if measure is None:
        raise SpecError(f"run {run.record.run_id} has only total scores, none for each question: leave --by out")
    return measure, scores_by_measure[measure]


def _read_column(dataset: DatasetSpec, items: AnySet, column: str) -> dict[str, Any]:
    """Map the key of each item to its value; None where it has none."""
    if column in _MADE and all(hasattr(item, "options") or column != "options" for item in items.questions):
        return {item.key: _MADE[column](item) for item in items.questions}
    place = find_stored_benchmark(dataset, in_words=items.in_words).place
    rows = {item.key: {**place(item), "language": item.language} for item in items.questions}
    names = sorted({name for row in rows.values() for name in row})
    if column in names:
        return {key: row.get(column) for key, row in rows.items()}
    path, _, name = column.rpartition(":")
    if not path:
        table = read_own_table(dataset) if dataset.kind == "choice" else None
        if table is not None and column in table.columns:
            return _read_own_column(items, table, column)
        names += [*_MADE, *(table.columns if table is not None else ())]
        raise SpecError(
            f"--by {column}: the columns are {', '.join(names)}; FILE:COLUMN takes one of a table whose column "
            "`question` holds the keys of questions"
        )
    return _read_file_column(Path(path), name, rows.keys())


def _read_own_column(items: AnySet, table: SourceTable, name: str) -> dict[str, Any]:
    rows = {row.number: row.record for row in table.rows}
    for item in items.questions:
        record = rows.get(item.number)
        # A form with several rows a question numbers other things: a value of another question would be silently wrong.
        if not isinstance(record, Mapping) or not any(item.stem in str(value) for value in record.values()):
            raise SpecError(
                f"--by {name}: row {item.number} of {table.source} has no question {item.key}: give FILE:COLUMN, a "
                "table with the questions' keys in a column `question`"
            )
    return {item.key: value_of(rows[item.number], name) for item in items.questions}


def _read_file_column(path: Path, name: str, keys: Any) -> dict[str, Any]:
    table = read_file(path)
    pairs = ((value_of(row.record, "question"), value_of(row.record, name)) for row in table.rows)
    values = {str(key): value for key, value in pairs if value is not None}
    if not values.keys() & keys:
        raise SpecError(
            f"--by {path}:{name}: no row has a `question` of the run and a value of {name} (its columns are "
            f"{', '.join(table.columns)}); a key looks like {next(iter(keys))}"
        )
    return {key: values.get(key) for key in keys}


def _group(items: AnySet, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Map each value, or quarter of many numbers, to the keys of its items; in order, those without a value last."""
    known = {value for value in values.values() if value is not None and value != ""}
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    if numeric and len(known) > _MOST_NUMBERS:
        return _quarters(values)
    groups: dict[str, list[str]] = {str(value): [] for value in sorted(known, key=None if numeric else str)}
    for item in items.questions:
        value = values[item.key]
        groups.setdefault(NONE if value is None or value == "" else str(value), []).append(item.key)
    return groups


def _quarters(values: Mapping[str, Any]) -> dict[str, list[str]]:
    known = {key: value for key, value in values.items() if value is not None}
    cuts = np.quantile(list(known.values()), (0.25, 0.5, 0.75))
    keys_by_quarter: dict[int, list[str]] = {}
    for key, value in known.items():
        # Equal numbers stay together, so that quarters may differ in size.
        keys_by_quarter.setdefault(int(np.searchsorted(cuts, value)), []).append(key)
    groups = {}
    for _, keys in sorted(keys_by_quarter.items()):
        numbers = [known[key] for key in keys]
        groups[f"{min(numbers):g} to {max(numbers):g}"] = keys
    unknown = [key for key in values if key not in known]
    return groups | ({NONE: unknown} if unknown else {})


def _score_groups(
    run: AnyRun, items: AnySet, groups: Mapping[str, Sequence[str]], scores: Mapping[str, float]
) -> tuple[GroupScore, ...]:
    items_by_key = {item.key: item for item in items.questions}

    def find_interval(group_scores: Mapping[str, float]) -> Interval | None:
        if run.benchmark.right_or_wrong:
            return rate_interval(round(sum(group_scores.values())), len(group_scores))
        return resample_clusters(cluster_scores(group_scores, lambda key: run.benchmark.cluster(items_by_key[key])))[0]

    results = []
    for value, keys in groups.items():
        group_scores = {key: scores[key] for key in keys if key in scores}
        n = len(group_scores)
        score = sum(group_scores.values()) / n if n else None
        interval = find_interval(group_scores) if n else None
        results.append(GroupScore(value, n, score, interval, len(keys) - n))
    return tuple(results)


def _stem(item: Any) -> str:
    stem: str = item.stem if hasattr(item, "stem") else item.question
    return stem


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
