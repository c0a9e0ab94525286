"""What raters gave back, and whether the answers are still those that they marked.

Marks come in sheets of an exported audit, whose key says what a code stands for, or in sheets that readers saved from
the page of a run. There a code is run, question and digest of the answer, with slashes between; a question may hold
slashes of its own. A mark belongs to the words that were shown: if a run answers otherwise now, it counts no more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medexam import MedExamError
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments import RunFolder
from medexam_companions.audit.folder import ASPECTS, CODE, AuditFolder, AuditKey, KeyEntry
from medexam_companions.audit.items import AuditItem, read_audit_items
from medexam_companions.audit.review_sheets import Review, load_review_sheets, read_sheet_rows

RUN_FOLDER = "run_folder"
"""The column that says where a page read the run."""


@dataclass(frozen=True)
class Ratings:
    """The marks of all raters, by code."""

    key: AuditKey
    items: Mapping[str, AuditItem]
    """Code -> the answer, which is what was shown."""
    reviews: Sequence[Review[int]]
    """One sheet a rater; at least one mark is given in all."""
    changed: tuple[KeyEntry, ...]
    """Answers that are not what was shown any more, or have no reply; their marks do not count."""

    def marks(self, aspect: str) -> dict[str, dict[str, int]]:
        """Return the marks of an aspect, by rater and code; a rater who has given none is not there."""
        by_rater = {
            review.reviewer: {code: mark for code, mark in review.marks[aspect].items() if code in self.items}
            for review in self.reviews
        }
        return {rater: marks for rater, marks in by_rater.items() if marks}


def read_ratings(path: Path, sheets: Sequence[Path], runs_dir: Path) -> Ratings:
    """Read the filled-in sheets: those at `sheets`, or all CSV files of the audit's folder; or what a page saved.

    A sheet may lack rows and marks. A run is looked for where its answers were read from, then in `runs_dir`. Raises
    `DatasetError` naming the line that is wrong, such as a code that is of another sample, stands twice or has a mark
    other than 1 to 5, where nothing is marked yet, or where a run cannot be read; and `RunFolderError`
    where the folder holds no audit or no sheet.
    """
    if path.is_file():
        paths, key = [path, *sheets], None
        reviews: Sequence[Review[int]] = load_review_sheets(paths, CODE, ASPECTS)
    else:
        key = AuditFolder(path).read_key()
        paths = list(sheets) or sorted(sheet for sheet in path.glob("*.csv") if not sheet.name.startswith("."))
        if not paths:
            raise RunFolderError(f"{path} holds no sheet (*.csv): put the filled-in sheets there, or name --sheet")
        reviews = load_review_sheets(paths, CODE, ASPECTS, {entry.code for entry in key.items})
    if not any(review.marks[aspect] for review in reviews for aspect in ASPECTS):
        raise DatasetError(
            f"none of the {len(reviews)} sheets for {path} is marked yet: have them filled in, and name those that lie "
            "elsewhere with --sheet"
        )
    return _check_answers(key or _read_page_key(paths), reviews, runs_dir)


def _read_page_key(paths: Sequence[Path]) -> AuditKey:
    """Make the key that a page's codes are themselves."""
    entries, places = {}, {}
    for code, place in (
        (row[CODE], row[RUN_FOLDER]) for path in paths for _, row in read_sheet_rows(path, (RUN_FOLDER,))
    ):
        run, _, answer = code.partition("/")
        question, _, digest = answer.rpartition("/")
        entries[code], places[run] = KeyEntry(code=code, run=run, key=question, digest=digest), place
    return AuditKey(sample="page", runs=places, items=tuple(entries.values()))


def _check_answers(key: AuditKey, reviews: Sequence[Review[int]], runs_dir: Path) -> Ratings:
    """Leave out the marks of answers that have changed since."""
    current: dict[str, dict[str, AuditItem]] = {}
    for run in sorted({entry.run for entry in key.items}):
        try:
            folder = _find_run(run, [Path(key.runs.get(run, runs_dir / run)), runs_dir / run])
            current[run] = {item.key: item for item in read_audit_items(folder)}
        except MedExamError as error:
            raise DatasetError(
                f"cannot read the marked run {run}: {error}; name the folder of the runs with --runs-dir"
            ) from None
    items, changed = {}, []
    for entry in key.items:
        item = current[entry.run].get(entry.key)
        if item is not None and item.digest == entry.digest:
            items[entry.code] = item
        else:
            changed.append(entry)
    return Ratings(key, items, reviews, tuple(changed))


def _find_run(run: str, paths: Sequence[Path]) -> RunFolder:
    for folder in map(RunFolder, paths):
        if folder.exists() and folder.read_record().run_id == run:
            return folder
    raise DatasetError(f"it is not in {' or '.join(str(path.parent) for path in dict.fromkeys(paths))}")
