"""Values that show themselves as tables: as text where they are printed, as HTML in a notebook."""

from collections.abc import Sequence
from functools import cache
from io import StringIO
from pathlib import Path

from jinja2 import Environment, Template
from rich.console import Console

from medexam.errors import RunFolderError
from medexam.experiments.report.tables import TerminalTable
from medexam.files import write_whole
from medexam.tables import Captioned, Table


class Unbroken(str):
    """A line that is never broken, so that a command in it can be copied."""

    __slots__ = ()


Block = str | Captioned
"""A line of text, or a table with its caption."""
WIDTH = 100
"""Characters of a line of text, where a table fits."""
_HTML = """\
{% for block in blocks %}
{% if block is string %}
<p>{{ block }}</p>
{% else %}
{% set table, caption = block %}
<table>
<caption style="text-align: left"><b>{{ table.title }}</b></caption>
<thead><tr>
{% for header in table.headers %}
<th style="text-align: {{ 'left' if loop.index0 < table.text_columns else 'right' }}">{{ header }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in table.rows %}
{% set at = loop.index0 %}
<tr>
{% for text in row %}
<td style="text-align: {{ 'left' if loop.index0 < table.text_columns else 'right' }}">
{{- '<b>'|safe if (at, loop.index0) in table.best }}{{ text }}{{ '</b>'|safe if (at, loop.index0) in table.best -}}
</td>
{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
{% if caption %}
<p><small>{{ caption }}</small></p>
{% endif %}
{% endif %}
{% endfor %}
"""


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

    def _repr_html_(self) -> str:
        return _template().render(blocks=self.blocks())


def print_blocks(console: Console, blocks: Sequence[Block]) -> None:
    """Print lines and tables as wide as the console."""
    for place, block in enumerate(blocks):
        if place and isinstance(blocks[place - 1], str) and not isinstance(block, str):
            console.print()
        if isinstance(block, str):
            console.print(block, highlight=False, markup=False, soft_wrap=isinstance(block, Unbroken))
        else:
            console.print(TerminalTable(*block), crop=False)


def shown_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int) -> Captioned:
    """Build a table of its own that belongs to no report."""
    return Table(title, tuple(headers), tuple(map(tuple, rows)), text_columns=text_columns), ""


def write_report(text: str, path: Path, option: str = "--markdown") -> None:
    """Write what `option` asks for to a file of the user's; raises `RunFolderError` if it cannot be written."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise RunFolderError(
            f"cannot write {path}: {error.strerror or error}; choose another file with {option}"
        ) from None


@cache
def _template() -> Template:
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_HTML)
