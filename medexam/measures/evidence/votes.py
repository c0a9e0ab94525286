"""Votes: the answers of several replies to a question, or of a program's branches; pass@k, and accuracy of fewer."""

from collections import Counter
from collections.abc import Sequence
from math import comb, fsum

from medexam.distributions import WILSON
from medexam.measures.evidence.figures import Figures, Rows, accuracy_of, show_accuracy
from medexam.tables import Table, percent

Ballots = Sequence[tuple[tuple[int | None, ...], list[bool]]]
"""The votes on each question, and whether each is right."""


def measure(rows: Rows) -> Figures | None:
    """Measure the questions that have votes; None if none has.

    `samples`: replies to a question. `agreement`: the winner's share of them on average. `unanimous`: the share of the
    questions whose replies all give the same answer. `no_answer`: the share of the replies without a legal one.
    `curve`: how a run would score with one reply, two, and so on. Its `accuracy` is that of the commonest answer among
    the first replies, where no answer is not right; for `pass_at` see there.
    """
    ballots = [(one.votes, [gold.accepts(vote) for vote in one.votes]) for one, gold in rows if one.votes]
    if not ballots:
        return None
    n, samples = len(ballots), min(len(votes) for votes, _ in ballots)
    return {
        "n": n,
        "samples": samples,
        "agreement": fsum(_agreement(votes) for votes, _ in ballots) / n,
        "unanimous": sum(len(set(votes)) == 1 and votes[0] is not None for votes, _ in ballots) / n,
        "no_answer": fsum(votes.count(None) / len(votes) for votes, _ in ballots) / n,
        "curve": [_point(ballots, k) for k in range(1, samples + 1)],
    }


def majority(votes: Sequence[int | None]) -> int | None:
    """Find the commonest answer, of equals the first; None if there is none."""
    counts = Counter(vote for vote in votes if vote is not None)
    return max(counts, key=counts.__getitem__) if counts else None


def pass_at(k: int, n: int, right: int) -> float:
    """Compute the probability that one of `k` replies drawn from `n` is right, of which `right` are.

    Chen et al. (2021), "Evaluating Large Language Models Trained on Code", equation 1.
    """
    return 1.0 - comb(n - right, k) / comb(n, k)


def _agreement(votes: Sequence[int | None]) -> float:
    """Compute the winner's share of all replies."""
    winner = majority(votes)
    return 0.0 if winner is None else votes.count(winner) / len(votes)


def _point(ballots: Ballots, k: int) -> Figures:
    right = sum(rights[votes.index(winner)] for votes, rights in ballots if (winner := majority(votes[:k])) is not None)
    passed = fsum(pass_at(k, len(votes), sum(rights)) for votes, rights in ballots) / len(ballots)
    return {"samples": k, **accuracy_of(right, len(ballots)), "pass_at": passed}


def tables(figures: Figures) -> list[Table]:
    """Show how the score grows with the number of replies, at powers of two."""
    last = figures["samples"]
    points = [each for each in figures["curve"] if each["samples"].bit_count() == 1 or each["samples"] == last]
    rows = tuple((str(each["samples"]), show_accuracy(each), percent(each["pass_at"])) for each in points)
    caption = (
        f"Percent of n = {figures['n']:,}. Accuracy: of the commonest answer among the first replies ({WILSON}). "
        "pass@k: how likely one of them is right. The commonest answer has "
        f"{percent(figures['agreement'])} % of the replies on average. All agree on {percent(figures['unanimous'])} % "
        f"of the questions. {percent(figures['no_answer'])} % of the replies hold no legal answer."
    )
    return [Table("By number of replies", ("Replies", "Accuracy", "pass@k"), rows, caption=caption)]
