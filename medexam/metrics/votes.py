"""What several replies to a question tell: agreement, pass@k, and the accuracy of fewer of them.

Pure functions over the votes that a run kept. So one run of the most replies gives the curve over their number.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import comb, fsum

from medexam.items import AnswerKey
from medexam.metrics.intervals import rate_interval
from medexam.metrics.vote_results import EnsembleMetrics, MemberScore, VoteMetrics, VotePoint
from medexam.predictions import Prediction, Status
from medexam.questions import Question

Votes = tuple[int | None, ...]
MEMBERS = "members"
"""What an ensemble's predictions are read by: their votes are its members'."""


def vote_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> VoteMetrics | None:
    """The metrics of the predictions that hold votes; None if none does.

    Raises `DatasetError` if `key` lacks one of their questions.
    """
    found = [(votes, rights) for _, votes, rights in _votes(questions, key, predictions, of_members=False)]
    if not found:
        return None
    samples = min(len(votes) for votes, _ in found)
    return VoteMetrics(
        samples=samples,
        n=len(found),
        agreement=fsum(_agreement(votes) for votes, _ in found) / len(found),
        unanimous=sum(len(set(votes)) == 1 and votes[0] is not None for votes, _ in found) / len(found),
        no_answer=fsum(votes.count(None) / len(votes) for votes, _ in found) / len(found),
        curve=tuple(_point(found, k) for k in range(1, samples + 1)),
    )


def ensemble_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> EnsembleMetrics | None:
    """The metrics of the predictions that combine those of members; None if none does.

    Raises `DatasetError` if `key` lacks one of their questions.
    """
    found = list(_votes(questions, key, predictions, of_members=True))
    if not found:
        return None
    n = len(found)
    answers = [(votes, prediction.answer) for prediction, votes, _ in found]
    members = []
    for place in range(min(len(votes) for votes, _ in answers)):
        right = sum(rights[place] for _, _, rights in found)
        same = sum(votes[place] is not None and votes[place] == answer for votes, answer in answers)
        members.append(MemberScore(accuracy=right / n, accuracy_interval=rate_interval(right, n), same=same / n))
    return EnsembleMetrics(
        n=n,
        members=tuple(members),
        unanimous=sum(len(set(votes)) == 1 and votes[0] is not None for votes, _ in answers) / n,
        right_in_any=sum(any(rights) for _, _, rights in found) / n,
    )


def _votes(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction], *, of_members: bool
) -> Iterator[tuple[Prediction, Votes, list[bool]]]:
    """Each prediction with votes, the votes, and whether they are right; all of a run are members' or none is."""
    known = (predictions.get(question.key) for question in questions)
    voted = [one for one in known if one is not None and one.status is not Status.FAILED and one.votes]
    if any(one.read_by == MEMBERS for one in voted) == of_members:
        for prediction in voted:
            gold, votes = key[prediction.question], prediction.votes or ()
            yield prediction, votes, [gold.accepts(vote) for vote in votes]


def majority(votes: Sequence[int | None]) -> int | None:
    """The commonest answer, of equals the first; None if there is none."""
    counts = Counter(vote for vote in votes if vote is not None)
    return max(counts, key=counts.__getitem__) if counts else None


def pass_at(k: int, n: int, right: int) -> float:
    """The probability that one of `k` replies drawn from `n` is right, of which `right` are.

    Chen et al. (2021), "Evaluating Large Language Models Trained on Code", equation 1.
    """
    return 1.0 - comb(n - right, k) / comb(n, k)


def _agreement(votes: Votes) -> float:
    """The winner's share of all replies."""
    winner = majority(votes)
    return votes.count(winner) / len(votes) if winner is not None else 0.0


def _point(found: Sequence[tuple[Votes, list[bool]]], k: int) -> VotePoint:
    right = sum(rights[votes.index(winner)] for votes, rights in found if (winner := majority(votes[:k])) is not None)
    passed = fsum(pass_at(k, len(votes), sum(rights)) for votes, rights in found)
    return VotePoint(
        samples=k,
        accuracy=right / len(found),
        accuracy_interval=rate_interval(right, len(found)),
        pass_at=passed / len(found),
    )
