"""`predictions.parquet`: every prediction beside its question and gold, for pandas, DuckDB or a notebook.

It is made from the items, what is expected of them, and `predictions.jsonl`; the answers themselves stay in that file.
"""

import sys
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from medexam.errors import RunFolderError
from medexam.experiments.store.run_folder import PARQUET, RunFolder
from medexam.files import whole_file
from medexam.inputs import open_parquet
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
    scores = {f"score_{name}": each for name, each in scored.items.items()}
    scores |= {OWN + name: each for name, each in scored.own.items()}
    names = {**benchmark.columns, **dict.fromkeys(scores, "double")}
    types = {name: pa.type_for_alias(arrow.strip("[]")) for name, arrow in names.items()}
    schema = pa.schema({name: pa.list_(each) if "[" in names[name] else each for name, each in types.items()})
    row_items = (item for item in items.questions if item.key in predictions)
    rows = (
        _row(predictions[item.key])
        | evidence_cells(predictions[item.key], item)
        | benchmark.row(item, items.golds[item.key], predictions[item.key])
        | {name: each.get(item.key) for name, each in scores.items()}
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
    columns = read_columns(folder, lambda name: name.startswith(OWN))
    keys = columns.pop("question", [])
    return {
        name.removeprefix(OWN): {
            key: score for key, score in zip(keys, scores, strict=True) if isinstance(score, float)
        }
        for name, scores in columns.items()
    }


def read_outcomes(folder: RunFolder) -> dict[str, Outcome]:
    """Map each question with a chosen option to how it came out; empty if the file or its columns are not there."""
    names = ("status", "answer", "reason")
    columns = read_columns(folder, names.__contains__)
    if not columns.keys() >= {*names}:
        return {}
    cells = list(zip(*(columns[name] for name in names), strict=True))
    by_cells = {
        (status, answer, reason): Outcome(Status(status), answer, reason and Reason(reason))
        for status, answer, reason in set(cells)
    }
    return {sys.intern(key): by_cells[each] for key, each in zip(columns["question"], cells, strict=True)}


def read_columns(folder: RunFolder, column_filter: Callable[[str], object]) -> dict[str, list[Any]]:
    """Read the column of questions and those that `column_filter` takes; empty if the file is missing or damaged."""
    try:
        with open_parquet(folder.path / PARQUET) as parquet_file:
            names = [name for name in parquet_file.schema_arrow.names if name == "question" or column_filter(name)]
            columns: dict[str, list[Any]] = parquet_file.read(names).to_pydict() if len(names) > 1 else {}
    except (ValueError, OSError):
        return {}
    return columns if all(isinstance(key, str) for key in columns.get("question", [None])) else {}


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
