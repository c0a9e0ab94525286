"""`medexam compare --item-response`: which questions tell runs apart, and which keys people should look at again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.tables import NONE, Table, percent
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


@dataclass(frozen=True)
class ItemResponse:
    """The fitted model."""

    fit: ItemFit
    questions: Mapping[str, dict[str, Any]]
    """What `judge_items` says of each."""
    golds: Mapping[str, int]
    name = "item_response"

    def tables(self, names: Sequence[str]) -> list[Table]:  # noqa: ARG002
        """List suspicious, useless and hard questions."""
        rows = [
            (
                *(key, kind, str(self.golds[key]), str(row["suspicious"] or NONE), str(row["right"])),
                f"{row['discrimination']:+.2f}",
                NONE if row["standard_error"] is None else f"{row['standard_error']:.2f}",
                percent(row["strongest"]),
            )
            for kind, keys in self._kinds().items()
            for key, row in ((key, self.questions[key]) for key in keys[:SHOWN])
        ]
        caption = (
            f"The first {SHOWN} of each kind; --json has all. Suspicious: all {len(strong_runs(self.fit))} strong runs "
            "choose the same wrong option: the key may be wrong, or the question is a trap, or they are of one model. "
            "People have to look. Useless: weak runs have them right as often as strong ones, or more often: 95 % "
            f"interval of the discrimination under {USELESS}. Hard: the strongest run has them right less often than a "
            "uniform choice, by the model. SE: of the discrimination. Strongest: percent, of the strongest run."
        )
        columns = ("Question", "Kind", "Gold", "Chosen", "Right in", "Discrimination", "SE", "Strongest")
        return [Table("Questions to review", columns, tuple(rows), text_columns=2, caption=caption)] if rows else []

    def sentences(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Write how sound the fit is, and how many questions there are of each kind."""
        weak, kinds = len(self.fit.abilities) < FEW_RUNS, self._kinds()
        counts = ", ".join(f"{len(kinds[kind])} {'may be' if weak else 'are'} {kind}" for kind in reversed(kinds))
        remark = (
            f"The fit is weak: it has {len(self.fit.abilities)} runs and needs {FEW_RUNS} or more. The lists are hints "
            "for a review, not results."
        )
        return [*([remark] if weak else []), f"Of {len(self.questions)} questions, {counts}."]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the abilities by run and all findings of each question."""
        abilities = zip(keys, self.fit.abilities, self.fit.ability_sds, strict=True)
        return {
            "weak": len(self.fit.abilities) < FEW_RUNS,
            "abilities": {key: {"ability": float(mean), "sd": float(sd)} for key, mean, sd in abilities},
            "strong": [keys[index] for index in strong_runs(self.fit)],
            "questions": dict(self.questions),
        }

    def _kinds(self) -> dict[str, list[str]]:
        """Select the questions of each kind, the lowest discrimination or the hardest first."""
        keys = sorted(self.questions, key=lambda key: self.questions[key]["discrimination"])
        return {
            "suspicious": [key for key in keys if self.questions[key]["suspicious"] is not None],
            "useless": [key for key in keys if self.questions[key]["useless"]],
            "hard": sorted(
                (key for key in keys if self.questions[key]["hard"]), key=lambda key: self.questions[key]["strongest"]
            ),
        }


def find_item_response(compared: ComparisonScope) -> ComparisonSection:
    """Fit the model; raises `SpecError` for runs in words, and for fewer than three."""
    if not compared.benchmark.right_or_wrong:
        raise SpecError("--item-response needs right or wrong answers; these runs answer in words: leave it out")
    if len(compared.folders) < 3:
        raise SpecError("--item-response needs three runs or more: name others, or leave it out")
    right, keys = compared.scored.first, list(compared.scored.keys)
    answers = [[run[key].answer for key in keys] for run in compared.predictions]
    chances: dict[str, float] = {question.key: 1 / len(question.options) for question in compared.items}
    fit = fit_items(right)
    part = ItemResponse(
        fit=fit,
        questions=dict(zip(keys, judge_items(fit, right, answers, [chances[key] for key in keys]), strict=True)),
        golds={key: compared.sets[0].golds[key].number for key in keys},
    )
    names, run_keys = compared.names, compared.run_keys
    return ComparisonSection(part.name, part.sentences(names), part.document(run_keys), part.tables(names))
