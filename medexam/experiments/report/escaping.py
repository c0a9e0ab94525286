"""Texts of others in Markdown: no tag, link or entity, and nothing that a document is divided by.

Our own Markdown holds headings, tables, emphasis and code, and neither links nor HTML. So a whole document is disarmed
at once; where a text of others stands as a paragraph or in a heading, it is made one before.
"""

import re

_FENCE = re.compile("`{3,}|~{3,}")
"""What opens or closes a block."""
_TAG = re.compile(r"<(?=[A-Za-z/!?]|[^\s<>]+@)")
"""Where a tag of HTML or an address in angle brackets would begin; a comparison such as `p < 0.05` is none."""
_LINK = re.compile(r"\](?=[(:])")
"""Where the address of a link or a picture would begin, or that of a reference or a footnote, which links need."""
_ENTITY = re.compile(r"&(?=#?\w+;)")
_DIVIDER = re.compile(r"(?=#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|[-=*_|:\s]+$)|(?<=\d)(?=[.)](?:\s|$))")
"""Where a backslash keeps a line from being a heading, a quote, a list or a rule, or from making a heading or a table
of the line above."""
_NUMBER = re.compile(r"\d{0,9}")
_BREAK = re.compile(r"\s*[\r\n]\s*")
_PIPE = re.compile(r"(\\*)\|")


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
    return "\n".join(_keep_in_paragraph(line.strip()) for line in text.splitlines()).strip()


def cell(text: str) -> str:
    """Escape the text for one cell of a table."""
    # A backslash before a pipe would make a backslash of the one that escapes the pipe.
    return _BREAK.sub(" ", _PIPE.sub(r"\1\1\\|", text))


def _keep_in_paragraph(line: str) -> str:
    number = _NUMBER.match(line)
    start = number.end() if number else 0
    divider = _DIVIDER.match(line, start)
    return f"{line[:start]}\\{line[start:]}" if divider and line else line
