"""What an audit finds, as one value: tables, Markdown and `--json` are made from it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from medexam.distributions import LEVEL
from medexam.metrics import RESAMPLES, SEED
from medexam_companions.audit.agreement import (
    MeasureAgreement,
    RaterPair,
    compare_raters,
    mean_marks,
    measure_agreement,
)
from medexam_companions.audit.folder import ASPECTS, COMPLETENESS, CORRECTNESS, KeyEntry
from medexam_companions.audit.ratings import Ratings


@dataclass(frozen=True)
class MeanMarks:
    """The marks of some answers, an answer's mark being the mean of its raters'."""

    answers: int
    """Answers that at least one rater has marked on either aspect."""
    means: Mapping[str, float | None]
    """Aspect -> mean from 1 to 5; None where none was given."""


@dataclass(frozen=True)
class Audit:
    """The marks, and how far raters and measures agree on them."""

    ratings: Ratings
    pairs: tuple[RaterPair, ...]
    """Every two raters on each aspect."""
    measured: tuple[MeasureAgreement, ...]
    """Every automatic measure against the mean of the raters' correctness."""
    by_run: Mapping[str, MeanMarks]
    by_group: Mapping[str, MeanMarks]


def find_audit(ratings: Ratings) -> Audit:
    """Compute all that the marks tell."""
    question_of = {item.code: item.key for item in ratings.key.items}
    means = {aspect: mean_marks(ratings.marks(aspect)) for aspect in ASPECTS}
    correctness = means[CORRECTNESS]
    rated_items = [item for item in ratings.key.items if item.code in correctness]
    return Audit(
        ratings=ratings,
        pairs=tuple(pair for aspect in ASPECTS for pair in compare_raters(aspect, ratings.marks(aspect), question_of)),
        measured=measure_agreement(rated_items, [correctness[item.code] for item in rated_items]),
        by_run=_means_by(ratings.key.items, means, lambda item: item.run),
        by_group=_means_by(ratings.key.items, means, lambda item: item.group),
    )


def audit_document(audit: Audit) -> dict[str, Any]:
    """Build what `--json` prints, JSON-ready: the findings, and every answer's marks and scores."""
    ratings = audit.ratings
    return {
        "audit": str(ratings.folder.path.resolve()),
        "sample": ratings.key.sample,
        "seed": ratings.key.seed,
        "interval": {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED, "clusters": "questions"},
        "sheets": [
            {
                "rater": review.reviewer,
                "rows": len(review.items),
                **{f"{aspect}_marked": len(review.marks[aspect]) for aspect in ASPECTS},
                "means": {aspect: review.mean(aspect) for aspect in ASPECTS},
            }
            for review in ratings.reviews
        ],
        "raters": [asdict(pair.agreement) | asdict(pair.correlation) for pair in audit.pairs],
        "by_run": {run: asdict(marks) for run, marks in audit.by_run.items()},
        "by_group": {group: asdict(marks) for group, marks in audit.by_group.items()},
        "measures": [asdict(measured) for measured in audit.measured],
        "changed": [{"code": item.code, "run": item.run, "key": item.key} for item in ratings.changed],
        "wordless": [{"run": item.run, "key": item.key} for item in ratings.wordless],
        "unseen": dict(ratings.unseen),
        "answers": [_answer(ratings, item) for item in ratings.key.items],
    }


def _answer(ratings: Ratings, item: KeyEntry) -> dict[str, Any]:
    marks_by_aspect = {
        aspect: {rater: marks[item.code] for rater, marks in ratings.marks(aspect).items() if item.code in marks}
        for aspect in ASPECTS
    }
    comments = {
        review.reviewer: review.comments[item.code] for review in ratings.reviews if item.code in review.comments
    }
    return item.model_dump(mode="json") | marks_by_aspect | {"comments": comments}


def _means_by(
    items: Iterable[KeyEntry], means: Mapping[str, Mapping[str, float]], part_of: Callable[[KeyEntry], str]
) -> dict[str, MeanMarks]:
    """Average the marks by part, in alphabetical order."""
    parts: dict[str, list[str]] = {}
    for item in items:
        parts.setdefault(part_of(item), []).append(item.code)
    return {part: _mean_marks(parts[part], means) for part in sorted(parts)}


def _mean_marks(codes: Iterable[str], means: Mapping[str, Mapping[str, float]]) -> MeanMarks:
    marks_by_aspect = {aspect: [marks[code] for code in codes if code in marks] for aspect, marks in means.items()}
    rated_codes = means[CORRECTNESS].keys() | means[COMPLETENESS].keys()
    return MeanMarks(
        len(rated_codes.intersection(codes)),
        {aspect: sum(marks) / len(marks) if marks else None for aspect, marks in marks_by_aspect.items()},
    )
