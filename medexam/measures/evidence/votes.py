"""Votes: the answers of several replies to a question, or of a program's branches; pass@k, and accuracy of fewer."""

from collections import Counter
from collections.abc import Sequence
from math import comb, fsum

from medexam.distributions import WILSON
from medexam.measures.evidence.figures import Figures, Rows, rate_of, show_figures
from medexam.tables import Table, percent


def measure(rows: Rows) -> Figures | None:
    """Measure the questions that have votes; None if none has.

    `samples`: replies to a question. `agreement`: the winner's share of them on average. `unanimous`: the share of the
    questions whose replies all give the same answer. `no_answer`: the share of the replies without a legal one.
    `curve`: how a run would score with one reply, two, and so on. Its `accuracy` is that of the commonest answer among
    the first replies, where no answer is not right. `pass_at`: how likely one of so many replies drawn is right (Chen
    et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1).
    """
    ballots = [(one.votes, gold) for one, gold in rows if one.votes]
    if not ballots:
        return None
    n, samples = len(ballots), min(len(votes) for votes, _ in ballots)
    right_counts = [(len(votes), sum(map(gold.accepts, votes))) for votes, gold in ballots]
    winners = [(votes, majority(votes)) for votes, _ in ballots]
    return {
        "n": n,
        "samples": samples,
        "agreement": fsum(0.0 if won is None else votes.count(won) / len(votes) for votes, won in winners) / n,
        "unanimous": sum(len(set(votes)) == 1 and votes[0] is not None for votes, _ in ballots) / n,
        "no_answer": fsum(votes.count(None) / len(votes) for votes, _ in ballots) / n,
        "curve": [
            {"samples": k, "n": n}
            | rate_of(sum(gold.accepts(majority(votes[:k])) for votes, gold in ballots), n)
            | {"pass_at": fsum(1.0 - comb(size - right, k) / comb(size, k) for size, right in right_counts) / n}
            for k in range(1, samples + 1)
        ],
    }


def majority(votes: Sequence[int | None]) -> int | None:
    """Find the commonest answer, of equals the first; None if there is none."""
    counts = Counter(vote for vote in votes if vote is not None)
    return max(counts, key=counts.__getitem__) if counts else None


def tables(figures: Figures) -> list[Table]:
    """Show how the score grows with the number of replies, at powers of two."""
    last = figures["samples"]
    points = [each for each in figures["curve"] if each["samples"].bit_count() == 1 or each["samples"] == last]
    caption = (
        f"Percent of n = {figures['n']:,}. Accuracy: of the commonest answer among the first replies ({WILSON}). "
        "pass@k: how likely one of them is right. The commonest answer has "
        f"{percent(figures['agreement'])} % of the replies on average. All agree on {percent(figures['unanimous'])} % "
        f"of the questions. {percent(figures['no_answer'])} % of the replies hold no legal answer."
    )
    columns = {"Replies": "samples", "Accuracy": "accuracy", "pass@k": "pass_at"}
    return [show_figures("By number of replies", points, columns, caption)]
