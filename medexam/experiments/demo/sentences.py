"""What the study found, in sentences whose figures are those of the paired tests and of no hand."""

from collections.abc import Sequence

from medexam.experiments.compare.result import Comparison
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.shown import signed
from medexam.measures.verdicts import describe_views, find_case, turn
from medexam.tables import equals, percent
from medexam.text import count_of

_BASE = "zero_shot-guided"


def study_sentences(runs: Sequence[StoredRun]) -> list[str]:
    """Describe what guided answers, chain-of-thought, passages and Spanish change, and which way is best.

    Each difference is said with the p of McNemar's test, after Holm over all ways in English.
    """
    base = _base(runs, "en")
    english = [run for run in runs if run.record.cell.dataset.language == "en" and run is not base]
    ways = compare_runs((base.folder, *(run.folder for run in english)))
    spanish = compare_runs((base.folder, _base(runs, "es").folder))
    labels = [run.record.cell.program.label for run in english]

    def said(label: str, subject: str, reverse: bool = False) -> str:
        return describe(subject, ways, labels.index(label), reverse=reverse)

    best = max([base, *english], key=lambda run: run.score or 0)
    accuracy = best.metrics.measure("accuracy")
    return [
        said("zero_shot", "Guided answers instead of free ones", reverse=True),
        said("chain_of_thought-guided", "Chain-of-thought"),
        said("retrieve_then_answer-guided-bm25", "Two retrieved passages"),
        said("few_shot-guided", "Demonstrations"),
        describe("Spanish instead of English", spanish, 0),
        f"The best way, {best.record.cell.program.label}, has {percent(accuracy.value)} % right; chance is "
        f"{percent(accuracy.chance)} %.",
    ]


def describe(subject: str, comparison: Comparison, place: int, *, reverse: bool = False) -> str:
    """Say in a sentence by how much the pair at `place` differs in accuracy, `reverse`: the baseline from the other."""
    pair = comparison.statistics.pairs[place]
    pair = turn(pair) if reverse else pair
    case, first = find_case(pair), pair.first
    p = f"p {equals(first.p_adjusted or 0.0)}"
    if case.result is None:
        scored = f"{signed(first.difference)} points ({p})"
        views = describe_views(pair, comparison.statistics.measure, adjusted=True)
        return f"{subject}: the form of the replies decides: {scored}, {views}."
    if case.verdict == "not told apart":
        return f"{subject}: no difference shown ({signed(first.difference)} points, {p})."
    size = count_of(round(abs(100 * first.difference.value)), "point")
    return f"{subject}: right {size} {'more' if case.verdict == 'better' else 'less'} often ({p})."


def _base(runs: Sequence[StoredRun], language: str) -> StoredRun:
    cells = ((run, run.record.cell) for run in runs)
    return next(run for run, cell in cells if (cell.program.label, cell.dataset.language) == (_BASE, language))
