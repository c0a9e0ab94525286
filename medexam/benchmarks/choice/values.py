"""What MLflow keeps of a run on exams: counts, scores with their intervals, and scores by group and by year."""

from medexam.metrics import Interval, Metrics, Scores

_COUNTS = ("selected", "n", "right", "wrong", "unanswered", "failed", "missing")
_SCORES = (
    *("accuracy", "exam_score", "points", "unanswered_ratio", "chance_accuracy", "chance_exam_score", "chance_points"),
    *("headqa_v1_accuracy", "headqa_v1_points"),
)
_COSTS = ("prompt_tokens", "completion_tokens", "latency_p50_s", "latency_p95_s")
OPTION_SCORES = ("expected_calibration_error", "brier_score", "label_mass", "flip_rate", "tied")
_GROUP_SCORES = ("accuracy", "exam_score", "points", "headqa_v1_accuracy", "headqa_v1_points")


def exam_values(metrics: Metrics) -> dict[str, float]:
    """Name -> value: counts, scores with `_low` and `_high`, and `score.group` for each discipline and option count.

    With those of the option scores and of the passages where the run has them.
    """
    values = {name: getattr(metrics, name) for name in (*_COUNTS, *_SCORES, *_COSTS)}
    if metrics.option_scores is not None:
        values |= {name: getattr(metrics.option_scores, name) for name in OPTION_SCORES}
    correlation = metrics.retrieval.score_correctness if metrics.retrieval is not None else None
    if correlation is not None:
        values["retrieval_score_correctness"] = correlation.r
    intervals: dict[str, Interval | None] = {
        "accuracy": metrics.accuracy_interval,
        "exam_score": metrics.exam_score_interval,
        "points": metrics.points_interval,
        "unanswered_ratio": metrics.unanswered_ratio_interval,
        "retrieval_score_correctness": correlation.interval if correlation is not None else None,
    }
    for name, interval in intervals.items():
        if interval is not None:
            values[f"{name}_low"], values[f"{name}_high"] = interval
    groups: dict[str, Scores] = {discipline.value: group for discipline, group in metrics.by_discipline.items()}
    groups |= {f"options_{options}": group for options, group in metrics.by_option_count.items()}
    for group_name, group in groups.items():
        values |= {f"{score}.{group_name}": getattr(group, score, None) for score in _GROUP_SCORES}
    return {name: float(value) for name, value in values.items() if value is not None}


def values_by_year(metrics: Metrics) -> dict[int, dict[str, float]]:
    """Year -> name -> value, of exams whose year is known."""
    return {
        year: {
            f"{name}_by_year": float(value)
            for name in ("accuracy", "exam_score", "points", "chance_accuracy")
            if (value := getattr(group, name)) is not None
        }
        for year, group in metrics.by_year.items()
    }
