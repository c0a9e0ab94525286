"""Lines and tables as people see them on a terminal, and values that show themselves, in a notebook as Markdown."""

import re
from collections.abc import Mapping, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from medexam.errors import RunFolderError
from medexam.files import write_whole
from medexam.tables import Table


class Unbroken(str):
    """A line that is never broken, so that a command in it can be copied."""

    __slots__ = ()


Block = str | Table
"""A line of text, or a table."""
WIDTH = 100
"""Characters of a line of text, where a table fits."""
GUTTER = 2
"""Characters between the columns of a table."""
LEAST_NAME = 8
"""Characters that a name has in the narrowest terminal."""


class Displayed:
    """Base of values that show themselves."""

    def blocks(self) -> Sequence[Block]:
        """List what is shown, in order."""
        raise NotImplementedError

    def __repr__(self) -> str:
        console = Console(file=StringIO(), width=WIDTH, color_system=None, force_jupyter=False)
        print_blocks(console, self.blocks())
        assert isinstance(console.file, StringIO)  # noqa: S101
        return "\n".join(line.rstrip() for line in console.file.getvalue().strip("\n").splitlines())

    def _repr_markdown_(self) -> str:
        # Markdown is made of these blocks.
        from medexam.experiments.report.markdown import render_markdown

        return render_markdown("", self.blocks())


def print_blocks(console: Console, blocks: Sequence[Block]) -> None:
    """Print lines and tables as wide as the console."""
    for place, block in enumerate(blocks):
        if place and isinstance(blocks[place - 1], str) and not isinstance(block, str):
            console.print()
        if isinstance(block, str):
            console.print(block, highlight=False, markup=False, soft_wrap=isinstance(block, Unbroken))
        else:
            _print_table(console, block)


def _print_table(console: Console, table: Table) -> None:
    """Print a table as `_fit` fits it in, and an empty line."""
    columns, notes = _fit(table, console.width)
    # Where even that is too wide the terminal breaks lines: a number that is cut says something else.
    width = _width(columns) if _width(columns) > console.width else None
    rich_table = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, width=width)
    for at, cells in columns.items():
        rich_table.add_column(cells[0], justify="right" if at >= table.text_columns else "left", no_wrap=True)
    for row in range(len(table.rows)):
        rich_table.add_row(
            *(Text(each[row + 1], "bold" if (row, at) in table.best else "") for at, each in columns.items())
        )
    if table.title:
        console.print(Text(table.title, "table.title"))
    console.print(rich_table, crop=False)
    if text := " ".join(filter(None, [table.caption, *notes])):
        console.print(Text(text, "table.caption"))
    console.print()


def _fit(table: Table, width: int) -> tuple[dict[int, list[str]], list[str]]:
    """Return the columns by their place, each below its header, as a terminal of `width` has room for, and what to say.

    So that each row stays in one line as long as can be, headers break first; then columns of numbers that are the same
    in every row are said below, then intervals go, the last first and the first never, and then names break.
    """
    columns = {at: [header, *(row[at] for row in table.rows)] for at, header in enumerate(table.headers)}
    full_columns, numbers, notes = dict(columns), list(columns)[table.text_columns :], []
    if _width(columns) > width:
        columns |= {at: [full_columns[at][0].replace(" ", "\n"), *full_columns[at][1:]] for at in numbers}
    if _width(columns) > width and len(table.rows) > 1 and len(set(table.rows)) > 1:
        shared = [columns.pop(at) and full_columns[at] for at in numbers if len(set(full_columns[at][1:])) == 1]
        notes = [f"In every row: {', '.join(f'{header} {cell}' for header, cell, *_ in shared)}."] if shared else []
    with_intervals = [at for at, cells in columns.items() if any(getattr(each, "interval", None) for each in cells)]
    for at in reversed(with_intervals[1:]):
        if _width(columns) > width:
            columns[at] = [text.partition(" [")[0] for text in columns[at]]
            notes.append("A wider terminal shows its intervals.")
    widths = {at: min(width, _broad(columns[at])) for at in range(table.text_columns)}
    while _width(columns) > width and max(widths.values(), default=0) > LEAST_NAME:
        widest = max(widths, key=widths.__getitem__)
        widths[widest] -= 1
        columns[widest] = [_fold(text, widths[widest]) for text in full_columns[widest]]
    return columns, list(dict.fromkeys(notes))


def _width(columns: Mapping[int, Sequence[str]]) -> int:
    return sum(map(_broad, columns.values())) + GUTTER * (len(columns) - 1)


def _broad(column: Sequence[str]) -> int:
    """Count the characters of the longest line of a column."""
    return max(len(line) for text in column for line in text.split("\n"))


def _fold(text: str, width: int) -> str:
    """Fold the text into lines of at most `width` characters, at spaces.

    A word that is longer than a line is broken behind hyphens, underscores and slashes, or anywhere.
    """
    if "\n" in text:
        return "\n".join(_fold(line, width) for line in text.split("\n"))
    lines = [""]
    words = re.findall(r"\S*\s|\S+", text)
    parts = ([word] if len(word.rstrip()) <= width else re.findall(r"[^-_/]*[-_/]|[^-_/]+", word) for word in words)
    for piece in chain.from_iterable(parts):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(line.rstrip() for line in lines)


def write_report(text: str, path: Path, option: str = "--markdown") -> None:
    """Write what `option` asks for to a file of the user's; raises `RunFolderError` if it cannot be written."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise RunFolderError(
            f"cannot write {path}: {error.strerror or error}; choose another file with {option}"
        ) from None
