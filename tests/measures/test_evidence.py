"""Verdicts, queries and citations of a run, each number against a count of another kind."""

import random

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from evidence_figures import figures
from medexam.measures import compute_metrics
from medexam.predictions import Prediction, Reason, RetrievedPassage, Status
from medexam.questions import Gold

FOUND = [{"id": name, "source": "s", "score": 1.0} for name in "abc"]


def _prediction(number: int, answer: int | None, **fields) -> Prediction:
    status = {"status": Status.ANSWERED} if answer else {"status": Status.UNANSWERED, "reason": Reason.ABSTAINED}
    return Prediction(question=f"q{number}", program="p", spec_digest="d", answer=answer, **status, **fields)


@pytest.fixture
def questions(question):
    return [question.model_copy(update={"key": f"q{number}"}) for number in range(60)]


def _score(questions, predictions):
    key = {one.key: Gold(number=3) for one in questions}
    return compute_metrics(questions, key, {one.question: one for one in predictions})


def test_verdicts_are_counted_as_numpy_counts_them(questions) -> None:
    draw = random.Random(7)
    kept = np.array([[draw.random() < 0.4 for _ in FOUND] for _ in questions])
    supported = np.array([row.any() and draw.random() < 0.6 for row in kept])
    answers = np.array([3 if draw.random() < 0.5 else 1 for _ in questions])
    withdrawn = ~supported & (np.arange(60) % 4 == 0)
    predictions = [
        _prediction(
            number,
            None if withdrawn[number] else int(answers[number]),
            passages=[RetrievedPassage(**one, kept=bool(is_kept)) for one, is_kept in zip(FOUND, row, strict=True)],
            supported=bool(supported[number]),
        )
        for number, row in enumerate(kept)
    ]
    found = figures(_score(questions, predictions), "verified")
    assert (found.n, found.passages, found.kept) == (60, kept.size, kept.sum())
    assert found.none_kept == (kept.sum(axis=1) == 0).sum()
    for group, part in ((supported, found.supported), (~supported, found.unsupported)):
        standing = answers[group & ~withdrawn] == 3
        assert (part.n, part.withdrawn) == (group.sum(), (group & withdrawn).sum())
        assert part.accuracy == pytest.approx(standing.mean())
        interval = proportion_confint(standing.sum(), len(standing), method="wilson")
        assert part.accuracy_interval == pytest.approx(interval)


def test_citations_are_counted_as_numpy_counts_them(questions) -> None:
    cited = np.random.default_rng(5).integers(-1, 4, 60)
    predictions = [
        _prediction(
            number,
            int(number % 5) or None,
            passages=[RetrievedPassage(**one) for one in FOUND],
            cited=None if cited[number] < 0 else int(cited[number]),
        )
        for number in range(60)
    ]
    found = figures(_score(questions, predictions), "citations")
    answered = np.arange(60) % 5 > 0
    assert (found.n, found.named, found.refused) == (48, (cited[answered] > 0).sum(), (cited[answered] == 0).sum())


def test_queries_are_averaged_over_all_questions(questions) -> None:
    one = {"query": "q", "passages": ()}
    shapes = [((one, one), (one,)), ((one,),), ()]
    predictions = [
        _prediction(number, 3, rounds=rounds, passages=[RetrievedPassage(**FOUND[0])] if rounds else [])
        for number, rounds in enumerate(shapes)
    ]
    found = figures(_score(questions, predictions), "queries")
    assert (found.n, found.rounds, found.none) == (3, 1.0, 1)
    assert found.queries == pytest.approx(4 / 3)
    assert found.passages == pytest.approx(2 / 3)


def test_passages_alone_are_no_verdicts_queries_or_citations(questions) -> None:
    plain = [_prediction(number, 3, passages=[RetrievedPassage(**FOUND[0])]) for number in range(5)]
    assert list(_score(questions, plain).evidence) == ["retrieval"]
