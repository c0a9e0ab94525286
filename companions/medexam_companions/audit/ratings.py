"""What raters gave back, and whether the answers are still those that they marked.

Marks come in sheets of an exported audit, whose key says what a code stands for, or in sheets that readers saved from
the page of a run. There a code is run, question and digest of the answer, with slashes between; a question may hold
slashes of its own. A mark belongs to the words that were shown: if a run answers otherwise now, it counts no more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medexam import MedExamError
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments import RunFolder
from medexam.text import count_of
from medexam_companions.audit.folder import ASPECTS, CODE, KEY, AuditFolder, AuditKey, KeyEntry
from medexam_companions.audit.items import AuditItem, read_audit_items
from medexam_companions.audit.review_sheets import Review, load_review_sheets, read_sheet_rows

RUN_FOLDER = "run_folder"
"""The column that says where a page read the run."""


@dataclass(frozen=True)
class Ratings:
    """The marks of all raters, by code."""

    key: AuditKey
    reviews: tuple[Review[int], ...]
    """One sheet a rater; at least one mark is given in all."""
    changed: tuple[KeyEntry, ...]
    """Answers that are not what was shown any more, or have no reply; their marks are not in `reviews`."""
    unseen: Mapping[str, str]
    """Run -> why its answers could not be compared with what was shown."""

    def marks(self, aspect: str) -> dict[str, dict[str, int]]:
        """Return the marks of an aspect, by rater and code; a rater who has given none is not there."""
        return {review.reviewer: dict(review.marks[aspect]) for review in self.reviews if review.marks[aspect]}


def read_ratings(path: Path, sheets: Sequence[Path], runs_dir: Path) -> Ratings:
    """Read the filled-in sheets: those at `sheets`, or all CSV files of the audit's folder, or what a page saved.

    A sheet may lack rows and marks. Scores are those that the answers have now. A run is looked for where its answers
    were read from, then in `runs_dir`; where it cannot be read, `unseen` says why, and a page's marks are refused.
    Raises `DatasetError` naming the line that is wrong, such as a code that is of another sample, stands twice or has a
    mark other than 1 to 5, or where nothing is marked yet or no marked answer is as it was; and `RunFolderError` where
    the folder holds no audit or no sheet.
    """
    saved = [path] if path.is_file() else [] if (path / KEY).exists() else sorted(path.glob("*.csv"))
    if saved:
        paths = [*saved, *sheets]
        reviews: tuple[Review[int], ...] = load_review_sheets(paths, CODE, ASPECTS, _explain_page)
        key = _read_page_key(paths, reviews)
    else:
        key = AuditFolder(path).read_key()
        paths = list(sheets) or sorted(sheet for sheet in path.glob("*.csv") if not sheet.name.startswith("."))
        if not paths:
            raise RunFolderError(f"{path} holds no sheet (*.csv): put the filled-in sheets there, or name --sheet")
        codes = {item.code for item in key.items}
        reviews = load_review_sheets(
            paths, CODE, ASPECTS, lambda code: None if code in codes else _explain(code, key.sample, path)
        )
    if not any(review.marks[aspect] for review in reviews for aspect in ASPECTS):
        raise DatasetError(
            f"none of the {len(reviews)} sheets for {path} is marked yet: have them filled in, and name those that lie "
            "elsewhere with --sheet"
        )
    return _check_answers(key, reviews, runs_dir)


def _explain(code: str, sample: str, path: Path) -> str:
    other = code.rpartition("-")[0]
    if other == sample or not (len(other) == len(sample) and other.isalpha()):
        return f"no answer of this audit has that code: take the codes of {path}"
    return f"the sheet is of another sample ({other}, not {sample}): import it with the folder that it was exported to"


def _explain_page(code: str) -> str | None:
    if code.count("/") >= 2:
        return None
    return "a page writes no such code: import an exported sheet by its folder, which holds the key"


def _read_page_key(paths: Sequence[Path], reviews: Sequence[Review[int]]) -> AuditKey:
    """Make the key that a page's codes are themselves."""
    entries = []
    for code in dict.fromkeys(code for review in reviews for code in review.items):
        run, _, answer = code.partition("/")
        question, _, digest = answer.rpartition("/")
        entries.append(KeyEntry(code=code, run=run, key=question, digest=digest))
    if not entries:
        raise DatasetError(f"nothing is marked in {paths[0]}: give marks from 1 to 5 on the page, and save them again")
    rows = (row for path in paths for _, row in read_sheet_rows(path, (RUN_FOLDER,)))
    places = {row[CODE].partition("/")[0]: row[RUN_FOLDER] for row in rows}
    return AuditKey(sample="page", seed=None, runs=places, items=tuple(entries))


def _check_answers(key: AuditKey, reviews: Sequence[Review[int]], runs_dir: Path) -> Ratings:
    """Leave out the marks of answers that have changed since, and take the scores of now."""
    current: dict[str, dict[str, AuditItem]] = {}
    unseen: dict[str, str] = {}
    for run in sorted({item.run for item in key.items}):
        try:
            folder = _find_run(run, [*([Path(key.runs[run])] if run in key.runs else []), runs_dir / run])
            current[run] = {item.key: item for item in read_audit_items(folder)}
        except MedExamError as error:
            if key.seed is None:
                raise DatasetError(
                    f"cannot read the marked run {run}: {error}; name the folder of the runs with --runs-dir"
                ) from None
            unseen[run] = str(error)
    entries, changed = [], []
    for entry in key.items:
        item = current.get(entry.run, {}).get(entry.key)
        if entry.run in unseen:
            entries.append(entry)
        elif item is not None and item.digest == entry.digest:
            entries.append(entry.model_copy(update={"group": item.group, "scores": dict(item.scores)}))
        else:
            changed.append(entry)
    if not entries:
        raise DatasetError(
            f"all {len(changed)} answers have changed since they were shown to raters, or have no reply: restore the "
            "runs, or have today's answers judged"
        )
    codes = {entry.code for entry in entries}
    return Ratings(
        key.model_copy(update={"items": tuple(entries)}),
        tuple(_select(review, codes) for review in reviews),
        tuple(changed),
        unseen,
    )


def _find_run(run: str, paths: Sequence[Path]) -> RunFolder:
    for folder in map(RunFolder, paths):
        if folder.exists() and folder.read_record().run_id == run:
            return folder
    raise DatasetError(f"it is not in {' or '.join(str(path.parent) for path in dict.fromkeys(paths))}")


def _select(review: Review[int], codes: set[str]) -> Review[int]:
    marks = {
        aspect: {code: mark for code, mark in by_code.items() if code in codes}
        for aspect, by_code in review.marks.items()
    }
    return replace(review, marks=marks)


def describe_changes(ratings: Ratings) -> list[str]:
    """Write a line for what was left out, and for each run that could not be compared."""
    names = ", ".join(f"{entry.code} ({entry.run}, {entry.key})" for entry in ratings.changed)
    lines = [
        f"{count_of(len(ratings.changed), 'mark')} left out, because the answer has changed since it was rated, or has "
        f"no reply: {names}; export again to have today's answers judged"
    ]
    return (lines if ratings.changed else []) + [
        f"it is unknown whether the answers of run {run} are still those that were marked ({reason}); "
        "name the place of the runs with --runs-dir"
        for run, reason in ratings.unseen.items()
    ]
