"""`medexam compare --item-response`: which questions tell runs apart, and which keys people should look at again."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.tables import NONE, Table, coefficient, percent
from medexam_companions.analysis.fitting import Floats, ItemFit, fit_items

SHOWN = 10
"""Questions of each kind in the table; `--json` holds all."""
FEW_RUNS = 100
"""With fewer runs the fit is called weak; guides for the two-parameter model ask for some hundred."""
FEWEST_STRONG = 3
USELESS = 0.35
"""Discriminations under this are very low (Baker 2001, "The basics of item response theory")."""
_FLAT = 0.2
"""A difficulty is not given for smaller discriminations: it is their inverse, and has no meaning."""
_QUANTILE = 1.959963984540054


def strong_runs(fit: ItemFit) -> list[int]:
    """List the positions of the upper half of the runs by ability, the strongest first, three or more."""
    count = max(FEWEST_STRONG, (len(fit.abilities) + 1) // 2)
    return [int(run) for run in np.argsort(-fit.abilities, kind="stable")[:count]]


def judge_items(
    fit: ItemFit, right: Floats, answers: Sequence[Sequence[int | None]], chances: Sequence[float]
) -> list[dict[str, Any]]:
    """Judge every question; row i of `right` and `answers` is run i, column j question j.

    `chances[j]` is how likely a uniform choice has question j right. A row has how many runs have it `right`; its
    `discrimination` and the `standard_error` of that, None if the runs hold no information on it; its `difficulty`, the
    ability that has it right in half of all cases, None if it hardly discriminates; how likely the `strongest` run has
    it right, and whether that is less than a uniform choice has (`hard`); whether the whole 95 % interval of the
    discrimination is very low or negative (`useless`); and the wrong option that all strong runs choose (`suspicious`).
    """
    strong, strongest = strong_runs(fit), fit.chances(float(fit.abilities.max()))
    rows = []
    for column, chance in enumerate(chances):
        choices = {answers[run][column] for run in strong}
        wrong = not right[strong, column].any() and len(choices) == 1
        slope, error = float(fit.discriminations[column]), float(fit.discrimination_sds[column])
        rows.append(
            {
                "right": int(right[:, column].sum()),
                "discrimination": slope,
                "standard_error": error if np.isfinite(error) else None,
                "difficulty": -float(fit.intercepts[column]) / slope if abs(slope) >= _FLAT else None,
                "strongest": float(strongest[column]),
                "hard": bool(strongest[column] < chance),
                "useless": slope + _QUANTILE * error < USELESS,
                "suspicious": next(iter(choices)) if wrong else None,
            }
        )
    return rows


def find_item_response(compared: ComparisonScope) -> ComparisonSection:
    """Fit the model; raises `SpecError` for runs in words, and for fewer than three."""
    if not compared.benchmark.right_or_wrong:
        raise SpecError("--item-response needs right or wrong answers; these runs answer in words: leave it out")
    if len(compared.folders) < 3:
        raise SpecError("--item-response needs three runs or more: name others, or leave it out")
    right, keys = compared.scored.first, list(compared.scored.keys)
    answers = [[run[key].answer for key in keys] for run in compared.predictions]
    chances: dict[str, float] = {question.key: 1 / len(question.options) for question in compared.items}
    fit, runs, golds = fit_items(right), len(compared.folders), compared.sets[0].golds
    fitted = dict(zip(keys, judge_items(fit, right, answers, [chances[key] for key in keys]), strict=True))
    by_slope = sorted(keys, key=lambda key: fitted[key]["discrimination"])
    kinds = {
        "suspicious": [key for key in by_slope if fitted[key]["suspicious"] is not None],
        "useless": [key for key in by_slope if fitted[key]["useless"]],
        "hard": sorted((key for key in by_slope if fitted[key]["hard"]), key=lambda key: fitted[key]["strongest"]),
    }
    rows = tuple(
        (
            *(key, kind, str(golds[key].number), str(fitted[key]["suspicious"] or NONE), str(fitted[key]["right"])),
            f"{fitted[key]['discrimination']:+.2f}",
            coefficient(fitted[key]["standard_error"]),
            percent(fitted[key]["strongest"]),
        )
        for kind, listed in kinds.items()
        for key in listed[:SHOWN]
    )
    strong, is_weak = strong_runs(fit), runs < FEW_RUNS
    caption = (
        f"The first {SHOWN} of each kind; --json has all. Suspicious: all {len(strong)} strong runs "
        "choose the same wrong option: the key may be wrong, or the question is a trap, or they are of one model. "
        "People have to look. Useless: weak runs have them right as often as strong ones, or more often: 95 % "
        f"interval of the discrimination under {USELESS}. Hard: the strongest run has them right less often than a "
        "uniform choice, by the model. SE: of the discrimination. Strongest: percent, of the strongest run."
    )
    headers = ("Question", "Kind", "Gold", "Chosen", "Right in", "Discrimination", "SE", "Strongest")
    counts = ", ".join(f"{len(kinds[kind])} {'may be' if is_weak else 'are'} {kind}" for kind in reversed(kinds))
    remark = (
        f"The fit is weak: it has {runs} runs and needs {FEW_RUNS} or more. The lists are hints for a review, not "
        "results."
    )
    abilities = zip(compared.run_keys, fit.abilities, fit.ability_sds, strict=True)
    return ComparisonSection(
        "item_response",
        [*([remark] if is_weak else []), f"Of {len(keys)} questions, {counts}."],
        {
            "weak": is_weak,
            "abilities": {key: {"ability": float(mean), "sd": float(sd)} for key, mean, sd in abilities},
            "strong": [compared.run_keys[run] for run in strong],
            "questions": fitted,
        },
        [Table("Questions to review", headers, rows, text_columns=2, caption=caption)] if rows else [],
    )
