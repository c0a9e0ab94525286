"""What raters gave back: their sheets, read against the key of the audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from medexam.datasets.review_sheets import Review, read_reviews
from medexam.errors import DatasetError
from medexam.experiments.audit.folder import ASPECTS, CODE, AuditFolder, AuditKey, KeyEntry


@dataclass(frozen=True)
class Ratings:
    """The marks of all raters, by code."""

    folder: AuditFolder
    key: AuditKey
    reviews: tuple[Review, ...]
    """One sheet a rater; at least one mark is given in all."""
    changed: tuple[KeyEntry, ...] = ()
    """Answers that are not what was shown any more; they are not in `key`, and their marks count for nothing."""
    unseen: Mapping[str, str] = field(default_factory=dict)
    """Run -> why its answers could not be compared with what was shown."""

    def marks(self, aspect: str) -> dict[str, dict[str, int]]:
        """The marks of an aspect, by rater and code; a rater who has given none is not there."""
        return {review.reviewer: dict(review.marks[aspect]) for review in self.reviews if review.marks[aspect]}


def read_ratings(folder: AuditFolder, sheets: Sequence[Path] = ()) -> Ratings:
    """The filled-in sheets: those at `sheets`, or all CSV files of the folder where none are named.

    A sheet may lack rows and marks. Raises `DatasetError` naming the line that is wrong, such as a code that is of
    another sample, stands twice or has a mark other than 1 to 5, or where nothing is marked yet; and `RunFolderError`
    where the folder holds no audit or no sheet.
    """
    key = folder.read_key()
    codes = {item.code for item in key.items}

    def explain(code: str) -> str | None:
        if code in codes:
            return None
        sample = code.rpartition("-")[0]
        if sample == key.sample or not (len(sample) == len(key.sample) and sample.isalpha()):
            return f"no answer of this audit has that code: take the codes of {folder.path}"
        return (
            f"the sheet is of another sample ({sample}, not {key.sample}): import it with the folder that it was "
            "exported to"
        )

    reviews = read_reviews(list(sheets) or folder.sheets(), CODE, ASPECTS, explain)
    if not any(review.marks[aspect] for review in reviews for aspect in ASPECTS):
        raise DatasetError(
            f"none of the {len(reviews)} sheets for {folder.path} is marked yet: have them filled in, and name those "
            "that lie elsewhere with --sheet"
        )
    return Ratings(folder, key, reviews)
