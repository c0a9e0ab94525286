"""Citations: the passage that a reply names for its answer."""

from medexam.measures.evidence.figures import Figures, Rows, show_figures
from medexam.tables import Table


def measure(rows: Rows) -> Figures | None:
    """Measure the questions with a legal answer of a program that cites; None if it cites nothing.

    `named`: answers that name a passage. `refused`: those that say that none supports them.
    """
    if all(one.cited is None for one, _ in rows):
        return None
    answered = [one for one, _ in rows if one.answer is not None]
    return {
        "n": len(answered),
        "named": sum(bool(one.cited) for one in answered),
        "refused": sum(one.cited == 0 for one in answered),
    }


def tables(figures: Figures) -> list[Table]:
    """Show what the answers cite, in one row."""
    n = figures["n"]
    part = {**figures, "none": n - figures["named"] - figures["refused"]}
    columns = {"Name a passage": "named", "Say that none supports": "refused", "No citation": "none"}
    return [show_figures("Citations", [part], columns, f"Counts of n = {n:,} answers.")]
