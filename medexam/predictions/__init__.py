"""What a program answered: core fields and, one file a kind, the evidence beside them; floor 0."""

from medexam.model_calls import Reading
from medexam.predictions.core import Count, Outcome, Reason, Status, ThinkingTokens
from medexam.predictions.evidence.failures import Failure
from medexam.predictions.evidence.metric_scores import MetricScore
from medexam.predictions.evidence.option_statistics import normalise_scores
from medexam.predictions.evidence.passages import RetrievedPassage
from medexam.predictions.evidence.replies import Reply
from medexam.predictions.evidence.rounds import FollowUp
from medexam.predictions.prediction import Answered, Prediction, as_read, has_reply

__all__ = [
    "Answered",
    "Count",
    "Failure",
    "FollowUp",
    "MetricScore",
    "Outcome",
    "Prediction",
    "Reading",
    "Reason",
    "Reply",
    "RetrievedPassage",
    "Status",
    "ThinkingTokens",
    "as_read",
    "has_reply",
    "normalise_scores",
]
