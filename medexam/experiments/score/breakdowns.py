"""A run's scores by a column of its data: one that the items have, one made of their texts, or one of a file.

It reads answers and data as they are now, and asks no model.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from medexam.datasets.own.columns import Columns
from medexam.datasets.own.tables import CellError, SourceTable, read_file, read_own_table, value_of
from medexam.errors import SpecError
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures import find_benchmark
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.measures.results import Metrics, Scores
from medexam.questions import AnySet
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import CATALOGUE
from medexam.tables import NONE
from medexam.text import is_negated

_MOST_NUMBERS = 20
"""Different numbers in a column from which on its rows are quarters."""
_WITHOUT_SPACES = frozenset({"ja", "zh"})
"""Languages whose texts are measured in characters."""
_MADE: dict[str, Callable[[Any], Any]] = {
    "negation": lambda item: "yes" if is_negated(_stem(item)) else "no",
    "numbers": lambda item: "yes" if re.search(r"\d", _stem(item)) else "no",
    "picture": lambda item: "yes" if getattr(item, "image", None) is not None else "no",
    "length": lambda item: len(_stem(item)) if item.language in _WITHOUT_SPACES else len(_stem(item).split()),
    "options": lambda item: len(item.options),
}
"""What is made of an item's texts."""


def break_down(run: StoredRun, columns: Sequence[str]) -> Metrics:
    """Return the run's metrics with the scores by each column as its first facets.

    A column is one of the run's items, one of the user's own table of questions, or `FILE:COLUMN` of a table with a
    column `question` of keys. Questions without their options have the columns of their exam. Raises `SpecError` if
    there is no such column, and `DatasetError` if the data cannot be read.
    """
    items, predictions, dataset = load_items(run.folder), run.folder.read_predictions(), run.record.cell.dataset
    entry = CATALOGUE.get(dataset.name)
    described = items
    if entry is not None and entry.exam is not None:
        dataset = dataset.model_copy(update={"name": entry.exam})
        described = find_benchmark(dataset).load(dataset.whole).only(run.record.questions)

    def score(keys: Sequence[str]) -> Scores:
        metrics = run.benchmark.score(items.only(keys), predictions).metrics
        return Scores(**{name: getattr(metrics, name) for name in Scores.model_fields})

    facets = run.metrics.by
    by = {
        column: facets[column]
        if column in facets
        else {value: score(keys) for value, keys in _group(_read_column(dataset, described, column)).items()}
        for column in columns
    }
    return run.metrics.model_copy(update={"by": by | {name: facets[name] for name in facets if name not in by}})


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
    if path:
        return _read_file_column(Path(path), name, rows.keys())
    table = read_own_table(dataset) if dataset.kind not in (None, "examples") else None
    if table is not None and column in table.columns:
        return _read_own_column(dataset, items, table, column)
    names += [*_MADE, *(table.columns if table is not None else ())]
    raise SpecError(
        f"--by {column}: the columns are {', '.join(names)}; FILE:COLUMN takes one of a table whose column "
        "`question` holds the keys of questions"
    )


def _read_own_column(dataset: DatasetSpec, items: AnySet, table: SourceTable, name: str) -> dict[str, Any]:
    if items.in_words:
        columns, values = Columns(dataset.columns, table, ("stem",)), dict[str, Any]()
        for row in table.rows:
            with suppress(CellError):
                texts = [columns.text(row.record, "context") or "", columns.needed_text(row.record, "stem")]
                values[columns.key(row.record, texts)] = value_of(row.record, name)
        return {item.key: values.get(item.key) for item in items.questions}
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


def _group(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Map each value, or quarter of many numbers, to the keys of its items; in order, those without a value last."""
    present = {key: value for key, value in values.items() if value is not None and value != ""}
    distinct = set(present.values())
    labels: dict[Any, str] = {value: str(value) for value in distinct}
    is_numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in distinct)
    if is_numeric and len(distinct) > _MOST_NUMBERS:
        # Equal numbers stay together, so that quarters may differ in size.
        cuts = np.quantile(list(present.values()), (0.25, 0.5, 0.75))
        quarters: dict[int, list[Any]] = {}
        for value in distinct:
            quarters.setdefault(int(np.searchsorted(cuts, value)), []).append(value)
        labels = {value: f"{min(part):g} to {max(part):g}" for part in quarters.values() for value in part}
    groups: dict[str, list[str]] = {labels[value]: [] for value in sorted(distinct, key=None if is_numeric else str)}
    for key, value in values.items():
        groups.setdefault(labels[value] if key in present else NONE, []).append(key)
    return groups


def _stem(item: Any) -> str:
    stem: str = item.stem if hasattr(item, "stem") else item.question
    return stem
