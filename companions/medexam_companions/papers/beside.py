"""A table of ours beside the one that a paper prints: the same rows and columns, and the differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments import Block, Plot, StoredRun
from medexam.tables import NONE, Table
from medexam_companions.papers.paper import Grid, PaperEntry
from medexam_companions.papers.paper_tables import DIFFERENCE, EQUAL, PAPER


@dataclass(frozen=True)
class Product:
    """A table or figure as it came out."""

    entry: PaperEntry
    blocks: Sequence[Block]
    """Tables, and what a reader should know of them."""
    document: Any
    """The same, JSON-ready."""
    pictures: Sequence[Plot] = ()
    runs: Sequence[StoredRun] = ()
    """Those that it was made from; empty for what describes a data set."""


def set_beside(
    entry: PaperEntry, grid: Grid, title: str = "", note: str = "", *, printed: Grid | None = None, **further: Any
) -> Product:
    """Set counted figures beside the paper's, `printed` or those of the entry, and the differences if they differ.

    The caption ends with `note`, and the document with what is given `further`.
    """
    printed, title = printed or entry.figures, title or entry.heading
    paper_grid = printed or Grid(columns=(), rows={})
    rows, lines = [], list[tuple[str, ...]]()
    for name, figures in grid.rows.items():
        published = [paper_grid.figure(name, column) for column in grid.columns]
        differences = [
            None if own is None or paper is None else round(own - paper, 6) + 0.0
            for own, paper in zip(figures, published, strict=True)
        ]
        rows.append({"row": name, "values": list(figures), "published": published, "differences": differences})
        signs = [EQUAL if difference == 0 else _text(difference, "+") for difference in differences]
        lines.append((name, *map(_text, figures)))
        if {*differences} <= {None, 0}:
            lines += [(f"  {PAPER}", *signs)] * any(figure is not None for figure in published)
        else:
            lines += [(f"  {PAPER}", *map(_text, published)), (f"  {DIFFERENCE}", *signs)]
    source = f"Paper: the figures of the paper (arXiv {entry.paper.arxiv}). {EQUAL}: the same." if printed else ""
    table = Table(title, ("", *grid.columns), tuple(lines), caption=f"{source} {note}".strip())
    document = {"title": title, "arxiv": entry.paper.arxiv, "columns": list(grid.columns), "rows": rows, **further}
    return Product(entry, [table], document)


def _text(figure: float | None, sign: str = "") -> str:
    if figure is None:
        return NONE
    return f"{figure:{sign},.0f}" if figure == int(figure) and abs(figure) >= 1 else f"{figure:{sign}.2f}"
