"""Lines and tables as people see them on a terminal, and values that show themselves, in a notebook as Markdown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from medexam.errors import RunFolderError
from medexam.files import whole_file
from medexam.tables import Table
from medexam.text import visible, writable


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


class Terminal(Console):
    """A console that shows control characters of what it prints, and never obeys them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render the segments of what is printed; those that rich made to control the terminal stay as they are."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


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
    """Print a table and an empty line; in a narrow terminal names break, and no number is cut.

    So that each row stays in one line as long as can be, headers break first; then columns of numbers that are the same
    in every row are said below, and then all intervals but those of the first column go.
    """
    columns = {at: [header, *(row[at] for row in table.rows)] for at, header in enumerate(table.headers)}
    numbers, notes = list(columns)[table.text_columns :], []
    if _width(columns) > console.width:
        columns |= {at: [columns[at][0].replace(" ", "\n"), *columns[at][1:]] for at in numbers}
    if _width(columns) > console.width and len(set(table.rows)) > 1:
        shared = [(table.headers[at], columns.pop(at)[1]) for at in numbers if len(set(columns[at][1:])) == 1]
        notes += [f"In every row: {', '.join(map(' '.join, shared))}."] if shared else []
    _, *others = [at for at, cells in columns.items() if any(getattr(each, "interval", None) for each in cells)] or [0]
    if others and _width(columns) > console.width:
        columns |= {at: [text.partition(" [")[0] for text in columns[at]] for at in others}
        notes.append("A wider terminal shows its intervals.")
    rich_table = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for at, cells in columns.items():
        if at < table.text_columns:
            rich_table.add_column(Text(cells[0]), overflow="fold", min_width=min(LEAST_NAME, _width({at: cells})))
        else:
            rich_table.add_column(Text(cells[0]), justify="right", no_wrap=True, min_width=_width({at: cells}))
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


def _width(columns: Mapping[int, Sequence[str]]) -> int:
    longest = (max(len(line) for text in column for line in text.split("\n")) for column in columns.values())
    return sum(longest) + GUTTER * (len(columns) - 1)


@contextmanager
def user_file(path: Path, option: str) -> Iterator[Path]:
    """Yield the draft of a file that `option` asks for; raises `RunFolderError` if it cannot be written."""
    try:
        with whole_file(path) as draft:
            yield draft
    except OSError as error:
        reason = error.strerror or error
        raise RunFolderError(f"cannot write {path}: {reason}; choose another file with {option}") from None


def write_report(text: str, path: Path, option: str = "--markdown") -> None:
    """Write what `option` asks for to a file of the user's; raises `RunFolderError` if it cannot be written."""
    with user_file(path, option) as draft:
        draft.write_text(writable(text), encoding="utf-8", newline="")
