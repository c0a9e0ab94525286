"""A table of ours beside the one that a paper prints: the same rows and columns, and the differences."""

from dataclasses import dataclass
from typing import Any

from medexam.tables import NONE, Table
from medexam_companions.papers.paper import Grid
from medexam_companions.papers.paper_tables import DIFFERENCE, EQUAL, PAPER


@dataclass(frozen=True)
class Beside:
    """Counted figures and the paper's."""

    title: str
    own_grid: Grid
    paper_grid: Grid | None
    """None if the paper prints no numbers."""
    arxiv: str

    @property
    def table(self) -> Table:
        """Each row of ours with the paper's and the differences below it, where they are not the same."""
        rows: list[tuple[str, ...]] = []
        for row in self._rows():
            rows.append((row["row"], *map(_text, row["values"])))
            differences = row["differences"]
            signs = [EQUAL if difference == 0 else _text(difference, "+") for difference in differences]
            if set(differences) <= {None, 0}:
                rows += [(f"  {PAPER}", *signs)] * any(figure is not None for figure in row["published"])
                continue
            rows += [(f"  {PAPER}", *map(_text, row["published"])), (f"  {DIFFERENCE}", *signs)]
        caption = f"Paper: the figures of the paper (arXiv {self.arxiv}). {EQUAL}: the same."
        caption = caption if self.paper_grid is not None else ""
        return Table(self.title, ("", *self.own_grid.columns), tuple(rows), caption=caption)

    def document(self) -> dict[str, Any]:
        """Build a row for each of ours, JSON-ready."""
        columns = list(self.own_grid.columns)
        return {"title": self.title, "arxiv": self.arxiv, "columns": columns, "rows": self._rows()}

    def _rows(self) -> list[dict[str, Any]]:
        rows, grid = [], self.paper_grid or Grid(columns=(), rows={})
        for name, own_figures in self.own_grid.rows.items():
            paper_figures = [grid.figure(name, column) for column in self.own_grid.columns]
            differences = [
                None if own is None or paper is None else round(own - paper, 6) + 0.0
                for own, paper in zip(own_figures, paper_figures, strict=True)
            ]
            figures = {"values": list(own_figures), "published": paper_figures, "differences": differences}
            rows.append({"row": name, **figures})
        return rows


def _text(figure: float | None, sign: str = "") -> str:
    if figure is None:
        return NONE
    return f"{figure:{sign},.0f}" if figure == int(figure) and abs(figure) >= 1 else f"{figure:{sign}.2f}"
