"""`predictions.parquet`: every prediction beside its question and gold, for pandas, DuckDB or a notebook.

It is made from the items, what is expected of them, and `predictions.jsonl`; the answers themselves stay in that file.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from medexam.errors import RunFolderError
from medexam.experiments.store.run_folder import PARQUET, RunFolder
from medexam.files import whole_file
from medexam.inputs import UnreadableError, open_parquet, parquet_rows
from medexam.measures import Benchmark, ScoredRun
from medexam.measures.evidence.kinds import evidence_cells
from medexam.predictions import Prediction, Reason, Status
from medexam.predictions.core import Outcome
from medexam.questions import AnySet

OWN = "own_"
"""Opens the name of a column that holds what a metric of the user's own says of each question."""
ROW_GROUP = 2048
"""Rows that are held in memory and written at once."""


def write_parquet(
    folder: RunFolder,
    benchmark: Benchmark[Any, Any],
    items: AnySet,
    predictions: Mapping[str, Prediction],
    scored: ScoredRun,
) -> None:
    """Write `predictions.parquet` whole or not at all; raises `RunFolderError` where that fails.

    One row for each item that has a prediction, in their order, with the benchmark's columns and one for each metric of
    the user's own.
    """
    schema = pa.schema([*benchmark.columns(scored.items), *((OWN + name, pa.float64()) for name in scored.own)])
    row_items = (item for item in items.questions if item.key in predictions)
    rows = (
        _row(predictions[item.key])
        | evidence_cells(predictions[item.key], item)
        | benchmark.row(item, items.golds[item.key], predictions[item.key], scored.items)
        | {OWN + name: scores.get(item.key) for name, scores in scored.own.items()}
        for item in row_items
    )
    target = folder.path / PARQUET
    try:
        with whole_file(target) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:
            while batch := list(islice(rows, ROW_GROUP)):
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
    except OSError as error:
        raise RunFolderError(f"cannot write {target}: {error}") from None


def read_own_scores(folder: RunFolder) -> dict[str, dict[str, float]]:
    """Map each metric of the user's own to its score by question, as the file holds them; empty if it holds none."""
    rows = read_rows(folder, lambda name: name.startswith(OWN))
    names = [name for name in rows[0] if name.startswith(OWN)] if rows else []
    return {
        name.removeprefix(OWN): {row["question"]: row[name] for row in rows if isinstance(row[name], float)}
        for name in names
    }


def read_outcomes(folder: RunFolder) -> dict[str, Outcome]:
    """Map each question with a chosen option to how it came out; empty if the file or its columns are not there."""
    by_cells: dict[tuple[object, ...], Outcome] = {}
    outcomes = {}
    names = ("status", "answer", "reason")
    for row in read_rows(folder, names.__contains__):
        if not row.keys() >= {*names}:
            return {}
        cells = tuple(row[name] for name in names)
        if cells not in by_cells:
            by_cells[cells] = Outcome(Status(row["status"]), row["answer"], row["reason"] and Reason(row["reason"]))
        outcomes[row["question"]] = by_cells[cells]
    return outcomes


def read_rows(folder: RunFolder, column_filter: Callable[[str], object] = len) -> list[dict[str, Any]]:
    """Read the rows of the file, with their question and the columns that `column_filter` takes, all by default.

    Empty if the file is missing or damaged.
    """
    try:
        with open_parquet(folder.path / PARQUET) as parquet_file:
            names = [name for name in parquet_file.schema_arrow.names if name == "question" or column_filter(name)]
            rows = list(parquet_rows(parquet_file, names)) if len(names) > 1 else []
    except UnreadableError:
        return []
    return rows if all(isinstance(row.get("question"), str) for row in rows) else []


def _row(prediction: Prediction) -> dict[str, Any]:
    """Return what a prediction says, whatever was asked; a schema takes the columns that it has."""
    start, end = prediction.span or (None, None)
    field_names = (
        *("question", "program", "model", "answer", "text", "alignment", "reply", "rationale", "prompt_tokens"),
        *("completion_tokens", "latency_s", "finish_reason"),
    )
    return {
        **{name: getattr(prediction, name) for name in field_names},
        "status": prediction.status.value,
        "reason": prediction.reason.value if prediction.reason else None,
        "start": start,
        "end": end,
    }
