"""What MLflow holds of the evidence of a stored run."""

import json

ORDERS = ((1, 2, 3, 4), (4, 3, 2, 1))


def _numbers(figures: dict, prefix: str) -> dict[str, float]:
    """The numbers of `metrics.json` outside lists, by the names of the fields that they stand in."""
    numbers = {}
    for name, value in figures.items():
        if isinstance(value, dict):
            numbers |= _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers[prefix + name] = value
    return numbers


def test_each_number_of_evidence_is_a_metric(make_run, track, client) -> None:
    def extra(question) -> dict:
        votes = [1 + (question.number + place) % 4 for place in range(2)]
        passage = {"id": "a", "source": "books", "score": float(question.number)}
        return {"orders": ORDERS, "votes": votes, "passages": (passage,), "cited": question.number % 2}

    run = make_run({"kind": "zero_shot", "orders": "reversed"}, "rrwu", extra=extra)
    evidence = json.loads((run / "metrics.json").read_text())["evidence"]
    expected = _numbers(evidence, "")
    assert {"votes.agreement", "orders.p", "retrieval.score_correctness.r", "citations.named"} <= expected.keys()
    low, high = evidence["orders"]["right_in_all_interval"]
    expected |= {"orders.right_in_all_low": low, "orders.right_in_all_high": high}
    stored = client.get_run(track(run)[run.name]).data.metrics
    assert {name: stored.get(name) for name in expected} == expected
