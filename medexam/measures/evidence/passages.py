"""Passages that were looked up for a question: their scores against correctness, and their sources.

A score is in the unit of the run's own retriever, so those of two retrievers cannot be compared.
"""

import math
from collections import Counter
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import LEVEL, WILSON
from medexam.measures.evidence.figures import Figures, Rows, rate_of, show_figures
from medexam.tables import NONE, Table, coefficient, with_interval

_FEWEST = 4
"""Questions for which Fisher's interval is finite."""
_SAME = 1e-9
"""Scores that differ by less, relative to their size, differ by rounding alone."""
SHOWN_SOURCES = 20
QUARTILES = ("1, lowest", "2", "3", "4, highest")
"""What the groups are called, from the lowest scores to the highest."""


def measure(rows: Rows) -> Figures | None:
    """Measure the questions whose prediction says what was found; None if there are none.

    The best passage is the first one; no answer is not right.

    `n`: questions with passages. `without_passages`: those whose query found none, which enter no other number. `cut`:
    those whose passages were cut, in part or all of them, because the context was too small. `score_correctness`: see
    there. `borders`: the quartiles of the best passages' scores (`numpy.quantile`, linear). `quartiles`: the range of
    scores and the accuracy of each group between them; a score on a border belongs to the group below it, and equal
    scores stay together. `by_source`, the most frequent first: `passages` of it, where one that two questions found
    counts twice, their `share`, and the accuracy of the `n` questions whose best passage is of it.
    """
    looked_up = [(one, one.passages, gold) for one, gold in rows if one.passages is not None]
    if not looked_up:
        return None
    hits = [(passages[0], gold.accepts(one.answer)) for one, passages, gold in looked_up if passages]
    scores, rights = np.array([best.score for best, _ in hits]), np.array([right for _, right in hits], dtype=bool)
    borders = np.quantile(scores, (0.25, 0.5, 0.75)) if hits else np.zeros(3)
    masks = [np.searchsorted(borders, scores, side="left") == place for place in range(4)]
    counts = Counter(passage.source for _, passages, _ in looked_up for passage in passages)
    best_of, right_of = (Counter(best.source for best, right in hits if right or every) for every in (True, False))
    return {
        "n": len(hits),
        "without_passages": len(looked_up) - len(hits),
        "score_correctness": score_correctness(scores, rights),
        "borders": borders.tolist() if hits else None,
        "quartiles": [
            {"low": float(scores[mask].min()) if n else None, "high": float(scores[mask].max()) if n else None, "n": n}
            | rate_of(int(rights[mask].sum()), n)
            for mask in masks
            for n in [int(mask.sum())]
        ],
        "by_source": [
            {"source": name, "passages": count, "share": count / counts.total(), "n": best_of[name]}
            | rate_of(right_of[name], best_of[name])
            for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ],
        "cut": sum(bool(one.passages_cut) for one, _, _ in looked_up),
    }


def score_correctness(scores: NDArray[np.float64], right: NDArray[np.bool_]) -> Figures | None:
    """Correlate each question's score with whether it is right: Pearson's `r` (point-biserial) and its `interval`.

    The interval is by Fisher's transformation and None where `r` is 1 or -1. None with fewer than four questions, and
    where the scores (but for rounding) or the outcomes are all the same. Correa-Guillén et al. (2025) report r = 0.07
    for MedCPT.
    """
    if len(scores) < _FEWEST or len(set(right.tolist())) < 2 or np.allclose(scores, scores[0], rtol=_SAME, atol=0.0):
        return None
    r = float(np.clip(np.corrcoef(scores, right.astype(float))[0, 1], -1, 1))
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) / math.sqrt(len(scores) - 3)
    ends = None if abs(r) == 1 else [math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)]
    return {"r": r, "interval": ends}


def tables(figures: Figures) -> list[Table]:
    """Show accuracy by quartile of the best passage's score, and by source."""
    caption = f"The score's correlation with being right cannot be computed, n = {figures['n']}."
    if (correlation := figures["score_correctness"]) is not None:
        r = with_interval(coefficient(correlation["r"]), correlation["interval"], coefficient)
        caption = (
            f"r = {r}, n = {figures['n']}: correlation of the score with "
            "being right (point-biserial; Correa-Guillén et al. 2025 report 0.07 for MedCPT)."
        )
    caption += " Groups by the best passage's score, in the retriever's own unit"
    if figures["borders"] is not None:
        borders = ", ".join(f"{border:.4g}" for border in figures["borders"])
        caption += f", with borders at its quartiles {borders} (numpy.quantile); equal scores stay together"
    caption += f". Accuracy: percent, unanswered counts as wrong, with a 95 % interval ({WILSON})."
    if figures["without_passages"]:
        caption += f" Questions whose query found nothing: {figures['without_passages']}."
    quartiles = [
        {**part, "name": name, "range": f"{part['low']:.4g} to {part['high']:.4g}" if part["n"] else NONE}
        for name, part in zip(QUARTILES, figures["quartiles"], strict=True)
    ]
    columns = {"Quartile": "name", "Score": "range", "n": "n", "Accuracy": "accuracy"}
    first = show_figures("Relevance quartiles", quartiles, columns, caption)
    sources = figures["by_source"]
    caption = (
        "Share: percent of the passages that were found. Best of: questions whose most relevant passage is of the "
        f"source. Accuracy: percent of these, with a 95 % interval ({WILSON}). Questions whose passages were cut to "
        f"fit the context: {figures['cut']}."
    )
    if len(sources) > SHOWN_SOURCES:
        caption += f" The {SHOWN_SOURCES} most frequent of {len(sources)} sources."
    columns = {"Source": "source", "Passages": "passages", "Share": "share", "Best of": "n", "Accuracy": "accuracy"}
    return [first, show_figures("Passages by source", sources[:SHOWN_SOURCES], columns, caption)]
