"""What votes tell, against counting by hand and over all choices of replies."""

from collections import Counter
from itertools import combinations

import pytest

from evidence_figures import figures
from medexam.measures import compute_metrics
from medexam.predictions import Prediction, Reason, Status

VOTES = [(1, 1, 2, 1), (2, 1, 1, None), (2, 2, 3, 1), (None, None, None, None)]


def majority(votes) -> int | None:
    """The commonest answer, of equals the first."""
    counts = Counter(vote for vote in votes if vote is not None)
    return counts.most_common(1)[0][0] if counts else None


@pytest.fixture
def scored(make_exam, key_of):
    """Four questions, of each of which option 1 is right, and their votes."""
    questions = make_exam("biology", 2013, size=4, options=4)
    predictions = {}
    for question, votes in zip(questions, VOTES, strict=True):
        answer = majority(votes)
        outcome = {"status": Status.ANSWERED, "answer": answer}
        if answer is None:
            outcome = {"status": Status.UNANSWERED, "reason": Reason.UNPARSED}
        predictions[question.key] = Prediction(
            question=question.key, program="p", spec_digest="d", votes=votes, **outcome
        )
    return questions, key_of(questions), predictions


def test_the_curve_is_that_of_the_first_replies(scored) -> None:
    metrics = compute_metrics(*scored)
    votes = figures(metrics, "votes")
    assert (votes.samples, votes.n) == (4, 4)
    assert [point.accuracy for point in votes.curve] == [
        sum(majority(votes[:k]) == 1 for votes in VOTES) / 4 for k in (1, 2, 3, 4)
    ]
    assert votes.agreement == pytest.approx((3 / 4 + 2 / 4 + 2 / 4 + 0) / 4)
    assert votes.unanimous == 0
    assert votes.no_answer == pytest.approx(5 / 16)
    assert metrics.measure("accuracy").value == votes.curve[-1].accuracy


def test_pass_at_k_is_the_share_of_choices_with_a_right_reply(scored) -> None:
    for point in figures(compute_metrics(*scored), "votes").curve:
        shares = []
        for votes in VOTES:
            drawn = list(combinations(votes, point.samples))
            shares.append(sum(1 in one for one in drawn) / len(drawn))
        assert point.pass_at == pytest.approx(sum(shares) / 4)
