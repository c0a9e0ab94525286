"""Several submissions side by side: their ranks, and two findings of the shared task's paper over them.

The paper sets the F1 of lists against the score of multi-hop inverse, and the semantic score minus BLEU against the
model's size.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from medexam.errors import SpecError
from medexam.tables import NONE, Captioned, Table, coefficient, decimal, percent
from medexam_companions.audit.agreement import correlate
from medexam_companions.cliniqlink.submissions import Submission

Profile = Literal["published", "paper"]
FORMATS = ("true_false", "multiple_choice", "list", "short", "short_inverse", "multi_hop", "multi_hop_inverse")
OPEN = FORMATS[3:]
"""Formats that are scored by meaning."""
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([BbMm])(?![A-Za-z0-9])")
"""Billions or millions of parameters in a model's name, such as `70B`, `135M` and `8x7B`."""


@dataclass(frozen=True)
class Ranked:
    """One submission on the board."""

    rank: int | None
    """From 1; equal scores share one. None if it has no overall score."""
    submission: Submission
    overall: float | None
    """By the profile that ranks, 0 to 1."""

    def score(self, group: str, measure: str) -> float | None:
        """Return a measure of one format, 0 to 1; None if it has none."""
        measures = self.submission.metrics.by_group.get(group, {})
        return measures[measure].value if measure in measures else None

    def semantic(self, profile: Profile) -> float | None:
        """Return the mean score of the four open formats; None if one is missing."""
        scores = [self.score(group, profile) for group in OPEN]
        numbers = [score for score in scores if score is not None]
        return sum(numbers) / len(scores) if len(numbers) == len(scores) else None

    @property
    def bleu(self) -> float | None:
        """BLEU as the released scorer averages it; None if its packages are missing."""
        measure = self.submission.metrics.measures.get("bleu")
        return None if measure is None else measure.value

    @property
    def size(self) -> float | None:
        """Billions of parameters, as the name of the model or the submission says; None if it does not."""
        names = (self.submission.run.model or "", self.submission.name)
        return next((size for name in names if (size := model_size(name)) is not None), None)


def model_size(name: str) -> float | None:
    """Read billions of parameters in a model's name: 70 in `Llama-3-70B`, 56 in `8x7B`; None if it names none."""
    match = _SIZE.search(name.replace("_", "-"))
    if match is None:
        return None
    size = float(match[2]) * int(match[1] or 1)
    return size if match[3] in "Bb" else size / 1000


def rank_submissions(submissions: Sequence[Submission], profile: Profile) -> list[Ranked]:
    """Rank by the overall score of a profile, the best first.

    Raises `SpecError` if two have one name, or hold other questions, for their scores are then not comparable.
    """
    names = [submission.name for submission in submissions]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SpecError(f"two submissions are called {twice}: rename a folder")
    held = {frozenset(task.key for task in submission.items.questions) for submission in submissions}
    if len(held) > 1:
        counts = ", ".join(f"{each.name} {len(each.items.questions):,}" for each in submissions)
        raise SpecError(
            f"the submissions answer different questions ({counts}), so their scores are not comparable: --missing "
            "zero counts missing questions as unanswered; medexam compare uses the questions that all of them answer"
        )
    overall = {each.name: each.metrics.measures[profile].value for each in submissions}
    scores = sorted((score for score in overall.values() if score is not None), reverse=True)
    ranked = [
        Ranked(None if (score := overall[each.name]) is None else scores.index(score) + 1, each, score)
        for each in submissions
    ]
    return sorted(ranked, key=lambda entry: (entry.rank is None, entry.rank or 0, entry.submission.name))


def ranking_tables(board: Sequence[Ranked], profile: Profile) -> list[Captioned]:
    """Show ranks, formats, list F1 against multi-hop inverse, and semantic minus BLEU by model size."""
    return [
        _ranks(board, profile),
        _formats(board, profile),
        _lists_and_steps(board, profile),
        _gap_by_size(board, profile),
    ]


