"""Citations: the passage that a reply names for its answer, and whether that entails it."""

from math import fsum

from medexam.distributions import WILSON
from medexam.measures.evidence.figures import Figures, Rows, rate_of, show_figures
from medexam.tables import Table

ENTAILED = 0.5
"""The probability from which a passage entails an answer."""


def measure(rows: Rows) -> Figures | None:
    """Measure the questions with a legal answer of a program that cites; None if it cites nothing.

    `named`: answers that name a passage. `refused`: those that say that none supports them. `scored`: citations that a
    reader scored. `entailing`: those of them whose passage entails the answer with a probability of `ENTAILED` or more.
    `mean_support`: their mean probability.
    """
    if all(one.cited is None for one, _ in rows):
        return None
    answered = [one for one, _ in rows if one.answer is not None]
    supports = [one.cited_support for one in answered if one.cited_support is not None]
    entailing = sum(support >= ENTAILED for support in supports)
    return {
        "n": len(answered),
        "named": sum(bool(one.cited) for one in answered),
        "refused": sum(one.cited == 0 for one in answered),
        "scored": len(supports),
        **rate_of(entailing, len(supports), "entailing"),
        "entailing": entailing,
        "mean_support": fsum(supports) / len(supports) if supports else None,
    }


def tables(figures: Figures) -> list[Table]:
    """Show what the answers cite, in one row."""
    n, scored = figures["n"], figures["scored"]
    part = {**figures, "none": n - figures["named"] - figures["refused"]}
    part["entailing"] = figures["entailing"] / scored if scored else None
    caption = (
        f"Counts of n = {n:,} answers. Entailing: percent of the scored citations whose passage entails the answer "
        f"with a probability of {ENTAILED:g} or more, by program.reader ({WILSON})."
    )
    if figures["mean_support"] is not None:
        caption += f" Mean probability: {figures['mean_support']:.3f}."
    columns = {"Name a passage": "named", "Say that none supports": "refused", "No citation": "none"}
    return [show_figures("Citations", [part], columns | {"Scored": "scored", "Entailing": "entailing"}, caption)]
