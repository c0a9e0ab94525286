"""The tables and figures that `medexam reproduce` makes or lists, as the papers' data files list them."""

from dataclasses import dataclass

from medexam.errors import SpecError
from medexam.text import nearest
from medexam_companions.papers.paper import Grid, Paper, PaperItem, all_papers


@dataclass(frozen=True)
class PaperEntry:
    """One table or figure of a paper."""

    paper: Paper
    id: str
    """`table-2` within its paper; empty if the paper has this one alone."""
    item: PaperItem

    @property
    def name(self) -> str:
        """What the command line calls it, such as `PAPER/table-2`."""
        return "/".join(filter(None, (self.paper.layout, self.id)))

    @property
    def number(self) -> int | None:
        """The number of the table; None for a figure."""
        kind, _, number = self.id.partition("-")
        return int(number) if kind == "table" else None

    @property
    def figures(self) -> Grid | None:
        """What the paper prints there; None if it prints no numbers."""
        return self.item.printed if self.number is None else self.paper.figures.get(self.number)

    @property
    def heading(self) -> str:
        """What stands above the table."""
        label = self.id.replace("-", " ").capitalize()
        return f"{label}: {self.item.title}" if label else self.item.title


def list_entries() -> list[PaperEntry]:
    """List every table and figure, paper by paper; one with an `obstacle` cannot be made."""
    return [PaperEntry(paper, name, item) for paper in all_papers() for name, item in paper.reproduce.items()]


def find_paper_entry(name: str) -> PaperEntry:
    """Find the entry that is made of that name.

    Raises `SpecError` naming the nearest ones if there is none, and the obstacle if it cannot be made.
    """
    entries = {entry.name: entry for entry in list_entries()}
    if name not in entries:
        near = nearest(name, entries, most=3, similarity=0.5)
        hint = f"did you mean {near}? " if near else ""
        raise SpecError(f"nothing is called {name!r}: {hint}`medexam reproduce --list` names all tables and figures")
    if obstacle := entries[name].item.obstacle:
        raise SpecError(f"{name} ({entries[name].item.title}) is not made: {obstacle}")
    return entries[name]
