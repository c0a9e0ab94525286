"""A table of ours beside the one that a paper prints: the same rows and columns, and the differences."""

from dataclasses import dataclass
from typing import Any

from medexam.tables import NONE, Captioned, Table
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
    def table(self) -> Captioned:
        """Each row of ours with the paper's and the differences below it, where they are not the same."""
        rows: list[tuple[str, ...]] = []
        for name, figures in self.own_grid.rows.items():
            rows.append((name, *map(_text, figures)))
            paper_figures = self._paper_figures(name)
            differences = self._differences(name)
            if all(figure is None for figure in paper_figures):
                continue
            if all(difference in (None, 0) for difference in differences):
                rows.append((f"  {PAPER}", *(EQUAL if difference == 0 else NONE for difference in differences)))
                continue
            rows.append((f"  {PAPER}", *map(_text, paper_figures)))
            signs = (
                NONE if difference is None else EQUAL if difference == 0 else f"{_text(difference, sign=True)}"
                for difference in differences
            )
            rows.append((f"  {DIFFERENCE}", *signs))
        table = Table(self.title, ("", *self.own_grid.columns), tuple(rows))
        caption = f"Paper: the figures of the paper (arXiv {self.arxiv}). {EQUAL}: the same."
        return table, caption if self.paper_grid is not None else ""

    def document(self) -> dict[str, Any]:
        """Build a row for each of ours, JSON-ready."""
        return {
            "title": self.title,
            "arxiv": self.arxiv,
            "columns": list(self.own_grid.columns),
            "rows": [
                {
                    "row": name,
                    "values": list(figures),
                    "published": self._paper_figures(name),
                    "differences": self._differences(name),
                }
                for name, figures in self.own_grid.rows.items()
            ],
        }

    def _paper_figures(self, row: str) -> list[float | None]:
        return [
            None if self.paper_grid is None else self.paper_grid.figure(row, column) for column in self.own_grid.columns
        ]

    def _differences(self, row: str) -> list[float | None]:
        """Subtract the paper's figures from ours, in the decimals of ours."""
        pairs = zip(self.own_grid.rows[row], self._paper_figures(row), strict=True)
        return [
            None if own_figure is None or paper_figure is None else round(own_figure - paper_figure, 6) + 0.0
            for own_figure, paper_figure in pairs
        ]


def _text(figure: float | None, *, sign: bool = False) -> str:
    if figure is None:
        return NONE
    number = f"{figure:,.0f}" if figure == int(figure) and abs(figure) >= 1 else f"{figure:.2f}"
    return f"+{number}" if sign and figure > 0 else number
