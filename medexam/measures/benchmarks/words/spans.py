"""Parts of a text, and short answers in words: the words they share with a right one, and whether they equal it."""

from medexam.measures import ScoredRun
from medexam.measures.benchmarks.base import Predictions
from medexam.measures.benchmarks.words.benchmark import WordsBenchmark
from medexam.measures.extraction import score_extraction, score_open_answers, score_short_answers
from medexam.questions import TaskSet


class SpanBenchmark(WordsBenchmark):
    """F1 and exact match as SQuAD defines them, and overlap with argument components."""

    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun:
        """Score the quoted parts."""
        return score_extraction(items.questions, items.golds, predictions)


class ShortAnswerBenchmark(WordsBenchmark):
    """F1 and exact match as SQuAD defines them, the best over all right answers."""

    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun:
        """Score the answers."""
        return score_short_answers(items.questions, items.golds, predictions)


class OpenExamBenchmark(WordsBenchmark):
    """Exam questions without their options: F1, exact match and BLEU against the right option's text."""

    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun:
        """Score the answers."""
        return score_open_answers(items.questions, items.golds, predictions)
