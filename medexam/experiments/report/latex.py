"""Reports in LaTeX: the tables of the terminal with booktabs, as an author puts them into a paper with `input`.

Each table is a float with a caption and a label, `tab:` and its title. It shrinks to the width of the line if it is
wider. Sentences that stand beside the tables are comments at the head of the file.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby

from medexam.plugins import __version__
from medexam.tables import NONE, STARS, Captioned, Table

MOST_ROWS = 45
"""A table of more breaks over pages, which needs the package longtable."""
_PREAMBLE = r"\usepackage{booktabs,graphicx,longtable}"
_FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""Shrinks what is wider than the line, and leaves the rest as it is."""
_MATH = {
    "<": "<",
    ">": ">",
    "\u2212": "-",
    "≤": r"\leq",
    "≥": r"\geq",
    "≠": r"\neq",
    "≈": r"\approx",
    "±": r"\pm",
    "\u00d7": r"\times",
    "→": r"\rightarrow",
    "←": r"\leftarrow",
    "↔": r"\leftrightarrow",
    "√": r"\surd",
    "∞": r"\infty",
    "µ": r"\mu",
}
_NAMED = {
    "\\": "textbackslash",
    "~": "textasciitilde",
    "^": "textasciicircum",
    "|": "textbar",
    "·": "textperiodcentered",
    "…": "ldots",
    "°": "textdegree",
}
_SPECIAL = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"${name}$" for sign, name in _MATH.items()},
    **{sign: f"\\{name}{{}}" for sign, name in _NAMED.items()},
    "\u2013": "--",
    "\u2014": "---",
    "\xa0": "~",
    '"': "''",
}
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (\w+)")
_LATIN_CAPITALS = frozenset(
    {*("ALPHA", "BETA", "EPSILON", "ZETA", "ETA", "IOTA"), *("KAPPA", "MU", "NU", "OMICRON", "RHO", "TAU", "CHI")}
)
"""Capital letters of Greek that LaTeX has no name for, since they look like Latin ones."""
_MINUS = re.compile(r"(?<![\w.])-(?=\d)|(?<=\s)-(?=\s)")
_CODE = re.compile(r"`([^`]+)`")
_INTERVAL = re.compile(r"^(?P<number>\S.*?)(?: (?P<interval>\[[^\[\]]*\]))?$", re.DOTALL)


def render_latex(tables: Iterable[Captioned], notes: Iterable[str] = ()) -> str:
    """Render the tables as one file to read by `input`; `notes` are comments at its head."""
    comments = [f"Made by medexam {__version__}. Put {_PREAMBLE} into the preamble.", *notes]
    head = "\n".join(f"% {' '.join(comment.split())}" for comment in comments)
    return "\n\n".join([head, *_render_all(tables)]) + "\n"


def escape(text: str) -> str:
    """Escape the text for LaTeX; characters that no rule knows stay, which XeLaTeX, LuaLaTeX and Tectonic print."""
    normal = _MINUS.sub("\u2212", unicodedata.normalize("NFC", " ".join(text.split())))
    return "".join(_SPECIAL.get(sign) or _greek(sign) for sign in normal)


def _greek(sign: str) -> str:
    match = _GREEK.fullmatch(unicodedata.name(sign, "")) if sign > "\u036f" else None
    if match is None:
        return sign
    size, name = match.groups()
    if size == "CAPITAL":
        latin = {"CHI": "X", "OMICRON": "O", "ETA": "H", "RHO": "P"}.get(name, name[0])
        return latin if name in _LATIN_CAPITALS else f"$\\{name.capitalize()}$"
    return {"OMICRON": "$o$", "LAMDA": r"$\lambda$", "FINAL SIGMA": r"$\varsigma$"}.get(name, f"$\\{name.lower()}$")


def _render_all(tables: Iterable[Captioned]) -> list[str]:
    """Render each table under a label of its own."""
    parts, labels = [], set[str]()
    for table, caption in tables:
        label = name = _label(table.title)
        number = 1
        while label in labels:
            number += 1
            label = f"{name}-{number}"
        labels.add(label)
        parts.append(_render_table(table, caption, label))
    return parts


