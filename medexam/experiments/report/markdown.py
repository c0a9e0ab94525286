"""Markdown from lines and tables, in which no text of others is a tag, a link or a section.

Our own Markdown holds headings, tables, emphasis and code, and neither links nor HTML. So a whole document is disarmed
at once; where a text of others stands as a paragraph or in a heading, it is made one before.
"""

import re
from collections.abc import Iterable

from medexam.experiments.report.shown import Block
from medexam.tables import Table

_FENCE = re.compile("`{3,}|~{3,}")
"""What opens or closes a block."""
_TAG = re.compile(r"<(?=[A-Za-z/!?]|[^\s<>]+@)")
"""Where a tag of HTML or an address in angle brackets would begin; a comparison such as `p < 0.05` is none."""
_LINK = re.compile(r"\](?=[(:])")
"""Where the address of a link or a picture would begin, or that of a reference or a footnote, which links need."""
_ENTITY = re.compile(r"&(?=#?\w+;)")
_DIVIDER = re.compile(r"^(\d{0,9})(?=#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|[-=*_|:\s]+$|(?<=\d)[.)](?:\s|$))")
"""Where a backslash keeps a line from being a heading, a quote, a list or a rule, or from making a heading or a table
of the line above."""
_BREAK = re.compile(r"\s*[\r\n]\s*")
_PIPE = re.compile(r"(\\*)\|")


class Verbatim(str):
    """A block of Markdown that is shown word for word, and obeyed by nobody."""

    __slots__ = ()


def render_markdown(title: str, blocks: Iterable[Block]) -> str:
    """Render a document: a paragraph a line, a section a table; that of a table of the same title has no heading."""
    parts = [heading(1, title) if title else ""]
    for block in blocks:
        if isinstance(block, str):
            parts.append(block if isinstance(block, Verbatim) else paragraphs(block))
        else:
            parts += ["" if block.title in ("", title) else heading(2, block.title), render_table(block)]
            parts.append(paragraphs(block.caption))
    return "\n\n".join(part if isinstance(part, Verbatim) else disarm(part) for part in parts if part) + "\n"


def render_table(table: Table) -> str:
    """Render a Markdown table without its title; stressed cells are bold."""
    marks = [":--" if column < table.text_columns else "--:" for column in range(len(table.headers))]
    rows = [
        [f"**{cell(text)}**" if (row, column) in table.best else cell(text) for column, text in enumerate(cells)]
        for row, cells in enumerate(table.rows)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [[*map(cell, table.headers)], marks, *rows])


def fenced(text: str) -> Verbatim:
    """Put `text` in a code block that nothing in it can close."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return Verbatim(f"{fence}text\n{text}\n{fence}")


def disarm(text: str) -> str:
    """Disarm Markdown: no text of others in it is a tag, a link or an entity, or opens or closes a block of code."""
    text = _ENTITY.sub("&amp;", text)
    text = _FENCE.sub(lambda match: "".join(f"\\{mark}" for mark in match[0]), text)
    return _TAG.sub("&lt;", _LINK.sub(r"]\\", text))


def heading(level: int, title: str) -> str:
    """Render a heading, `level` 1 the highest; a title of several lines stands on one."""
    return f"{'#' * level} {on_one_line(title)}"


def on_one_line(text: str) -> str:
    """Return the text without ends of lines, for a heading, a cell or a sentence."""
    return _BREAK.sub(" ", text).strip()


def paragraphs(text: str) -> str:
    """Return the text as paragraphs, divided by its empty lines: no line is a heading, a list, a table or a quote."""
    return "\n".join(_DIVIDER.sub(r"\1\\", line.strip()) for line in text.splitlines()).strip()


def cell(text: str) -> str:
    """Escape the text for one cell of a table."""
    # A backslash before a pipe would make a backslash of the one that escapes the pipe.
    return _BREAK.sub(" ", _PIPE.sub(r"\1\1\\|", text))
