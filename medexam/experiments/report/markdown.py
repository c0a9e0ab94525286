"""A report as files: Markdown, in which no text of others is a tag, a link or a section; LaTeX; CSV for R or pandas.

In LaTeX each table is a float with a caption and a label, `tab:` and its title, and shrinks to the width of the line.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from medexam.experiments.report.shown import Block
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.results import Scores
from medexam.measures.scoring import COUNTS
from medexam.measures.shown import measure_values
from medexam.plugins import __version__
from medexam.tables import NONE, Table

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


MOST_ROWS = 45
"""A table of more breaks over pages, which needs the package longtable."""
_PREAMBLE = r"\usepackage{booktabs,graphicx,longtable}"
_FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""Shrinks what is wider than the line, and leaves the rest as it is."""
_GREEK = "alpha beta gamma delta kappa lambda mu omega"
_SIGNS = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
    | {"<": "$<$", ">": "$>$", "\u2212": "$-$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\rightarrow$", "µ": r"$\mu$"}
    | {greek: f"$\\{name}$" for greek, name in zip("αβγδκλμω", _GREEK.split(), strict=True)}
    | {"\xa0": "~", '"': "''"}
)
_MINUS = re.compile(r"(?<![\w.])-(?=\d)|(?<=\s)-(?=\s)")
_CODE = re.compile(r"`([^`]+)`")


def render_latex(blocks: Iterable[Block]) -> str:
    """Render the tables as one file to read by `input`; lines are comments at its head."""
    lines = [f"Made by medexam {__version__}. Put {_PREAMBLE} into the preamble."]
    tables, labels = list[str](), list[str]()
    for block in blocks:
        if isinstance(block, str):
            lines.append(block)
            continue
        plain = unicodedata.normalize("NFKD", block.title).encode("ascii", "ignore").decode().lower()
        label = "-".join(re.findall(r"[a-z0-9]+", plain)) or "table"
        labels.append(label)
        number = labels.count(label)
        tables.append(_render_table(block, label if number == 1 else f"{label}-{number}"))
    return "\n\n".join(["\n".join(f"% {' '.join(line.split())}" for line in lines), *tables]) + "\n"


def escape(text: str) -> str:
    """Escape the text for LaTeX; signs that the table does not name stay, which the engine prints if it can."""
    return _MINUS.sub("\u2212", unicodedata.normalize("NFC", " ".join(text.split()))).translate(_SIGNS)


def _render_table(table: Table, label: str) -> str:
    title = f"{table.title}." if table.title and table.title[-1] not in ".?!" else table.title
    legend = _CODE.sub(r"\\texttt{\1}", escape(" ".join(filter(None, [title, table.caption]))))
    legend = f"\\caption{{{legend}}}\\label{{tab:{label}}}"
    columns = "@{}" + "l" * table.text_columns + "r" * (len(table.headers) - table.text_columns) + "@{}"
    head = _line(map(escape, table.headers))
    rows = [
        _line(
            _cell(text, is_number=column >= table.text_columns, is_best=(row, column) in table.best)
            for column, text in enumerate(texts)
        )
        for row, texts in enumerate(table.rows)
    ]
    if len(table.rows) > MOST_ROWS:
        lines = [rf"\begin{{longtable}}{{{columns}}}", rf"{legend}\\", r"\toprule", head, r"\midrule\endfirsthead"]
        lines += [r"\toprule", head, r"\midrule\endhead", r"\bottomrule\endfoot", *rows, r"\end{longtable}"]
        return "\n".join(lines)
    lines = [r"\begin{table}[tbp]", r"\centering\small", legend, r"\par\smallskip", _FIT]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}}", r"\end{table}"])


def _cell(text: str, *, is_number: bool, is_best: bool) -> str:
    if is_number and text == NONE:
        return "--"
    figure, bracket, interval = text.partition(" [") if is_number else (text, "", "")
    rendered = (r"\quad " if not is_number and text.startswith("  ") else "") + escape(figure)
    rendered = rf"\textbf{{{rendered}}}" if is_best else rendered
    return rf"{rendered} {{\scriptsize {escape(f'[{interval}')}}}" if bracket else rendered


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def render_scores(runs: Sequence[StoredRun]) -> str:
    """Render the scores over all questions and by each facet, shares as fractions of 1, as `metrics.json` has them."""
    rows = [row for run in runs for row in _rows(run)]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return stream.getvalue()


def _rows(run: StoredRun) -> Iterator[dict[str, Any]]:
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
