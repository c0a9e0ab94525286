"""Tables as the terminal draws them, and how runs are called in them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from medexam.benchmarks.paired import TableRun
from medexam.errors import SpecError
from medexam.experiments.compare.ranking import find_standing
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.own_tables import own_tables
from medexam.experiments.store.stored_run import AnyRun
from medexam.specs.identity import distinct_labels
from medexam.tables import NONE, Captioned, Table

BOLD = "Bold: better in accuracy than every other run, by McNemar's test adjusted for their number."
LONG_NAME = 18
"""A longer name of a model breaks in the papers' tables."""
LEAST_NAME = 8
"""Characters that a name has in the narrowest terminal."""
GUTTER = 2
"""Characters between the columns of a table."""
WORDS = 80
"""Characters that a line of a title or caption may have above a narrower table."""
EDGES = 3
"""Characters beside the columns of a table that has edges."""


class TerminalTable:
    """A table for `Console.print`. In a narrow terminal intervals move below their numbers, and long names break.

    If names would break inside a word, the edges go first, and then the columns that are the same in every row, which
    the title names.
    """

    def __init__(self, table: Table, caption: str = "") -> None:
        self._table = table
        self._caption = caption

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the wide form where it fits and the narrow one where it does not; an empty line ends both."""
        unbounded = options.update(max_width=10_000)
        table, edges, rich_table = self._table, True, _draw(self._table)
        if Measurement.get(console, unbounded, rich_table).maximum > options.max_width:
            table, edges = _fitted(table, options.max_width)
            rich_table = _draw(table, edges=edges)
        # Where even that is too wide the terminal breaks lines: a number that is cut says something else.
        needed_width = Measurement.get(console, unbounded, rich_table).maximum
        words = options.update(max_width=min(options.max_width, max(needed_width, WORDS)))
        if table.title:
            yield from console.render(Text(table.title, style="table.title"), words)
        yield from console.render(rich_table, options.update(max_width=max(options.max_width, needed_width)))
        if self._caption:
            yield from console.render(Text(self._caption, style="table.caption"), words)
        if self._caption or not edges:
            yield Segment.line()


def _draw(table: Table, *, edges: bool = True) -> RichTable:
    rich_table = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=edges)
    for position, header in enumerate(table.headers):
        is_text = position < table.text_columns
        rich_table.add_column(header, justify="left" if is_text else "right", no_wrap=True)
    for row, cells in enumerate(table.rows):
        rich_table.add_row(
            *(Text(text, style="bold" if (row, column) in table.best else "") for column, text in enumerate(cells))
        )
    return rich_table


def _fitted(table: Table, width: int) -> tuple[Table, bool]:
    """Fit the table to a terminal of `width` characters, and return whether it has edges there."""
    edges = True
    if not _fits(table, width - EDGES):
        edges = False
        if not _fits(table, width):
            table = _without_shared(table)
    return _narrow(table, width - EDGES * edges), edges


def fold(text: str, width: int) -> str:
    """Fold the text into lines of at most `width` characters, at spaces and behind hyphens, underscores and slashes.

    Only a word that is longer than a line is broken inside.
    """
    lines = [""]
    for piece in _pieces(text):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(line.rstrip() for line in lines)


def _pieces(text: str) -> list[str]:
    """Split a text into the parts between which it may break."""
    return re.findall(r"[^-_/ ]*[-_/ ]|[^-_/ ]+", text)


def _slim(table: Table) -> list[list[str]]:
    """List every column, its header first, with numbers as slim as can be."""
    texts = table.text_columns
    headers = [header if column < texts else header.replace(" ", "\n") for column, header in enumerate(table.headers)]
    rows = [
        [text if column < texts else re.sub(r" (?=[\[(])", "\n", text) for column, text in enumerate(row)]
        for row in table.rows
    ]
    return [list(column) for column in zip(headers, *rows, strict=True)]


def _broad(column: Sequence[str]) -> int:
    """Count the characters of the longest line of a column."""
    return max(len(line) for text in column for line in text.split("\n"))


def _least(column: Sequence[str]) -> int:
    """Count the characters of the longest piece of a column, which no fold makes slimmer without breaking a word."""
    return max((len(piece.rstrip()) for text in column for piece in _pieces(text)), default=0)


def _left(table: Table, columns: Sequence[Sequence[str]], width: int) -> int:
    """Count the characters that a terminal of `width` has left for the names."""
    return width - sum(map(_broad, columns[table.text_columns :])) - GUTTER * (len(columns) - 1)


def _fits(table: Table, width: int) -> bool:
    """Return whether a terminal of `width` characters holds the table with every word whole."""
    columns = _slim(table)
    return sum(map(_least, columns[: table.text_columns])) <= _left(table, columns, width)


def _narrow(table: Table, width: int) -> Table:
    """Narrow the table to a terminal of `width` characters: numbers as slim as can be, names in what is left."""
    columns = _slim(table)
    names = columns[: table.text_columns]
    space, fits_whole = _left(table, columns, width), _fits(table, width)
    least = [_least(column) if fits_whole else LEAST_NAME for column in names]
    widths = [_broad(column) for column in names]
    order = sorted(range(len(names)), key=widths.__getitem__)
    for position, column in enumerate(order, 1):
        others = order[position:]
        share = max(least[column], min(space // (len(others) + 1), space - sum(least[other] for other in others)))
        columns[column] = [fold(text, share) for text in columns[column]]
        space -= min(widths[column], share)
    headers, *rows = zip(*columns, strict=True)
    return replace(table, headers=headers, rows=tuple(rows))


def _without_shared(table: Table) -> Table:
    """Return the table without the columns of numbers that are the same in every row, which its title names instead."""
    equal_columns = [
        column
        for column in range(table.text_columns, len(table.headers))
        if len({row[column] for row in table.rows}) == 1 and len(table.rows) > 1
    ]
    if not equal_columns:
        return table
    columns = [column for column in range(len(table.headers)) if column not in equal_columns]
    note = ", ".join(f"{table.headers[column]} {table.rows[0][column]}" for column in equal_columns)
    return replace(
        table,
        title=f"{table.title}{' · ' if table.title else ''}every row: {note}",
        headers=tuple(table.headers[column] for column in columns),
        rows=tuple(tuple(row[column] for column in columns) for row in table.rows),
        best=frozenset((row, columns.index(column)) for row, column in table.best if column in columns),
    )


def comparison(runs: Sequence[AnyRun]) -> Table:
    """Build runs of one family side by side, the scores of the best stressed; what they share goes into the title."""
    title, _ = label_runs(runs)
    return runs[0].benchmark.overview(title, table_runs(runs))


def split_families(runs: Sequence[AnyRun]) -> list[list[AnyRun]]:
    """Split the runs into those that share a table, in their order: first those whose answers are right or wrong."""
    families: dict[str, list[AnyRun]] = {}
    for run in runs:
        families.setdefault(run.benchmark.family, []).append(run)
    return sorted(families.values(), key=lambda family: not family[0].benchmark.right_or_wrong)


def check_one_family(runs: Sequence[AnyRun], option: str) -> None:
    """Raise `SpecError` if no table holds all `runs`, of which `option` writes one."""
    if len(split_families(runs)) > 1:
        raise SpecError(f"{option} takes runs of one benchmark, or of exams: report each of them separately")


def legend(runs: Sequence[AnyRun]) -> str:
    """Describe how to read the tables of runs of one family."""
    return runs[0].benchmark.legend([run.metrics for run in runs])


def overview_tables(runs: Sequence[AnyRun]) -> list[Captioned]:
    """Build the comparison of runs of one family; the only run of some families by group too."""
    run, table = runs[0], comparison(runs)
    overview = (table, f"{legend(runs)} {BOLD}" if table.best else legend(runs))
    own = own_tables(runs)
    return [overview, *own, *(facet_tables(run) if len(runs) == 1 and run.benchmark.report_each else [])]


def facet_tables(run: AnyRun) -> list[Captioned]:
    """Build tables of the scores of one run by each facet."""
    return [(table, "") for table in run.benchmark.breakdowns(run.metrics, published=False)]


def table_runs(runs: Sequence[AnyRun]) -> list[TableRun[Any]]:
    """Return the runs as a benchmark's tables need them."""
    _, labels = label_runs(runs)
    standing = find_standing(runs)
    best = None if standing is None or standing.level else standing.first
    return [
        TableRun(name, {header: values[position] for header, values in labels.items()}, run.metrics, run is best)
        for position, (name, run) in enumerate(zip(run_names(runs), runs, strict=True))
    ]


