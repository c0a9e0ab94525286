"""Every score of stored runs as CSV, for R or pandas: a row a run and group of its questions, a column a number."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from medexam.experiments.store.stored_run import StoredRun
from medexam.metrics.results import Scores
from medexam.tables import Number, Table

_COUNTS = ("selected", "n", "right", "wrong", "unanswered", "failed", "missing")


def render_scores(runs: Sequence[StoredRun]) -> str:
    """Render the scores over all questions and by each facet, shares as fractions of 1, as `metrics.json` has them."""
    rows = [row for run in runs for row in _rows(run)]
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    table = Table("", names, tuple(tuple(row.get(name, "") for name in names) for row in rows))
    stream = io.StringIO()
    headers, lines = table.columns()
    csv.writer(stream, lineterminator="\n").writerows([headers, *lines])
    return stream.getvalue()


def _rows(run: StoredRun) -> Iterator[dict[str, str]]:
    """Yield a row for all questions, whose facet is empty, and one for each group."""
    dataset = run.record.cell.dataset
    names = {"run": run.record.run_id, "experiment": run.record.cell.name, "program": run.program}
    names |= {"model": run.model or "", "dataset": dataset.label, "language": dataset.language}
    groups: list[tuple[str, str, Scores]] = [("", "", run.metrics)]
    groups += [(facet, group, scores) for facet, parts in run.metrics.by.items() for group, scores in parts.items()]
    for facet, group, scores in groups:
        measures = scores.measures | (run.metrics.own if not facet else {})
        yield {
            **names,
            "facet": facet,
            "group": group,
            **{name: _text(getattr(scores, name)) for name in _COUNTS},
            **{name: Number("", measure.value, measure.interval) for name, measure in measures.items()},
            **{
                f"{name}_chance": Number("", measure.chance)
                for name, measure in measures.items()
                if measure.chance is not None
            },
        }


def _text(count: Any) -> str:
    return "" if count is None else str(count)
