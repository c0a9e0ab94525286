"""The queries that a model wrote itself, round by round, and what they found."""

from math import fsum

from medexam.measures.evidence.figures import Figures, Rows
from medexam.tables import Table, decimal


def measure(rows: Rows) -> Figures | None:
    """Measure the questions of a program that writes queries; None if it writes none.

    `rounds`: those with a query, of a question on average; `queries` and different `passages` likewise. `none`:
    questions for which no query was written.
    """
    searches = [(one, one.rounds) for one, _ in rows if one.rounds is not None]
    if not searches:
        return None
    n = len(searches)
    return {
        "n": n,
        "rounds": fsum(len(rounds) for _, rounds in searches) / n,
        "queries": fsum(sum(map(len, rounds)) for _, rounds in searches) / n,
        "passages": fsum(len(one.passages or ()) for one, _ in searches) / n,
        "none": sum(not rounds for _, rounds in searches),
    }


def tables(figures: Figures) -> list[Table]:
    """Show what the model looked up, in one row."""
    row = (*(decimal(figures[name], 2) for name in ("rounds", "queries", "passages")), str(figures["none"]))
    caption = (
        f"Means of each question, n = {figures['n']:,}; a passage is counted once. The last column counts questions."
    )
    headers = ("Rounds", "Queries", "Passages", "Without a query")
    return [Table("What the model looked up", headers, (row,), caption=caption)]
