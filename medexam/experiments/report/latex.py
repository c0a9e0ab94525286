"""LaTeX from lines and tables: booktabs, as an author puts it into a paper with `input`.

Each table is a float with a caption and a label, `tab:` and its title. It shrinks to the width of the line if it is
wider. Lines that stand beside the tables are comments at the head of the file.
"""

import re
import unicodedata
from collections.abc import Iterable

from medexam.experiments.report.shown import Block
from medexam.plugins import __version__
from medexam.tables import NONE, Table

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
    """Render a name with its indentation, or a number: bold where it is stressed, its interval in a small size."""
    if is_number and text == NONE:
        return "--"
    figure, bracket, interval = text.partition(" [") if is_number else (text, "", "")
    rendered = (r"\quad " if not is_number and text.startswith("  ") else "") + escape(figure)
    rendered = rf"\textbf{{{rendered}}}" if is_best else rendered
    return rf"{rendered} {{\scriptsize {escape(f'[{interval}')}}}" if bracket else rendered


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
