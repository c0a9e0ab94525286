"""Verdicts: whether a verifier kept a question's passages, and whether these support its answer."""

from medexam.distributions import WILSON
from medexam.measures.evidence.figures import Figures, Rows, rate_of, show_figures
from medexam.tables import Table, percent


def measure(rows: Rows) -> Figures | None:
    """Measure the questions whose passages were judged; None if none was.

    `passages`: those that were judged. `kept`: those of them that were kept. `none_kept`: questions without a kept one.
    `supported` and `unsupported`: the questions of each verdict on the answer, how many of their answers were
    `withdrawn`, and the accuracy of those that stand.
    """
    candidates = [
        (one, gold, [passage.kept for passage in one.passages or () if passage.kept is not None]) for one, gold in rows
    ]
    cases = [case for case in candidates if case[0].supported is not None or case[2]]
    if not cases:
        return None
    figures: Figures = {
        "n": len(cases),
        "passages": sum(len(verdicts) for _, _, verdicts in cases),
        "kept": sum(sum(verdicts) for _, _, verdicts in cases),
        "none_kept": sum(not any(verdicts) for _, _, verdicts in cases),
    }
    for name, verdict in (("supported", True), ("unsupported", False)):
        answers = [(one.answer, gold) for one, gold, _ in cases if one.supported is verdict]
        rights = [gold.accepts(answer) for answer, gold in answers if answer is not None]
        counts = {"n": len(answers), "withdrawn": len(answers) - len(rights)}
        figures[name] = counts | rate_of(sum(rights), len(rights))
    return figures


def tables(figures: Figures) -> list[Table]:
    """Show the answers by the verifier's verdict."""
    passages, drop_count = figures["passages"], figures["passages"] - figures["kept"]
    share = f" ({percent(drop_count / passages)} %)" if passages else ""
    caption = (
        f"The verifier dropped {drop_count:,} of {passages:,} passages{share}; none was left for "
        f"{figures['none_kept']:,} of n = {figures['n']:,} questions. Accuracy: percent of the answers that stand "
        f"({WILSON})."
    )
    parts = [{"verdict": name, **figures[name]} for name in ("supported", "unsupported")]
    columns = {"Verdict": "verdict", "n": "n", "Withdrawn": "withdrawn", "Accuracy": "accuracy"}
    return [show_figures("Answers by the verifier's verdict", parts, columns, caption)]
