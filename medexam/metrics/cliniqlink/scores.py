"""What scoring ClinIQLink yields: names, units, and what None means.

How the numbers of one run are found is told by `scoring.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from medexam.metrics.cliniqlink.closed import Match
from medexam.metrics.cliniqlink.items import Format, Malformed
from medexam.metrics.cliniqlink.list_figures import ListFigures
from medexam.metrics.cliniqlink.ngrams import NgramScores
from medexam.metrics.cliniqlink.semantic import Baseline, Similarity


@dataclass(frozen=True, slots=True)
class FormatScores:
    """The scores of one format; fractions of 1."""

    format: Format
    n: int
    """Items scored."""
    dropped: int
    """List items without options, which the rules leave out of numerator and denominator."""
    score: float | None
    """What enters the overall mean: accuracy, macro F1 of lists, or the mean semantic score. None where `n` is 0."""
    items: Mapping[str, float]
    """Item key -> score: 0 or 1, the item's F1, or the semantic score with its penalty. For lists the mean of these is
    not `score` in the published profile."""
    malformed: Mapping[Malformed, int]
    """Outputs of each kind, and only kinds that occur; an output may be of several."""
    forgiving: float | None = None
    """Closed formats: `score` as a kind reader would have it. `forgiving - score` is lost to the format alone."""
    matches: Mapping[Match, int] = field(default_factory=dict)
    """Multiple choice: answers by how they meet the gold."""
    lists: ListFigures | None = None
    """Lists, as the scorer reads them."""
    step_rate: float | None = None
    """Multi-hop inverse: share of the items whose wrong step is found; an unreadable step is not found."""
    layers: Mapping[str, Similarity] = field(default_factory=dict)
    """Open formats: item key -> layers and score before any penalty; an echo of the question has none."""
    ngrams: NgramScores | None = None
    """Open formats: means over the items; None where they were not asked for."""
    item_ngrams: Mapping[str, NgramScores] = field(default_factory=dict)
    """Open formats: item key -> its own; empty where they were not asked for."""


@dataclass(frozen=True, slots=True)
class ClinIQLinkScores:
    """The scores of one run."""

    profile: str
    formats: Mapping[Format, FormatScores]
    """All seven, in the order of `Format`."""
    overall: float | None
    """Unweighted mean of the seven scores. A format without scored items counts 0 in the published profile, and makes
    this None in the paper's."""
    forgiving_overall: float | None
    """The same with the kind reading of the closed formats."""
    baseline: Baseline | None
    """Of the paragraph layer; None where no open answer was scored."""
    ngrams: NgramScores | None = None
    """Unweighted mean over the open formats that were scored; None where they were not asked for."""
    ngrams_missing: tuple[str, ...] = ()
    """What NLTK's data lack, and which measures are None for it."""
