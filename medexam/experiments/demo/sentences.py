"""What the study found, in sentences whose figures are those of the paired tests and of no hand."""

from collections.abc import Sequence

from medexam.experiments.compare.result import Comparison
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.store.stored_run import AnyRun
from medexam.tables import percent
from medexam.text import count_of

LEVEL = 0.05
_BASE = "zero_shot-guided"


def study_sentences(runs: Sequence[AnyRun]) -> list[str]:
    """Describe what guided answers, chain-of-thought, passages and Spanish change, and which way is best.

    Each difference is said with the p of McNemar's test, after Holm over all ways in English.
    """
    base = _base(runs, "en")
    english = [run for run in runs if run.record.cell.dataset.language == "en" and run is not base]
    ways = compare_runs([base.folder, *(run.folder for run in english)])
    spanish = compare_runs([base.folder, _base(runs, "es").folder])
    labels = [run.record.cell.program.label for run in english]

    def said(label: str, subject: str, reverse: bool = False) -> str:
        return describe(subject, ways, labels.index(label), reverse=reverse)

    best = max([base, *english], key=lambda run: run.metrics.accuracy or 0)
    chance = getattr(best.metrics, "chance_accuracy", None)
    return [
        said("zero_shot", "Guided answers instead of free ones", reverse=True),
        said("chain_of_thought-guided", "Chain-of-thought"),
        said("retrieve_then_answer-guided-bm25", "Two retrieved passages"),
        said("few_shot-guided", "Demonstrations"),
        describe("Spanish instead of English", spanish, 0),
        f"The best way, {best.record.cell.program.label}, has {percent(best.metrics.accuracy)} % right; chance is "
        f"{percent(chance)} %.",
    ]


def describe(subject: str, comparison: Comparison, place: int, *, reverse: bool = False) -> str:
    """Say in a sentence by how much the pair at `place` differs in accuracy, `reverse`: the baseline from the other."""
    pair = comparison.statistics.paired[place]
    points = 100 * pair.paired.accuracy.value * (-1 if reverse else 1)
    p = "p < 0.001" if pair.p_adjusted < 0.001 else f"p = {pair.p_adjusted:.3f}"
    size = count_of(round(abs(points)), "point")
    if pair.p_adjusted >= LEVEL:
        return f"{subject}: no difference shown ({points:+.1f} points, {p})."
    return f"{subject}: right {size} {'more' if points > 0 else 'less'} often ({p})."


def _base(runs: Sequence[AnyRun], language: str) -> AnyRun:
    cells = ((run, run.record.cell) for run in runs)
    return next(run for run, cell in cells if (cell.program.label, cell.dataset.language) == (_BASE, language))
