"""NLTK's WordNet, which stays in memory once it is loaded."""

from functools import cache

from suite.costs import keep_for_session


@cache
def keep_wordnet() -> None:
    """Load it for all tests of a worker, where it is on this machine."""
    from medexam.errors import MedExamError
    from medexam.metrics.cliniqlink.ngrams import NgramScorer

    try:
        keep_for_session(NgramScorer)
    except MedExamError:
        return