def ranking_document(board: Sequence[Ranked], profile: Profile) -> list[dict[str, Any]]:
    """Return the board, JSON-ready: one entry a submission, scores from 0 to 1."""
    return [
        {
            "rank": entry.rank,
            "submission": entry.submission.name,
            "run": entry.submission.run.folder.name,
            "by": profile,
            "measures": {name: measure.value for name, measure in entry.submission.metrics.measures.items()},
            "formats": {
                group: {name: measure.value for name, measure in measures.items()}
                for group, measures in entry.submission.metrics.by_group.items()
            },
            "semantic": entry.semantic(profile),
            "semantic_minus_bleu": _gap(entry, profile),
            "size": entry.size,
            "n": entry.submission.metrics.n,
            "absent": len(entry.submission.absent),
            "notes": list(entry.submission.faults),
        }
        for entry in board
    ]


def _ranks(board: Sequence[Ranked], profile: Profile) -> Captioned:
    measures = ("published", "paper", "published_forgiving", "paper_forgiving")
    headers = ("Submission", "Rank", "Published", "Paper", "Published, forgiving", "Paper, forgiving", "n")
    rows = tuple(
        (
            entry.submission.name,
            NONE if entry.rank is None else str(entry.rank),
            *(percent(entry.submission.metrics.measures[name].value) for name in measures),
            f"{entry.submission.metrics.n:,}",
        )
        for entry in board
    )
    caption = (
        f"Percent. Ranked by {profile}. A format without a file counts 0 in the published profile and leaves no score "
        "in the paper's. Whether two differ by more than chance: medexam compare."
    )
    return Table("Board", headers, rows), caption


def _formats(board: Sequence[Ranked], profile: Profile) -> Captioned:
    rows = tuple(
        (entry.submission.name, *(percent(entry.score(group, profile)) for group in FORMATS)) for entry in board
    )
    return Table("Formats", ("Submission", *FORMATS), rows), f"Percent, {profile}."


def _lists_and_steps(board: Sequence[Ranked], profile: Profile) -> Captioned:
    pairs = [(entry, entry.score("list", profile), entry.score("multi_hop_inverse", profile)) for entry in board]
    rows = tuple((entry.submission.name, percent(one), percent(other)) for entry, one, other in pairs)
    points = [(one, other) for _, one, other in pairs if one is not None and other is not None]
    caption = f"Percent, {profile}. {_correlation(points)}"
    return Table("List F1 against multi-hop inverse", ("Submission", "List F1", "Multi-hop inverse"), rows), caption


def _gap_by_size(board: Sequence[Ranked], profile: Profile) -> Captioned:
    ordered = sorted(board, key=lambda entry: (entry.size is None, entry.size or 0.0, entry.submission.name))
    rows = tuple(
        (
            entry.submission.name,
            NONE if entry.size is None else f"{entry.size:g}",
            percent(entry.semantic(profile)),
            percent(entry.bleu),
            decimal(None if (gap := _gap(entry, profile)) is None else 100 * gap),
        )
        for entry in ordered
    )
    points = [
        (entry.size, gap) for entry in ordered if entry.size is not None and (gap := _gap(entry, profile)) is not None
    ]
    caption = (
        f"Size: billions of parameters, as the name says. Semantic: mean of the four open formats, percent, {profile}. "
        f"{_correlation(points)}"
    )
    headers = ("Submission", "Size", "Semantic", "BLEU", "Semantic minus BLEU")
    return Table("Semantic score minus BLEU by model size", headers, rows), caption


def _gap(entry: Ranked, profile: Profile) -> float | None:
    semantic, bleu = entry.semantic(profile), entry.bleu
    return None if semantic is None or bleu is None else semantic - bleu


def _correlation(points: Sequence[tuple[float, float]]) -> str:
    places = [str(place) for place in range(len(points))]
    rho = correlate([one for one, _ in points], [other for _, other in points], places).spearman if points else None
    return f"Spearman's rho over {len(points)} submissions: {NONE if rho is None else coefficient(rho)}."
