"""`medexam compare --item-response`: which questions tell runs apart, and which keys people should look at again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.tables import NONE, Captioned, Table, percent
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


@dataclass(frozen=True)
class ItemQuality:
    """One question."""

    right: int
    """Runs that have it right."""
    discrimination: float
    standard_error: float | None
    """Of the discrimination; None if the runs hold no information on it."""
    difficulty: float | None
    """The ability that has it right in half of all cases; None if it hardly discriminates."""
    strongest: float
    """How likely the strongest run has it right."""
    hard: bool
    """Whether that is less than a uniform choice has."""
    useless: bool
    """Whether its discrimination is very low or negative, with its whole 95 % interval."""
    suspicious: int | None
    """The wrong option that all strong runs choose; None if they do not."""


def strong_runs(fit: ItemFit) -> list[int]:
    """List the positions of the upper half of the runs by ability, the strongest first, three or more."""
    count = max(FEWEST_STRONG, (len(fit.abilities) + 1) // 2)
    return [int(run) for run in np.argsort(-fit.abilities, kind="stable")[:count]]


def judge_items(
    fit: ItemFit, right: Floats, answers: Sequence[Sequence[int | None]], chances: Sequence[float]
) -> list[ItemQuality]:
    """Judge every question; row i of `right` and `answers` is run i, column j question j.

    `chances[j]` is how likely a uniform choice has question j right.
    """
    strong = strong_runs(fit)
    strongest = fit.chances(float(fit.abilities.max()))
    qualities = []
    for column, chance in enumerate(chances):
        choices = {answers[run][column] for run in strong}
        wrong = not right[strong, column].any() and len(choices) == 1
        slope, error = float(fit.discriminations[column]), float(fit.discrimination_sds[column])
        qualities.append(
            ItemQuality(
                right=int(right[:, column].sum()),
                discrimination=slope,
                standard_error=error if np.isfinite(error) else None,
                difficulty=-float(fit.intercepts[column]) / slope if abs(slope) >= _FLAT else None,
                strongest=float(strongest[column]),
                hard=bool(strongest[column] < chance),
                useless=slope + _QUANTILE * error < USELESS,
                suspicious=next(iter(choices)) if wrong else None,
            )
        )
    return qualities


@dataclass(frozen=True)
class ItemResponse(ComparisonSection):
    """The fitted model."""

    fit: ItemFit
    accuracies: tuple[float, ...]
    """Of each run."""
    models: int
    """How many models asked by the strong runs there are, the controls' none counted as one."""
    questions: Mapping[str, ItemQuality]
    golds: Mapping[str, int]
    name = "item_response"

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """List abilities, then suspicious, useless and hard questions."""
        abilities = [
            (name, percent(accuracy), f"{ability:+.2f}", f"{sd:.2f}")
            for name, accuracy, ability, sd in sorted(
                zip(names, self.accuracies, self.fit.abilities, self.fit.ability_sds, strict=True),
                key=lambda run: -run[2],
            )
        ]
        caption = "Two-parameter logistic model. Ability: in standard deviations of all runs; SD: of its posterior."
        rows = [
            (
                *(key, kind, str(self.golds[key]), str(quality.suspicious or NONE), str(quality.right)),
                f"{quality.discrimination:+.2f}",
                NONE if quality.standard_error is None else f"{quality.standard_error:.2f}",
                percent(quality.strongest),
            )
            for kind, qualities in self._kinds().items()
            for key, quality in qualities[:SHOWN]
        ]
        review = (
            f"The first {SHOWN} of each kind; --json has all. Suspicious: all {len(strong_runs(self.fit))} strong runs "
            "choose the same wrong option: the key may be wrong, or the question is a trap. People have to look; "
            "nothing is changed. Useless: weak runs have them right as often as strong ones, or more often: 95 % "
            f"interval of the discrimination under {USELESS}. Hard: the strongest run has them right less often than a "
            "uniform choice, by the model. SE: of the discrimination. Strongest: percent, of the strongest run."
        )
        columns = ("Question", "Kind", "Gold", "Chosen", "Right in", "Discrimination", "SE", "Strongest")
        tables = [(Table("Abilities", ("Run", "Accuracy", "Ability", "SD"), tuple(abilities)), caption)]
        return [*tables, (Table("Questions to review", columns, tuple(rows), text_columns=2), review)][: 1 + bool(rows)]

    def sentences(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Write how sound the fit is, and how many questions there are of each kind."""
        errors = [each.standard_error for each in self.questions.values() if each.standard_error is not None]
        weak, kinds = len(self.accuracies) < FEW_RUNS, self._kinds()
        remarks = []
        if weak:
            remarks.append(
                f"The fit is weak: it has {len(self.accuracies)} runs and needs {FEW_RUNS} or more, and half of the "
                f"discriminations have a standard error over {f'{np.median(errors):.2f}' if errors else 'unknown'}. "
                "The lists are hints for a review, not results."
            )
        if self.models == 1 and kinds["suspicious"]:
            remarks.append("All strong runs are of one model, so its mistakes may look like wrong keys.")
        counts = ", ".join(f"{len(kinds[kind])} {'may be' if weak else 'are'} {kind}" for kind in reversed(kinds))
        return [*remarks, f"Of {len(self.questions)} questions, {counts}."]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the abilities by run and all findings of each question."""
        abilities = zip(keys, self.fit.abilities, self.fit.ability_sds, strict=True)
        return {
            "weak": len(self.accuracies) < FEW_RUNS,
            "abilities": {key: {"ability": float(mean), "sd": float(sd)} for key, mean, sd in abilities},
            "strong": [keys[index] for index in strong_runs(self.fit)],
            "questions": {key: asdict(quality) for key, quality in self.questions.items()},
        }

    def _kinds(self) -> dict[str, list[tuple[str, ItemQuality]]]:
        """Select the questions of each kind, the lowest discrimination or the hardest first."""
        qualities = sorted(self.questions.items(), key=lambda pair: pair[1].discrimination)
        return {
            "suspicious": [pair for pair in qualities if pair[1].suspicious is not None],
            "useless": [pair for pair in qualities if pair[1].useless],
            "hard": sorted((pair for pair in qualities if pair[1].hard), key=lambda pair: pair[1].strongest),
        }


def find_item_response(compared: ComparisonScope) -> ItemResponse:
    """Fit the model; raises `SpecError` for runs in words, and for fewer than three."""
    if not compared.benchmark.right_or_wrong:
        raise SpecError(
            "--item-response needs answers that are right or wrong; these runs answer in words: leave it out"
        )
    cells = [folder.read_record().cell for folder in compared.folders]
    if len(cells) < 3:
        raise SpecError("--item-response needs three runs or more: name others, or leave it out")
    right, keys = compared.matrix, list(compared.scores[0])
    answers = [[run[key].answer for key in keys] for run in compared.predictions]
    chances: dict[str, float] = {question.key: 1 / len(question.options) for question in compared.items}  # type: ignore[attr-defined]
    fit = fit_items(right)
    strong = [cells[index] for index in strong_runs(fit)]
    golds = compared.sets[0].golds
    return ItemResponse(
        fit=fit,
        accuracies=tuple(map(float, right.mean(axis=1))),
        models=len({cell.model.label if cell.program.asks_model else None for cell in strong}),
        questions=dict(zip(keys, judge_items(fit, right, answers, [chances[key] for key in keys]), strict=True)),
        golds={key: golds[key].number for key in keys},
    )