def label_runs(runs: Sequence[AnyRun]) -> tuple[str, dict[str, list[str]]]:
    """Return a title with what all runs share, and a column, by its header, for each thing in which they differ.

    Controls beside runs of one model are named in the title as asking none.
    """
    labels: dict[str, list[str]] = {"Program": [run.program for run in runs]}
    title = [", ".join(dict.fromkeys(run.record.cell.name for run in runs))]
    models = list(dict.fromkeys(run.model for run in runs if run.model is not None))
    controls = dict.fromkeys(run.program for run in runs if run.model is None)
    if len(models) > 1:
        labels["Model"] = [run.model or NONE for run in runs]
    elif models:
        title.append(models[0] + (f" (no model: {', '.join(controls)})" if controls else ""))
    datasets = [run.record.cell.dataset.label for run in runs]
    if len(set(datasets)) > 1:
        labels["Data set"] = datasets
    else:
        title.append(datasets[0])
    if len(set(zip(*labels.values(), strict=True))) < len(runs):
        labels["Program"] = distinct_labels(labels["Program"], [run.record.cell for run in runs])
    return " · ".join(title), labels


def check_plots(runs: Sequence[AnyRun]) -> None:
    """Raise `SpecError` if a run's benchmark has no plots."""
    if not all(run.benchmark.plots for run in runs):
        raise SpecError(
            "--plots needs exams, and these runs answer in words: leave it out, or use --html or --markdown"
        )
