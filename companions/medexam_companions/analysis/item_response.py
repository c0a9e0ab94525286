"""`medexam compare --item-response`: which questions tell runs apart, and which keys people should look at again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.tables import NONE, Captioned, Table, coefficient, percent
from medexam_companions.analysis.fitting import ItemFit, fit_items
from medexam_companions.analysis.item_quality import (
    FEW_RUNS,
    USELESS,
    ItemQuality,
    judge_items,
    strong_runs,
    together,
)

SHOWN = 10
"""Questions of each kind in a table; `--json` holds all."""
DEPENDENT = 0.3
"""Runs whose residuals correlate by more are said to err together."""


@dataclass(frozen=True)
class ItemResponse(ComparisonSection):
    """The fitted model."""

    fit: ItemFit
    accuracies: tuple[float, ...]
    """Of each run."""
    models: int
    """How many models asked by the strong runs there are, the controls' none counted as one."""
    erring: tuple[int, int, float]
    """Two runs that err together most, by position, and their correlation."""
    questions: dict[str, ItemQuality]
    golds: dict[str, int]
    name = "item_response"

    @property
    def weak(self) -> bool:
        """Whether there are too few runs for a sound fit."""
        return len(self.accuracies) < FEW_RUNS

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """List abilities, then suspicious, useless and hard questions."""
        captioned_tables = [self._abilities(names), self._suspicious(), self._useless(), self._hard()]
        return [(table, caption) for table, caption in captioned_tables if table.rows]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write how sound the fit is, and how many questions there are of each kind."""
        standard_errors = [
            quality.standard_error for quality in self.questions.values() if quality.standard_error is not None
        ]
        error = f"{float(np.median(standard_errors)):.2f}" if standard_errors else "unknown"
        remarks = []
        if self.weak:
            remarks.append(
                f"The fit is weak: it has {len(self.accuracies)} runs and needs {FEW_RUNS} or more, and half of the "
                f"discriminations have a standard error over {error}. The lists are hints for a review, not results."
            )
        first, second, correlation = self.erring
        if correlation > DEPENDENT:
            remarks.append(
                f"{names[first]} and {names[second]} err together (residual correlation {coefficient(correlation)}), "
                "which the model does not allow for: standard errors are too small."
            )
        if self.models == 1 and self._of("suspicious"):
            remarks.append("All strong runs are of one model, so its mistakes may look like wrong keys.")
        are = "may be" if self.weak else "are"
        counts = ", ".join(f"{len(self._of(kind))} {are} {kind}" for kind in ("hard", "useless", "suspicious"))
        return [*remarks, f"Of {len(self.questions)} questions, {counts}."]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the abilities by run and all findings of each question."""
        abilities = zip(keys, self.fit.abilities, self.fit.ability_sds, strict=True)
        first, second, correlation = self.erring
        return {
            "weak": self.weak,
            "abilities": {key: {"ability": float(mean), "sd": float(sd)} for key, mean, sd in abilities},
            "strong": [keys[index] for index in strong_runs(self.fit)],
            "erring_together": {"runs": [keys[first], keys[second]], "correlation": correlation},
            "questions": {key: quality.model_dump(mode="json") for key, quality in self.questions.items()},
        }

    def _of(self, kind: str) -> list[tuple[str, ItemQuality]]:
        """Select the questions of a kind."""
        return [
            (key, quality) for key, quality in self.questions.items() if getattr(quality, kind) not in (None, False)
        ]

    def _abilities(self, names: Sequence[str]) -> Captioned:
        run_fits = zip(names, self.accuracies, self.fit.abilities, self.fit.ability_sds, strict=True)
        rows = tuple(
            (name, percent(accuracy), f"{ability:+.2f}", f"{sd:.2f}")
            for name, accuracy, ability, sd in sorted(run_fits, key=lambda run_fit: -run_fit[2])
        )
        caption = "Two-parameter logistic model. Ability: in standard deviations of all runs; SD: of its posterior."
        return Table("Abilities", ("Run", "Accuracy", "Ability", "SD"), rows), caption

    def _suspicious(self) -> Captioned:
        suspects = sorted(self._of("suspicious"), key=lambda pair: pair[1].discrimination)
        rows = [
            (key, str(self.golds[key]), str(quality.suspicious), str(quality.right), f"{quality.discrimination:+.2f}")
            for key, quality in suspects
        ]
        caption = (
            f"All {len(strong_runs(self.fit))} strong runs choose the same wrong option: the key may be wrong, or the "
            "question is a trap. The lowest discrimination comes first. People have to look; nothing is changed."
        )
        return self._table("Suspicious", ("Gold", "Chosen", "Right in", "Discrimination"), rows, caption)

    def _useless(self) -> Captioned:
        useless_questions = sorted(self._of("useless"), key=lambda pair: pair[1].discrimination)
        rows = [
            (
                key,
                str(quality.right),
                f"{quality.discrimination:+.2f}",
                NONE if quality.standard_error is None else f"{quality.standard_error:.2f}",
            )
            for key, quality in useless_questions
        ]
        caption = f"Weak runs have them right as often as strong ones, or more often: 95 % interval under {USELESS}."
        return self._table("Useless", ("Right in", "Discrimination", "SE"), rows, caption)

    def _hard(self) -> Captioned:
        hard_questions = sorted(self._of("hard"), key=lambda pair: pair[1].strongest)
        rows = [(key, str(quality.right), percent(quality.strongest)) for key, quality in hard_questions]
        caption = "The strongest run has them right less often than a uniform choice, by the model."
        return self._table("Hard", ("Right in", "Strongest run, %"), rows, caption)

    def _table(self, kind: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]], caption: str) -> Captioned:
        """Build a table of the first questions of a kind, the key of each before the columns."""
        count = f"first {SHOWN} of {len(rows)}" if len(rows) > SHOWN else str(len(rows))
        title = f"{kind} questions{' to review' if self.weak else ''} ({count})"
        note = " --json has all." if len(rows) > SHOWN else ""
        return Table(title, ("Question", *columns), tuple(rows[:SHOWN])), caption + note


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
    qualities = judge_items(fit, right, answers, [chances[key] for key in keys])
    strong = [cells[index] for index in strong_runs(fit)]
    golds = compared.sets[0].golds
    return ItemResponse(
        fit=fit,
        accuracies=tuple(map(float, right.mean(axis=1))),
        models=len({cell.model.label if cell.program.asks_model else None for cell in strong}),
        erring=together(fit, right),
        questions=dict(zip(keys, qualities, strict=True)),
        golds={key: golds[key].number for key in keys},
    )
