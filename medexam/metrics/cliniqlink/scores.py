"""What scoring ClinIQLink yields: names, units, and what None means; and several runs set side by side.

How the numbers of one run are found is told by `scoring.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from medexam.errors import DatasetError
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
    """Lists, of the strict reading."""
    forgiving_lists: ListFigures | None = None
    """Lists, of the kind reading."""
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

    @property
    def missing(self) -> tuple[Format, ...]:
        """Formats without scored items."""
        return tuple(each.format for each in self.formats.values() if each.score is None)


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A run on a board."""

    run: str
    scores: Mapping[Format, float | None]
    overall: float | None
    """As in `ClinIQLinkScores`."""
    weighted: float | None
    """Mean of the formats by the board's weights; None where a format of positive weight has no score."""


@dataclass(frozen=True, slots=True)
class Board:
    """Runs, the best weighted mean first, those without one last; equals in the order given."""

    rows: tuple[BoardRow, ...]
    mean: float | None
    """Mean of `weighted` over the runs, by their weights; None where a run of positive weight has none."""


def board(
    runs: Mapping[str, ClinIQLinkScores],
    *,
    format_weights: Mapping[Format, float] | None = None,
    run_weights: Mapping[str, float] | None = None,
) -> Board:
    """Set runs side by side, with a mean of the formats for each and a mean over all runs.

    Without weights all are equal; a format or run that the weights do not name weighs 0. The benchmark names no
    weights. Raises `DatasetError` for no run, runs of different profiles, and weights that are negative, all 0, or of
    an unknown run.
    """
    if not runs:
        raise DatasetError("there is no run to set on the board; give at least one")
    profiles = sorted({scores.profile for scores in runs.values()})
    if len(profiles) > 1:
        raise DatasetError(f"the runs are scored by different profiles ({', '.join(profiles)}); score all by one")
    by_format = dict.fromkeys(Format, 1.0) if format_weights is None else dict(format_weights)
    by_run = dict.fromkeys(runs, 1.0) if run_weights is None else dict(run_weights)
    unknown = next((name for name in by_run if name not in runs), None)
    if unknown is not None:
        raise DatasetError(f"a weight is given for {unknown!r}, which is not on the board; it holds {', '.join(runs)}")
    for name, weights in (("format", list(by_format.values())), ("run", list(by_run.values()))):
        if min(weights, default=0.0) < 0 or sum(weights) <= 0:
            raise DatasetError(f"the {name} weights must be 0 or more, one of them above 0; they are {weights}")
    rows = []
    for name, scores in runs.items():
        each = {kind: found.score for kind, found in scores.formats.items()}
        weighed = weighted_mean([(each.get(kind), weight) for kind, weight in by_format.items()])
        rows.append(BoardRow(name, each, scores.overall, weighed))
    mean = weighted_mean([(row.weighted, by_run.get(row.run, 0.0)) for row in rows])
    return Board(
        tuple(sorted(rows, key=lambda row: -1.0 if row.weighted is None else row.weighted, reverse=True)), mean
    )


def weighted_mean(values: list[tuple[float | None, float]]) -> float | None:
    """The mean of (value, weight) pairs; None where a value of positive weight is None."""
    known = [(value, weight) for value, weight in values if weight > 0 and value is not None]
    if not known or len(known) < sum(weight > 0 for _, weight in values):
        return None
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known)
