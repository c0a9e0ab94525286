"""From stored option scores to `OptionScoreMetrics`: a pure function, so a stored run can be scored again.

The scores are read as the program left them, so a threshold can be tried on a run without asking the model.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate

from medexam.answer_key import AnswerKey
from medexam.metrics.option_scores.calibration import brier_score, expected_calibration_error, reliability_bins
from medexam.metrics.option_scores.positions import flip_rate, has_orders, position_shares
from medexam.metrics.option_scores.results import AbstentionPoint, OptionScoreMetrics
from medexam.metrics.option_scores.scored_options import ScoredOptions, scored_options
from medexam.predictions import Prediction
from medexam.questions import Question

THRESHOLDS = tuple(step / 20 for step in range(20))


def option_score_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> OptionScoreMetrics | None:
    """The metrics of those of `questions` whose prediction has option scores; None where none has.

    Raises `DatasetError` when `key` lacks one of them.
    """
    scored = scored_options(questions, key, predictions)
    if not scored:
        return None
    bins = reliability_bins([options.confidence for options in scored], [options.right for options in scored])
    abstention = abstention_points(scored)
    masses = [options.label_mass for options in scored if options.label_mass is not None]
    return OptionScoreMetrics(
        n=len(scored),
        expected_calibration_error=expected_calibration_error(bins),
        brier_score=brier_score([options.probabilities for options in scored], [options.gold for options in scored]),
        reliability=bins,
        label_mass=math.fsum(masses) / len(masses) if masses else None,
        by_shown_position=has_orders(scored),
        positions=position_shares(scored),
        tied=sum(options.tied for options in scored),
        flip_rate=flip_rate(scored),
        abstention=abstention,
        best_threshold=best_threshold(abstention),
    )


def abstention_points(scored: Sequence[ScoredOptions]) -> tuple[AbstentionPoint, ...]:
    """The score under each of `THRESHOLDS`: what the program's `abstain_below` would give; at least one question."""
    ranked = sorted(scored, key=lambda options: options.confidence)
    confidences = [options.confidence for options in ranked]
    right_below = list(accumulate((options.right for options in ranked), initial=0))
    n = len(ranked)
    points = []
    for threshold in THRESHOLDS:
        blank = bisect_left(confidences, threshold)
        right = right_below[-1] - right_below[blank]
        wrong = n - blank - right
        points.append(
            AbstentionPoint(
                threshold=threshold,
                answered_ratio=(n - blank) / n,
                right=right,
                wrong=wrong,
                accuracy=right / (right + wrong) if right + wrong else None,
                exam_score=(right - wrong / 3) / n,
            )
        )
    return tuple(points)


def best_threshold(points: Sequence[AbstentionPoint]) -> float:
    """The threshold of the highest exam score, the lowest one of equals; at least one point.

    Chosen on the questions that it is scored on, so the exam score that it gives is optimistic.
    """
    return max(points, key=lambda point: (3 * point.right - point.wrong, -point.threshold)).threshold
