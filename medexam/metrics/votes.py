"""What several replies to a question tell: agreement, pass@k, and the accuracy of fewer of them.

Pure functions over the votes that a run kept. So one run of the most replies gives the curve over their number.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import comb, fsum

from medexam.distributions import rate_interval
from medexam.items import AnswerKey
from medexam.metrics.vote_results import EnsembleMetrics, MemberScore, VoteMetrics, VotePoint
from medexam.predictions import Prediction, Status
from medexam.questions import Question

Votes = tuple[int | None, ...]
MEMBERS = "members"
"""What an ensemble's predictions are read by: their votes are its members'."""


def vote_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> VoteMetrics | None:
    """Compute the metrics of the predictions that hold votes; None if none does.

    Raises `DatasetError` if `key` lacks one of their questions.
    """
    ballots = [(votes, rights) for _, votes, rights in _votes(questions, key, predictions, of_members=False)]
    if not ballots:
        return None
    samples = min(len(votes) for votes, _ in ballots)
    return VoteMetrics(
        samples=samples,
        n=len(ballots),
        agreement=fsum(_agreement(votes) for votes, _ in ballots) / len(ballots),
        unanimous=sum(len(set(votes)) == 1 and votes[0] is not None for votes, _ in ballots) / len(ballots),
        no_answer=fsum(votes.count(None) / len(votes) for votes, _ in ballots) / len(ballots),
        curve=tuple(_point(ballots, k) for k in range(1, samples + 1)),
    )


def ensemble_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> EnsembleMetrics | None:
    """Compute the metrics of the predictions that combine those of members; None if none does.

    Raises `DatasetError` if `key` lacks one of their questions.
    """
    ballots = list(_votes(questions, key, predictions, of_members=True))
    if not ballots:
        return None
    n = len(ballots)
    answers = [(votes, prediction.answer) for prediction, votes, _ in ballots]
    members = []
    for place in range(min(len(votes) for votes, _ in answers)):
        right = sum(rights[place] for _, _, rights in ballots)
        same = sum(votes[place] is not None and votes[place] == answer for votes, answer in answers)
        members.append(MemberScore(accuracy=right / n, accuracy_interval=rate_interval(right, n), same=same / n))
    return EnsembleMetrics(
        n=n,
        members=tuple(members),
        unanimous=sum(len(set(votes)) == 1 and votes[0] is not None for votes, _ in answers) / n,
        right_in_any=sum(any(rights) for _, _, rights in ballots) / n,
    )


def _votes(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction], *, of_members: bool
) -> Iterator[tuple[Prediction, Votes, list[bool]]]:
    """Yield each prediction with votes, the votes, and whether they are right; all of a run are members' or none is."""
    candidates = (predictions.get(question.key) for question in questions)
    voters = [
        prediction
        for prediction in candidates
        if prediction is not None and prediction.status is not Status.FAILED and prediction.votes
    ]
    if any(prediction.read_by == MEMBERS for prediction in voters) == of_members:
        for prediction in voters:
            gold, votes = key[prediction.question], prediction.votes or ()
            yield prediction, votes, [gold.accepts(vote) for vote in votes]


def majority(votes: Sequence[int | None]) -> int | None:
    """Find the commonest answer, of equals the first; None if there is none."""
    counts = Counter(vote for vote in votes if vote is not None)
    return max(counts, key=counts.__getitem__) if counts else None


def pass_at(k: int, n: int, right: int) -> float:
    """Compute the probability that one of `k` replies drawn from `n` is right, of which `right` are.

    Chen et al. (2021), "Evaluating Large Language Models Trained on Code", equation 1.
    """
    return 1.0 - comb(n - right, k) / comb(n, k)


def _agreement(votes: Votes) -> float:
    """Compute the winner's share of all replies."""
    winner = majority(votes)
    return votes.count(winner) / len(votes) if winner is not None else 0.0


def _point(ballots: Sequence[tuple[Votes, list[bool]]], k: int) -> VotePoint:
    right = sum(rights[votes.index(winner)] for votes, rights in ballots if (winner := majority(votes[:k])) is not None)
    pass_sum = fsum(pass_at(k, len(votes), sum(rights)) for votes, rights in ballots)
    return VotePoint(
        samples=k,
        accuracy=right / len(ballots),
        accuracy_interval=rate_interval(right, len(ballots)),
        pass_at=pass_sum / len(ballots),
    )
