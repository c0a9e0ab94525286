"""What orders tell, against numpy and statsmodels written out here."""

import numpy as np
import pytest
from scipy.stats import chi2
from statsmodels.stats.contingency_tables import SquareTable

from evidence_figures import figures
from medexam.measures import compute_metrics
from medexam.predictions import Prediction, Reason, Status
from medexam.questions import AnswerKey, Gold

CYCLIC = ((1, 2, 3, 4), (2, 3, 4, 1), (3, 4, 1, 2), (4, 1, 2, 3))


def predicted(question, orders, votes):
    answer = next((vote for vote in votes if vote is not None), None)
    outcome = (
        {"status": Status.UNANSWERED, "reason": Reason.UNPARSED}
        if answer is None
        else {"status": Status.ANSWERED, "answer": answer}
    )
    return Prediction(question=question.key, program="p", spec_digest="d", orders=orders, votes=votes, **outcome)


@pytest.fixture
def drawn(make_exam):
    """Sixty questions in four orders, whose model likes the first place in half of them and else the right option."""
    draw = np.random.default_rng(3)
    questions = make_exam("biology", 2013, size=60, options=4)
    golds = {question.key: Gold(number=int(draw.integers(1, 5))) for question in questions}
    predictions = {}
    for question in questions:
        votes = []
        for order in CYCLIC:
            kind = draw.integers(0, 10)
            votes.append(order[0] if kind < 5 else golds[question.key].number if kind < 9 else None)
        predictions[question.key] = predicted(question, CYCLIC, tuple(votes))
    return questions, AnswerKey(golds), predictions


def test_bias_consistency_and_scores_are_as_computed_by_hand(drawn) -> None:
    questions, key, predictions = drawn
    found = figures(compute_metrics(*drawn), "orders")
    chosen, right, differences, every, same, single, some = np.zeros(4), np.zeros(4), [], [], [], [], []
    for question in questions:
        gold, row = key[question.key].number, np.zeros(4)
        votes = predictions[question.key].votes
        for order, vote in zip(CYCLIC, votes, strict=True):
            if vote is not None:
                row[order.index(vote)] += 1
                row[order.index(gold)] -= 1
                chosen[order.index(vote)] += 1
                right[order.index(gold)] += 1
        differences.append(row)
        hits = [vote == gold for vote in votes]
        every.append(all(hits))
        some.append(any(hits))
        single.append(np.mean(hits))
        same.append(None not in votes and len(set(votes)) == 1)
    matrix = np.array(differences)
    # The differences of a row add up to 0, so one column is left out and the rest inverted.
    whole, covariance = matrix[:, :3].sum(axis=0), matrix[:, :3].T @ matrix[:, :3]
    statistic = whole @ np.linalg.inv(covariance) @ whole
    assert (found.n, found.orders, found.answered) == (60, 4, int(chosen.sum()))
    assert [place.chosen for place in found.places] == pytest.approx(chosen / chosen.sum())
    assert [place.right for place in found.places] == pytest.approx(right / right.sum())
    assert (found.chi_square, found.degrees) == (pytest.approx(statistic), 3)
    assert found.p == pytest.approx(chi2.sf(statistic, 3))
    assert found.p < 1e-6
    assert found.right_in_all == pytest.approx(np.mean(every))
    assert found.right_in_any == pytest.approx(np.mean(some))
    assert found.single_accuracy == pytest.approx(np.mean(single))
    assert found.consistent == pytest.approx(np.mean(same))


def test_scores_of_orders_say_which_option_each_chooses(make_exam) -> None:
    (question,) = make_exam("biology", 2013, size=1, options=3)
    orders, rows = ((1, 2, 3), (3, 2, 1)), ((-1.0, -2.0, -3.0), (-5.0, -1.0, -2.0))
    prediction = Prediction(
        question=question.key,
        program="p",
        spec_digest="d",
        status=Status.ANSWERED,
        answer=1,
        orders=orders,
        order_scores=rows,
        option_scores={1: -1.0, 2: -1.2, 3: -4.0},
    )
    metrics = compute_metrics([question], AnswerKey({question.key: Gold(number=1)}), {question.key: prediction})
    found = figures(metrics, "orders")
    assert [(place.chosen, place.right) for place in found.places] == [(0.5, 0.5), (0.5, 0.0), (0.0, 0.5)]
    assert (found.consistent, found.right_in_any, found.right_in_all) == (0, 1, 0)
    scores = figures(metrics, "option_scores")
    shares = scores.positions
    first = (np.exp(-1) / np.exp([-1, -2, -3]).sum() + np.exp(-5) / np.exp([-5, -1, -2]).sum()) / 2
    assert shares[0].mean_probability == pytest.approx(first)
    assert scores.flip_rate == 1


def test_with_one_order_a_question_it_is_stuarts_and_maxwells_test(make_exam) -> None:
    draw = np.random.default_rng(5)
    pairs = [(int(a), int(b)) for a, b in draw.choice(4, size=(300, 2), p=[0.4, 0.3, 0.2, 0.1])]
    pairs += [(0, 2)] * 15
    table = np.zeros((4, 4))
    questions = make_exam("biology", 2013, size=len(pairs), options=4)
    golds, predictions = {}, {}
    for question, (chosen, right) in zip(questions, pairs, strict=True):
        table[chosen, right] += 1
        golds[question.key] = Gold(number=right + 1)
        predictions[question.key] = predicted(question, CYCLIC[:1], (chosen + 1,))
    known = SquareTable(table, shift_zeros=False).homogeneity(method="stuart_maxwell")
    found = figures(compute_metrics(questions, AnswerKey(golds), predictions), "orders")
    assert (found.chi_square, found.degrees) == (pytest.approx(known.statistic), known.df)
    assert found.p == pytest.approx(known.pvalue)


def test_answers_without_a_fault_leave_nothing_to_test(make_exam, key_of) -> None:
    questions = make_exam("biology", 2013, size=3, options=4)
    predictions = {one.key: predicted(one, CYCLIC, (1,) * 4) for one in questions}
    found = figures(compute_metrics(questions, key_of(questions), predictions), "orders")
    assert (found.chi_square, found.degrees, found.p) == (None, 0, None)
    assert (found.consistent, found.right_in_all) == (1, 1)


def test_several_votes_an_order_and_none_at_all(make_exam, key_of) -> None:
    one, other = make_exam("biology", 2013, size=2, options=4)
    orders = (CYCLIC[0], CYCLIC[0][::-1])
    predictions = {
        one.key: predicted(one, orders, (1, 1, 2, 3, 1, 1)),
        other.key: predicted(other, orders, (None,) * 6),
    }
    found = figures(compute_metrics([one, other], key_of([one, other]), predictions), "orders")
    assert (found.consistent, found.right_in_all, found.answered) == (0.5, 0.5, 2)
