"""The rules of ensembles, against numpy written out here."""

import numpy as np
import pytest

from medexam.errors import SpecError
from medexam.predictions import Prediction, Reason, Status
from medexam.programs import build_prediction
from medexam.programs.combining.ensembles import Ensemble, StoredAnswers, combine, member_chances
from medexam.questions import Option
from medexam.specs import build_cells


def answered(question, answer, scores=None):
    outcome = (
        {"status": Status.UNANSWERED, "reason": Reason.UNPARSED}
        if answer is None
        else {"status": Status.ANSWERED, "answer": answer}
    )
    numbers = question.option_numbers
    named = None if scores is None else dict(zip(numbers, map(float, scores), strict=True))
    return Prediction(question=question.key, program="p", spec_digest="d", option_scores=named, **outcome)


def ask(question, found, rule, weights=None):
    members = StoredAnswers([{one.question: one} for one in found], weights)
    said = Ensemble(rule, members)(question=question)
    return build_prediction(question, said, program="e", spec_digest="d", latency_s=0.0)


@pytest.fixture
def four(question):
    return question.model_copy(update={"options": tuple(Option(number, str(number)) for number in (1, 2, 3, 4))})


@pytest.fixture
def drawn(four):
    """Two hundred times four members' answers: two leave scores in other units, two only an answer or none."""
    draw = np.random.default_rng(11)
    cases = []
    for _ in range(200):
        long, short = draw.normal(0, 5, size=4), draw.normal(0, 0.3, size=4)
        plain = [None if n == 0 else int(n) for n in draw.integers(0, 5, size=2)]
        found = [answered(four, int(scores.argmax()) + 1, scores) for scores in (long, short)]
        cases.append((long, short, plain, [*found, *(answered(four, answer) for answer in plain)]))
    return cases


def softmax(values):
    weights = np.exp(values - np.max(values))
    return weights / weights.sum()


def table(long, short, plain):
    """`[member, option]`."""
    rows = [softmax(long), softmax(short)]
    rows += [np.full(4, 0.25) if answer is None else np.eye(4)[answer - 1] for answer in plain]
    return np.array(rows)


def test_votes_are_counted_as_by_hand(four, drawn) -> None:
    ties = 0
    for long, short, plain, found in drawn:
        votes = [long.argmax() + 1, short.argmax() + 1, *plain]
        counts = np.array([votes.count(number) for number in (1, 2, 3, 4)])
        best = np.flatnonzero(counts == counts.max())
        ties += len(best) > 1
        means = table(long, short, plain).mean(axis=0)
        winner = best[np.argmax(means[best])] + 1
        prediction = ask(four, found, "vote")
        assert (prediction.answer, prediction.votes) == (winner, tuple(one.answer for one in found))
        chances = [prediction.option_probabilities[number] for number in (1, 2, 3, 4)]
        assert chances == pytest.approx(counts / counts.sum(), abs=1e-8)
        assert prediction.tied == len(best)
    assert ties > 20


def test_mean_probability_is_that_of_numpy(four, drawn) -> None:
    for long, short, plain, found in drawn:
        means = table(long, short, plain).mean(axis=0)
        prediction = ask(four, found, "mean_probability")
        assert prediction.answer == means.argmax() + 1
        assert [prediction.option_probabilities[n] for n in (1, 2, 3, 4)] == pytest.approx(means, abs=1e-8)


def test_weights_make_the_softmax_of_the_weighted_sums(four, drawn) -> None:
    weights = np.array([2.0, -1.0, 0.5, 3.0])
    for long, short, plain, found in drawn:
        expected = softmax(weights @ table(long, short, plain))
        prediction = ask(four, found, "stacked", tuple(weights))
        assert prediction.answer == expected.argmax() + 1
        assert [prediction.option_probabilities[n] for n in (1, 2, 3, 4)] == pytest.approx(expected)


def test_equal_votes_without_probabilities_go_to_the_first_member(four) -> None:
    assert ask(four, [answered(four, 3), answered(four, 1)], "vote").answer == 3
    assert ask(four, [answered(four, None), answered(four, 4), answered(four, 2)], "mean_probability").answer == 4


def test_no_member_with_an_answer_leaves_it_unanswered(four) -> None:
    for rule in ("vote", "mean_probability"):
        prediction = ask(four, [answered(four, None), answered(four, None)], rule)
        assert (prediction.status, prediction.votes) == (Status.UNANSWERED, (None, None))
        assert prediction.option_scores is None


def test_a_member_that_has_not_answered_is_waited_for(four) -> None:
    members = StoredAnswers([{four.key: answered(four, 1)}, {}])
    assert members.find(four) is None
    with pytest.raises(LookupError, match="has not answered"):
        Ensemble("vote", members)(question=four)
    with pytest.raises(ValueError, match="needs its weights"):
        combine(four, [answered(four, 1)] * 2, "stacked")


def test_a_member_without_scores_gives_its_answer_everything(four) -> None:
    assert member_chances(four, answered(four, 2)) == {1: 0, 2: 1, 3: 0, 4: 0}
    assert set(member_chances(four, answered(four, None)).values()) == {0.25}


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ({"members": ["longest"]}, "needs two members or more"),
        ({"members": ["longest", {"kind": "ensemble", "members": ["random", "longest"]}]}, "list its members instead"),
        ({"members": ["longest", "random"], "combine": "stacked"}, "name the exams to fit the weights on"),
        ({"members": ["longest", "random"], "train": {"years": 2013}}, "or leave train out"),
        ({"members": ["longest", {"kind": "zero_shot", "samples": 3}]}, "at temperature 0 all replies are equal"),
        ({"members": ["longest", "by_format"]}, "does not answer"),
        ({"members": ["longest", "zeroshot"]}, "did you mean 'zero_shot'"),
    ],
)
def test_a_spec_that_cannot_be_combined_is_refused_in_one_line(program, message) -> None:
    with pytest.raises(SpecError, match=message) as refused:
        build_cells({"name": "x", "program": {"kind": "ensemble", **program}}, {})
    assert "\n" not in str(refused.value)
