"""Whether the answers that people marked are still those of their runs; it reads folders and data sets, asks nothing.

A mark belongs to the words that were shown. Where a run answers otherwise now, or the reference is another, the mark
counts no more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from medexam.datasets.review_sheets import Review
from medexam.errors import DatasetError, MedExamError
from medexam.experiments.audit.folder import AuditKey, KeyEntry, shown_digest
from medexam.experiments.audit.items import read_audit_items
from medexam.experiments.audit.ratings import Ratings
from medexam.experiments.store.run_folder import RunFolder
from medexam.metrics.audit import AuditItem


def check_answers(ratings: Ratings, runs_dir: Path) -> Ratings:
    """The ratings without those of answers that have changed since, and with the scores of now.

    A run is looked for where it was exported from, then in `runs_dir`; where it cannot be read, its marks are kept and
    `unseen` says why. Raises `DatasetError` where every answer has changed.
    """
    now: dict[str, dict[str, AuditItem]] = {}
    unseen = {}
    for run in sorted({item.run for item in ratings.key.items}):
        try:
            now[run] = {item.key: item for item in read_audit_items([_find(ratings.key, run, runs_dir)])}
        except MedExamError as error:
            unseen[run] = str(error)
    kept, changed = [], []
    for entry in ratings.key.items:
        item = now[entry.run].get(entry.key) if entry.run in now else None
        if entry.run in unseen:
            kept.append(entry)
        elif item is not None and shown_digest(item) == entry.shown:
            kept.append(entry.model_copy(update={"scores": dict(item.scores)}))
        else:
            changed.append(entry)
    if not kept:
        raise DatasetError(
            f"all {len(changed)} answers of {ratings.folder.path} have changed since they were shown to raters: bring "
            "the runs and their data back as they were, or export the answers of now"
        )
    codes = {entry.code for entry in kept}
    return replace(
        ratings,
        key=ratings.key.model_copy(update={"items": tuple(kept)}),
        reviews=tuple(_only(review, codes) for review in ratings.reviews),
        changed=tuple(changed),
        unseen=unseen,
    )


def describe_changes(ratings: Ratings) -> list[str]:
    """A line for what was left out, and for each run that could not be compared."""
    lines = []
    if ratings.changed:
        named = ", ".join(_name(entry) for entry in ratings.changed)
        lines.append(
            f"{len(ratings.changed)} answers are not what was shown to the raters, and their marks are left out: "
            f"{named}; export anew to have the answers of now judged"
        )
    lines += [
        f"nobody knows whether the answers of run {run} are still those that were marked ({why}); name the place of "
        "the runs with --runs-dir"
        for run, why in ratings.unseen.items()
    ]
    return lines


def _find(key: AuditKey, run: str, runs_dir: Path) -> RunFolder:
    """Raises `DatasetError` where the run is nowhere, or where the key does not say what was shown."""
    if any(item.shown is None for item in key.items):
        raise DatasetError("an earlier version exported them, which did not keep what it showed")
    paths = [*([Path(key.runs[run])] if run in key.runs else []), runs_dir / run]
    for folder in map(RunFolder, paths):
        if folder.exists() and folder.read_record().run_id == run:
            return folder
    raise DatasetError(f"it is not in {' or '.join(str(path.parent) for path in dict.fromkeys(paths))}")


def _only(review: Review, codes: Iterable[str]) -> Review:
    def only(marked: Mapping[str, int]) -> dict[str, int]:
        return {code: mark for code, mark in marked.items() if code in codes}

    return replace(review, marks={aspect: only(marked) for aspect, marked in review.marks.items()})


def _name(entry: KeyEntry) -> str:
    return f"{entry.code} ({entry.run}, {entry.key})"
