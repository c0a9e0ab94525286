"""Metrics of retrieved passages against hand-computed values, and against numpy and scipy used directly."""

import math
import random

import numpy as np
import pytest
from scipy.stats import norm

from evidence_figures import figures
from medexam.measures import compute_metrics
from medexam.predictions import RetrievedPassage


def _passages(*found) -> tuple[RetrievedPassage, ...]:
    """From (source, score) pairs, most relevant first."""
    return tuple(RetrievedPassage(id=f"{source}-{score}", source=source, score=score) for source, score in found)


@pytest.fixture
def judge(make_exam, key_of, predict):
    """`judge("rw", [passages, passages], cut)` -> the figures of one question a letter."""

    def make(outcomes, passages, cut=None):
        questions = make_exam("biology", 2013, size=len(outcomes), options=4)
        predictions = predict(questions, outcomes)
        for position, question in enumerate(questions):
            if question.key in predictions:
                fields = {"passages": passages[position], "passages_cut": cut[position] if cut else 0}
                predictions[question.key] = predictions[question.key].model_copy(update=fields)
        return figures(compute_metrics(questions, key_of(questions), predictions), "retrieval")

    return make


def test_who_is_counted(judge) -> None:
    one = _passages(("a", 1.0))
    found = judge("rwufmrw", [one, one, one, one, one, (), None], cut=[0, 7, 120, 9, 9, 0, None])
    assert (found.n, found.without_passages, found.cut) == (3, 1, 2)
    assert [(part.source, part.passages) for part in found.by_source] == [("a", 3)]


def test_nothing_found_at_all(judge) -> None:
    found = judge("rw", [(), ()])
    assert (found.n, found.without_passages, found.borders, found.score_correctness) == (0, 2, None, None)
    assert [vars(part) for part in found.quartiles] == [
        {"low": None, "high": None, "n": 0, "accuracy": None, "accuracy_interval": None}
    ] * 4
    assert found.by_source == []


def _one_each(scores):
    return [_passages(("a", score)) for score in scores]


@pytest.mark.parametrize("seed", range(3))
def test_correlation_by_its_point_biserial_form(judge, seed) -> None:
    """From the two groups' means, and Fisher's z, without `pearsonr`."""
    rng = np.random.default_rng(seed)
    scores, right = rng.normal(60, 5, 200), rng.random(200) < 0.3
    found = judge("".join("wr"[int(each)] for each in right), _one_each(scores.tolist())).score_correctness
    share = right.mean()
    r = (scores[right].mean() - scores[~right].mean()) / scores.std() * math.sqrt(share * (1 - share))
    assert found.r == pytest.approx(r)
    reach = norm.ppf(0.975) / math.sqrt(197)
    assert found.interval == pytest.approx((np.tanh(np.arctanh(r) - reach), np.tanh(np.arctanh(r) + reach)))


@pytest.mark.parametrize(
    ("scores", "outcomes"),
    [([1.0, 2.0, 3.0], "rwr"), ([0.1 + 0.2, 0.3, 0.3, 0.3], "rwrw"), ([1.0, 2.0, 3.0, 4.0], "wwww")],
    ids=["three", "equal but for rounding", "all wrong"],
)
def test_no_correlation_where_it_is_undefined(judge, scores, outcomes) -> None:
    assert judge(outcomes, _one_each(scores)).score_correctness is None


def test_a_perfect_correlation_has_no_interval(judge) -> None:
    found = judge("wwrr", _one_each([0.0, 0.0, 1.0, 1.0])).score_correctness
    assert (found.r, found.interval) == (1.0, None)


def test_a_score_on_a_border_is_below_it_and_equal_scores_stay_together(judge) -> None:
    found = judge("rwrwr", _one_each((1.0, 2.0, 3.0, 4.0, 5.0)))
    assert found.borders == [2.0, 3.0, 4.0]
    assert [part.n for part in found.quartiles] == [2, 1, 1, 1]
    tied = judge("rwrw", [_passages(("a", 1.0))] * 4)
    assert [part.n for part in tied.quartiles] == [4, 0, 0, 0]
    assert (tied.quartiles[1].accuracy, tied.quartiles[1].accuracy_interval) == (None, None)


def test_quartiles_against_numpy_masks(judge) -> None:
    draw = random.Random(3)
    scores = [round(draw.uniform(0, 3), 1) for _ in range(90)]
    outcomes = "".join(draw.choice("rwu") for _ in scores)
    found = judge(outcomes, _one_each(scores))
    values, right = np.array(scores), np.array([outcome == "r" for outcome in outcomes])
    edges = [-np.inf, *np.percentile(values, [25, 50, 75]), np.inf]
    assert found.borders == pytest.approx(edges[1:4])
    for part, low, high in zip(found.quartiles, edges, edges[1:], strict=False):
        inside = (values > low) & (values <= high)
        assert (part.n, part.low, part.high) == (inside.sum(), values[inside].min(), values[inside].max())
        assert part.accuracy == pytest.approx(right[inside].mean())


def test_sources_by_hand(judge) -> None:
    found = judge(
        "rwr",
        [
            _passages(("wiki", 3.0), ("books", 2.0)),
            _passages(("books", 3.0), ("wiki", 2.0)),
            _passages(("wiki", 3.0), ("abstracts", 1.0)),
        ],
    )
    assert [(part.source, part.passages, part.n, part.accuracy) for part in found.by_source] == [
        ("wiki", 3, 2, 1.0),
        ("books", 2, 1, 0.0),
        ("abstracts", 1, 0, None),
    ]
    assert [part.share for part in found.by_source] == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    assert found.by_source[2].accuracy_interval is None
