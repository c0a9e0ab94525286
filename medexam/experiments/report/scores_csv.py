"""Every score of stored runs as CSV, for R or pandas: a row a run and group of its questions, a column a number."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.counting import COUNTS
from medexam.measures.results import Scores
from medexam.measures.shown import measure_values


def render_scores(runs: Sequence[StoredRun]) -> str:
    """Render the scores over all questions and by each facet, shares as fractions of 1, as `metrics.json` has them."""
    rows = [row for run in runs for row in _rows(run)]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return stream.getvalue()


def _rows(run: StoredRun) -> Iterator[dict[str, Any]]:
    """Yield a row for all questions, whose facet is empty, and one for each group."""
    dataset, own = run.record.cell.dataset, measure_values(run.metrics.own)
    names: dict[str, Any] = {"run": run.record.run_id, "experiment": run.record.cell.name, "program": run.program}
    names |= {"model": run.model, "dataset": dataset.label, "language": dataset.language}
    facets: dict[str, dict[str, Scores]] = {"": {"": run.metrics}, **run.metrics.by}
    for facet, groups in facets.items():
        for group, scores in groups.items():
            counts = {name: getattr(scores, name) for name in COUNTS}
            chances = {f"{name}_chance": each.chance for name, each in scores.measures.items()}
            values = measure_values(scores.measures) | {name: at for name, at in chances.items() if at is not None}
            row = {**names, "facet": facet, "group": group, **counts, **values}
            yield row | ({} if facet else own)


def _plain(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and len(value) > 1 and value[0] in "=+-@\t\r" else value
