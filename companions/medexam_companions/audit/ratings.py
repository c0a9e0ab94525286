"""What raters gave back, read against the key of the audit, and whether the answers are still those that they marked.

A mark belongs to the words that were shown. If a run answers otherwise now, or the reference is another, the mark
counts no more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from medexam import MedExamError
from medexam.errors import DatasetError
from medexam.experiments import RunFolder
from medexam.text import count_of
from medexam_companions.audit.folder import ASPECTS, CODE, AuditFolder, AuditKey, KeyEntry, shown_digest
from medexam_companions.audit.items import AuditItem, read_audit_items
from medexam_companions.audit.review_sheets import Review, load_review_sheets


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
    wordless: tuple[KeyEntry, ...] = ()
    """Answers without a reply, such as a baseline's; they are not in `key`, and their marks count for nothing."""

    def marks(self, aspect: str) -> dict[str, dict[str, int]]:
        """Return the marks of an aspect, by rater and code; a rater who has given none is not there."""
        return {review.reviewer: dict(review.marks[aspect]) for review in self.reviews if review.marks[aspect]}


def read_ratings(folder: AuditFolder, sheets: Sequence[Path] = ()) -> Ratings:
    """Read the filled-in sheets: those at `sheets`, or all CSV files of the folder where none are named.

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

    reviews = load_review_sheets(list(sheets) or folder.sheets(), CODE, ASPECTS, explain)
    if not any(review.marks[aspect] for review in reviews for aspect in ASPECTS):
        raise DatasetError(
            f"none of the {len(reviews)} sheets for {folder.path} is marked yet: have them filled in, and name those "
            "that lie elsewhere with --sheet"
        )
    return Ratings(folder, key, reviews)


def check_answers(ratings: Ratings, runs_dir: Path) -> Ratings:
    """Return the ratings without those of answers that have changed since, and with the scores of now.

    A run is looked for where it was exported from, then in `runs_dir`; where it cannot be read, its marks are kept and
    `unseen` says why. Raises `DatasetError` where every answer has changed.
    """
    current_items: dict[str, dict[str, AuditItem]] = {}
    unseen = {}
    for run in sorted({item.run for item in ratings.key.items}):
        try:
            current_items[run] = {item.key: item for item in read_audit_items([_find(ratings.key, run, runs_dir)])}
        except MedExamError as error:
            unseen[run] = str(error)
    entries, changed_entries = [], []
    for entry in ratings.key.items:
        item = current_items[entry.run].get(entry.key) if entry.run in current_items else None
        if entry.run in unseen:
            entries.append(entry)
        elif item is not None and shown_digest(item) == entry.shown:
            entries.append(entry.model_copy(update={"scores": dict(item.scores)}))
        else:
            changed_entries.append(entry)
    if not entries:
        raise DatasetError(
            f"all {len(changed_entries)} answers of {ratings.folder.path} have changed since they were shown to raters"
            ": restore the runs and their data, or export today's answers"
        )
    codes = {entry.code for entry in entries}
    return replace(
        ratings,
        key=ratings.key.model_copy(update={"items": tuple(entries)}),
        reviews=tuple(keep_codes(review, codes) for review in ratings.reviews),
        changed=tuple(changed_entries),
        unseen=unseen,
    )


def describe_changes(ratings: Ratings) -> list[str]:
    """Write a line for what was left out, and for each run that could not be compared."""
    lines = []
    if ratings.changed:
        names = ", ".join(_name(entry) for entry in ratings.changed)
        lines.append(
            f"{count_of(len(ratings.changed), 'mark')} left out, because the answer has changed since it was rated: "
            f"{names}; export again to have today's answers judged"
        )
    if ratings.wordless:
        runs = ", ".join(sorted({entry.run for entry in ratings.wordless}))
        lines.append(
            f"{count_of(len(ratings.wordless), 'mark')} left out, because there is no reply to judge (runs: {runs})"
        )
    lines += [
        f"it is unknown whether the answers of run {run} are still those that were marked ({reason}); "
        "name the place of the runs with --runs-dir"
        for run, reason in ratings.unseen.items()
    ]
    return lines


def _find(key: AuditKey, run: str, runs_dir: Path) -> RunFolder:
    """Find a run; raise `DatasetError` where it is nowhere."""
    paths = [*([Path(key.runs[run])] if run in key.runs else []), runs_dir / run]
    return find_marked_run(run, paths)


def find_marked_run(run: str, paths: Sequence[Path]) -> RunFolder:
    """Find the folder of a run among `paths`; raises `DatasetError` where none is it."""
    for folder in map(RunFolder, paths):
        if folder.exists() and folder.read_record().run_id == run:
            return folder
    raise DatasetError(f"it is not in {' or '.join(str(path.parent) for path in dict.fromkeys(paths))}")


def keep_codes(review: Review, codes: Iterable[str]) -> Review:
    """Return the review with the marks of these codes alone."""

    def only(marks: Mapping[str, int]) -> dict[str, int]:
        return {code: mark for code, mark in marks.items() if code in codes}

    return replace(review, marks={aspect: only(marks) for aspect, marks in review.marks.items()})


def _name(entry: KeyEntry) -> str:
    return f"{entry.code} ({entry.run}, {entry.key})"
