"""How several answers become one, against NumPy written out here."""

import numpy as np
import pytest

from medexam.predictions import Prediction, Reason, Status
from medexam.programs import build_prediction, combine
from medexam.questions import Option


def answered(question, answer, scores=None):
    outcome = (
        {"status": Status.UNANSWERED, "reason": Reason.UNPARSED}
        if answer is None
        else {"status": Status.ANSWERED, "answer": answer}
    )
    named = None if scores is None else dict(zip(question.option_numbers, map(float, scores), strict=True))
    return Prediction(question=question.key, program="p", spec_digest="d", option_scores=named, **outcome)


def ask(question, found, rule):
    said = combine(question, found, rule)
    return build_prediction(question, said, program="e", spec_digest="d", latency_s=0.0)


@pytest.fixture
def four(question):
    return question.model_copy(update={"options": tuple(Option(number, str(number)) for number in (1, 2, 3, 4))})


@pytest.fixture
def drawn(four):
    """A hundred times four answers: two leave scores in other units, two only an answer or none."""
    draw = np.random.default_rng(11)
    cases = []
    for _ in range(100):
        long, short = draw.normal(0, 5, size=4), draw.normal(0, 0.3, size=4)
        plain = [None if n == 0 else int(n) for n in draw.integers(0, 5, size=2)]
        found = [answered(four, int(scores.argmax()) + 1, scores) for scores in (long, short)]
        cases.append((long, short, plain, [*found, *(answered(four, answer) for answer in plain)]))
    return cases


def softmax(values):
    weights = np.exp(values - np.max(values))
    return weights / weights.sum()


def table(long, short, plain):
    """`[member, option]`; an answer without scores has everything."""
    rows = [softmax(long), softmax(short)]
    rows += [np.full(4, 0.25) if answer is None else np.eye(4)[answer - 1] for answer in plain]
    return np.array(rows)


def chances_of(said):
    return [said.option_probabilities[number] for number in (1, 2, 3, 4)]


def test_votes_are_counted_as_by_hand(four, drawn) -> None:
    ties = 0
    for long, short, plain, found in drawn:
        votes = [long.argmax() + 1, short.argmax() + 1, *plain]
        counts = np.array([votes.count(number) for number in (1, 2, 3, 4)])
        best = np.flatnonzero(counts == counts.max())
        ties += len(best) > 1
        means = table(long, short, plain).mean(axis=0)
        said = ask(four, found, "vote")
        assert (said.answer, said.votes) == (best[np.argmax(means[best])] + 1, tuple(one.answer for one in found))
        assert chances_of(said) == pytest.approx(counts / counts.sum(), abs=1e-8)
        assert said.tied == len(best)
    assert ties > 10


def test_mean_probability_is_that_of_numpy(four, drawn) -> None:
    for long, short, plain, found in drawn:
        means = table(long, short, plain).mean(axis=0)
        said = ask(four, found, "mean_probability")
        assert said.answer == means.argmax() + 1
        assert chances_of(said) == pytest.approx(means, abs=1e-8)


def test_equals_go_to_the_first_member_and_nothing_to_no_answer(four) -> None:
    assert ask(four, [answered(four, 3), answered(four, 1)], "vote").answer == 3
    assert ask(four, [answered(four, None), answered(four, 4), answered(four, 2)], "mean_probability").answer == 4
    for rule in ("vote", "mean_probability"):
        said = ask(four, [answered(four, None), answered(four, None)], rule)
        assert (said.status, said.votes, said.option_scores) == (Status.UNANSWERED, (None, None), None)
