"""A run's scores by a column of its data, or of a table that names its questions; no model is asked."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from medexam.datasets.own.questions import Columns
from medexam.datasets.own.tables import CellError, SourceTable, read_file, read_own_table, value_of
from medexam.errors import SpecError
from medexam.experiments.store.items import load_items
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures import find_benchmark
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.measures.results import Metrics, Scores
from medexam.questions import AnySet
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import CATALOGUE
from medexam.tables import NONE


def break_down(run: StoredRun, columns: Sequence[str]) -> Metrics:
    """Return the run's metrics with the scores by each column as its first facets.

    A column is one of the run's items, one of the user's own table of questions, or `FILE:COLUMN` of a table with a
    column `question` of keys. Questions without their options have the columns of their exam. Raises `SpecError` if
    there is no such column, and `DatasetError` if the data cannot be read.
    """
    items, predictions, dataset = load_items(run.folder), run.folder.read_predictions(), run.record.cell.dataset
    described, facets = items, run.metrics.by
    if (entry := CATALOGUE.get(dataset.name)) is not None and entry.exam is not None:
        dataset = dataset.model_copy(update={"name": entry.exam})
        described = find_benchmark(dataset).load(dataset.whole).only(run.record.questions)
    by: dict[str, dict[str, Scores]] = {}
    for column in columns:
        groups = {} if column in facets else _group(_read_column(dataset, described, column))
        by[column] = facets.get(column) or {
            value: run.benchmark.score(items.only(keys), predictions).metrics for value, keys in groups.items()
        }
    return run.metrics.model_copy(update={"by": by | {name: facets[name] for name in facets if name not in by}})


def _read_column(dataset: DatasetSpec, items: AnySet, column: str) -> Mapping[str, Any]:
    place = find_stored_benchmark(dataset, in_words=items.in_words).place
    rows = {item.key: {**place(item), "language": item.language} for item in items.questions}
    names = sorted({name for row in rows.values() for name in row})
    if column in names:
        return {key: row.get(column) for key, row in rows.items()}
    path, _, name = column.rpartition(":")
    if path:
        return _read_file_column(Path(path), name, rows)
    table = read_own_table(dataset) if dataset.kind not in (None, "examples") else None
    if table is not None and column in table.columns:
        return _read_own_column(dataset, items, table, column)
    raise SpecError(
        f"--by {column}: the columns are {', '.join([*names, *(table.columns if table is not None else ())])}; "
        "FILE:COLUMN takes one of a table whose column `question` holds the keys of questions"
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


def _read_file_column(path: Path, name: str, keys: Mapping[str, Any]) -> dict[str, Any]:
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
    """Map each value to the keys of its items; in order, those without a value last."""
    values = {key: value if isinstance(value, int | float | None) else str(value) for key, value in values.items()}
    distinct = set(values.values()) - {None, ""}
    is_numeric = all(isinstance(value, int | float) for value in distinct)
    groups: dict[str, list[str]] = {str(value): [] for value in sorted(distinct, key=None if is_numeric else str)}
    for key, value in values.items():
        groups.setdefault(str(value) if value in distinct else NONE, []).append(key)
    return groups
