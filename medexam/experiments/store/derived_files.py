"""What is made from a run's answers: scores, and `predictions.parquet`, for pandas, DuckDB or a notebook.

That has every prediction beside its question and gold, with one column for each metric of the user's own.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from medexam.experiments.store.items import write_table
from medexam.experiments.store.run_folder import PARQUET, RunFolder
from medexam.files import open_parquet
from medexam.measures import Benchmark, ScoredRun
from medexam.measures.evidence.kinds import evidence_cells
from medexam.measures.own import load_metric, own_measure, own_scores
from medexam.measures.results import ItemScores, Metrics
from medexam.measures.words import scored_items
from medexam.predictions import Prediction, Reason, Status
from medexam.predictions.prediction import Outcome
from medexam.questions import AnySet
from medexam.specs.experiment import is_entry

_OWN = "own_"
"""Opens the name of a column that holds what a metric of the user's own says of each question."""
_FIELDS = (
    *("question", "program", "model", "answer", "text", "alignment", "reply", "rationale", "prompt_tokens"),
    *("completion_tokens", "latency_s", "finish_reason", "status", "reason"),
)
_AnyBenchmark = Benchmark[Any, Any]


def score_all(
    folder: RunFolder,
    names: Collection[str],
    benchmark: _AnyBenchmark,
    items: AnySet,
    predictions: Mapping[str, Prediction],
    code: Collection[str] = (),
) -> ScoredRun:
    """Compute the benchmark's scores with those of the user's own metrics among them, which have these `names`.

    The metrics in `code` are run; the others keep the scores that the folder holds. Raises `SpecError` if a metric
    fails on a question.
    """
    scored, stored = benchmark.score(items, predictions), read_own_scores(folder) if set(names) - set(code) else {}
    own: dict[str, Mapping[str, float]] = {}
    for name in names:
        if name in code:
            own |= own_scores(name, load_metric(name), items, predictions)
        else:
            own |= {entry: scores for entry, scores in stored.items() if is_entry(entry, name)}
    return replace(scored, metrics=with_own(scored.metrics, benchmark, items, predictions, own), own=own)


def with_own(
    metrics: Metrics,
    benchmark: _AnyBenchmark,
    items: AnySet,
    predictions: Mapping[str, Prediction],
    scores: ItemScores,
) -> Metrics:
    """Return `metrics` with the mean of each of the user's own over the scored questions of `items`."""
    if not scores:
        return metrics
    keys = [item.key for item in scored_items(items.questions, predictions)]
    clusters = {item.key: benchmark.cluster(item) for item in items.questions}
    return metrics.model_copy(
        update={"own": {name: own_measure(metric_scores, keys, clusters) for name, metric_scores in scores.items()}}
    )


def write_parquet(
    folder: RunFolder,
    benchmark: _AnyBenchmark,
    items: AnySet,
    predictions: Mapping[str, Prediction],
    scored: ScoredRun,
) -> None:
    """Write `predictions.parquet` whole or not at all; raises `RunFolderError` where that fails.

    One row for each item that has a prediction, in their order, with the benchmark's columns and one for each metric of
    the user's own.
    """
    import pyarrow as pa

    scores = {f"score_{name}": each for name, each in scored.items.items()}
    scores |= {_OWN + name: each for name, each in scored.own.items()}
    names = {**benchmark.columns, **dict.fromkeys(scores, "double")}
    types = {name: pa.type_for_alias(arrow.strip("[]")) for name, arrow in names.items()}
    schema = pa.schema({name: pa.list_(each) if "[" in names[name] else each for name, each in types.items()})

    def to_row(item: Any, prediction: Prediction) -> dict[str, Any]:
        # The schema takes the columns that it has.
        return {
            **{name: getattr(prediction, name) for name in _FIELDS},
            **dict(zip(("start", "end"), prediction.span or (), strict=False)),
            **evidence_cells(prediction, item),
            **benchmark.row(item, items.golds[item.key], prediction),
            **{name: each.get(item.key) for name, each in scores.items()},
        }

    rows = (to_row(item, predictions[item.key]) for item in items.questions if item.key in predictions)
    write_table(folder.path / PARQUET, rows, schema)


def read_columns(folder: RunFolder, column_filter: Callable[[str], object]) -> dict[str, list[Any]]:
    """Read the columns that `column_filter` takes, and that of questions; none of a damaged, missing or old file."""
    if folder.shard_logs:
        return {}
    try:
        with open_parquet(folder.path / PARQUET) as parquet_file:
            names = [name for name in parquet_file.schema_arrow.names if name == "question" or column_filter(name)]
            columns: dict[str, list[Any]] = parquet_file.read(names).to_pydict() if len(names) > 1 else {}
    except (ValueError, OSError):
        return {}
    return columns


def read_own_scores(folder: RunFolder) -> dict[str, dict[str, float]]:
    """Map each metric of the user's own to its score by question, as the file holds them; empty if it holds none."""
    columns = read_columns(folder, lambda name: name.startswith(_OWN))
    keys = columns.pop("question", [])
    return {
        name.removeprefix(_OWN): {key: score for key, score in zip(keys, scores, strict=True) if score is not None}
        for name, scores in columns.items()
    }


def read_outcomes(folder: RunFolder) -> dict[str, Outcome]:
    """Map each question with a chosen option to how it came out; empty if the file or its columns are not there."""
    names = ("status", "answer", "reason")
    columns = read_columns(folder, names.__contains__)
    if not columns.keys() >= {*names}:
        return {}
    cells = list(zip(*(columns[name] for name in names), strict=True))
    by_cells = {each: Outcome(Status(each[0]), each[1], each[2] and Reason(each[2])) for each in set(cells)}
    return {sys.intern(key): by_cells[each] for key, each in zip(columns["question"], cells, strict=True)}
