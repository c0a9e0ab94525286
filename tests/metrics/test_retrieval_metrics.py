"""Recall, MRR and nDCG by hand and beside trec_eval's, which ir_measures calls."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medexam.metrics.passages.rankings import ndcg_at, recall_at, reciprocal_rank, score_rankings

IDS = [f"p{number}" for number in range(30)]


@pytest.mark.parametrize(
    ("ranked", "relevant", "k", "recall", "rank", "ndcg"),
    [
        ("abc", "a", 1, 1.0, 1.0, 1.0),
        ("abc", "b", 1, 0.0, 0.0, 0.0),
        ("abc", "b", 2, 1.0, 0.5, 0.6309297535714575),  # 1 / log2(3)
        ("abc", "ac", 3, 1.0, 1.0, 0.9197207891481876),  # (1 + 1/2) / (1 + 1/log2(3))
        ("abc", "cxyz", 3, 0.25, 1 / 3, 0.2346394),  # (1/2) / (1 + 1/log2(3) + 1/2)
        ("abc", "abc", 2, 2 / 3, 1.0, 1.0),
        ("", "a", 5, 0.0, 0.0, 0.0),
    ],
)
def test_by_hand(ranked, relevant, k, recall, rank, ndcg) -> None:
    assert recall_at(ranked, relevant, k) == pytest.approx(recall)
    assert reciprocal_rank(ranked, relevant, k) == pytest.approx(rank)
    assert ndcg_at(ranked, relevant, k) == pytest.approx(ndcg)


def test_without_anything_relevant_there_is_no_score() -> None:
    assert recall_at("abc", "", 2) is reciprocal_rank("abc", "") is ndcg_at("abc", [], 2) is None
    scores = score_rankings({"q": "abc", "r": "cab"}, {"q": ["b"], "r": [], "s": {"c"}}, 3)
    assert (scores.k, scores.n, scores.unjudged) == (3, 2, 1)
    assert (scores.recall, scores.mrr) == (0.5, 0.25)
    nothing = score_rankings({"q": "abc"}, {"q": []}, 3)
    assert (nothing.n, nothing.unjudged, nothing.recall, nothing.mrr, nothing.ndcg) == (0, 1, None, None, None)


def test_reciprocal_rank_looks_everywhere_without_k() -> None:
    assert reciprocal_rank("abcd", "d") == 0.25
    assert reciprocal_rank("abcd", "d", 3) == 0


def test_what_is_no_ranking_is_refused() -> None:
    with pytest.raises(ValueError, match="holds an id twice"):
        recall_at(["a", "a"], ["a"], 2)
    with pytest.raises(ValueError, match="k is 0"):
        ndcg_at(["a"], ["a"], 0)


@settings(max_examples=60, deadline=None)
@given(
    queries=st.dictionaries(
        st.sampled_from(["q1", "q2", "q3", "q4"]),
        st.tuples(
            st.lists(st.sampled_from(IDS), min_size=1, max_size=25, unique=True),
            st.sets(st.sampled_from(IDS), min_size=1, max_size=12),
        ),
        min_size=1,
    ),
    k=st.integers(1, 30),
)
def test_equal_to_ir_measures(queries, k) -> None:
    import ir_measures
    from ir_measures import RR, R, nDCG

    run = {query: {key: -float(rank) for rank, key in enumerate(ranked)} for query, (ranked, _) in queries.items()}
    judgements = {query: dict.fromkeys(relevant, 1) for query, (_, relevant) in queries.items()}
    theirs = ir_measures.calc_aggregate([R @ k, RR @ k, nDCG @ k], judgements, run)
    ours = score_rankings(
        {query: ranked for query, (ranked, _) in queries.items()},
        {query: relevant for query, (_, relevant) in queries.items()},
        k,
    )
    assert ours.n == len(queries)
    assert ours.recall == pytest.approx(theirs[R @ k])
    assert ours.mrr == pytest.approx(theirs[RR @ k])
    assert ours.ndcg == pytest.approx(theirs[nDCG @ k])