def _label(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall(r"[a-z0-9]+", plain)) or "table"


def _render_table(table: Table, caption: str, label: str) -> str:
    legend = " ".join(filter(None, [_sentence(table.title), caption, STARS if table.stars else ""]))
    caption_text = _CODE.sub(r"\\texttt{\1}", escape(legend))
    caption_line = f"\\caption{{{caption_text}}}\\label{{tab:{label}}}"
    columns = "l" * table.text_columns + "r" * (len(table.headers) - table.text_columns)
    head, rows = _head(table), _rows(table)
    if len(table.rows) > MOST_ROWS:
        lines = [
            rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
            rf"{caption_line}\\",
            *(r"\toprule", *head, r"\midrule\endfirsthead"),
            *(r"\toprule", *head, r"\midrule\endhead"),
            *(r"\bottomrule\endfoot", *rows, r"\end{longtable}"),
        ]
        return "\n".join(lines)
    lines = [r"\begin{table}[tbp]", r"\centering\small", caption_line, r"\par\smallskip", _FIT]
    lines += [rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule", *head, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}}", r"\end{table}"])


def _sentence(title: str) -> str:
    return f"{title}." if title and title[-1] not in ".?!" else title


def _head(table: Table) -> list[str]:
    """Render the headers; if groups of columns have a name, it stands above them and no longer in each."""
    if not any(table.spans):
        return [_line(map(escape, table.headers))]
    cells, rules, column = [], [], 1
    for span, group in groupby(table.spans):
        width = len(list(group))
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(span)}}}" if span else " & ".join([""] * width))
        if span:
            rules.append(rf"\cmidrule(lr){{{column}-{column + width - 1}}}")
        column += width
    headers = (header.removeprefix(span).strip() for header, span in zip(table.headers, table.spans, strict=True))
    return [_line(cells), "".join(rules), _line(map(escape, headers))]


def _rows(table: Table) -> list[str]:
    """Render the rows; a name that the first column repeats is printed once, with a space above the next."""
    stars = {(row, column): count for row, column, count in table.stars}
    lines: list[str] = []
    names_repeat = table.text_columns > 1 and len({row[0] for row in table.rows}) < len(table.rows)
    name_before: str | None = None
    for row, texts in enumerate(table.rows):
        cells = [
            _word(text)
            if column < table.text_columns
            else _number(text, stars.get((row, column), 0), table, row, column)
            for column, text in enumerate(texts)
        ]
        for column in range(table.text_columns):
            if (row, column) in table.best:
                cells[column] = rf"\textbf{{{cells[column]}}}"
        if names_repeat:
            if texts[0] == name_before:
                cells[0] = ""
            elif name_before is not None:
                lines.append(r"\addlinespace")
            name_before = texts[0]
        lines.append(_line(cells))
    return lines


def _word(text: str) -> str:
    """Render a name; its indentation stays."""
    return (r"\quad " if text.startswith("  ") else "") + escape(text)


def _number(text: str, stars: int, table: Table, row: int, column: int) -> str:
    """Render a figure: bold where it is stressed, then its stars, then its interval in a small size."""
    if text == NONE:
        return "--"
    match = _INTERVAL.match(text)
    if match is None:
        return ""
    figure = escape(match["number"])
    if (row, column) in table.best:
        figure = rf"\textbf{{{figure}}}"
    interval = rf" {{\scriptsize {escape(match['interval'])}}}" if match["interval"] else ""
    return figure + (rf"$^{{{'*' * stars}}}$" if stars else "") + interval


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def latex_blocks(blocks: Sequence[str | Captioned]) -> str:
    """Render what a report shows: its tables, and its sentences as comments."""
    return render_latex(
        [block for block in blocks if not isinstance(block, str)], [block for block in blocks if isinstance(block, str)]
    )
