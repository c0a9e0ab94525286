"""Marks that readers gave on the page of a run and saved as a sheet; the sheet itself says what each code stands for.

A code is run, question and digest of the answer, with slashes between; a question may hold slashes of its own.
"""

from collections.abc import Sequence
from pathlib import Path

from medexam.errors import DatasetError
from medexam_companions.audit.folder import ASPECTS, CODE, KEY, AuditFolder, AuditKey, KeyEntry
from medexam_companions.audit.items import read_current_answers
from medexam_companions.audit.ratings import Ratings, find_marked_run, keep_codes
from medexam_companions.audit.review_sheets import load_review_sheets, read_sheet_rows

RUN_FOLDER = "run_folder"
"""The column that says where a page read the run."""


def find_page_sheets(path: Path) -> list[Path]:
    """List the sheets of pages at `path`: itself if it is a file, else the CSV files of a folder without a key."""
    if path.is_file():
        return [path]
    return [] if (path / KEY).exists() else sorted(path.glob("*.csv"))


def read_page_ratings(sheets: Sequence[Path], runs_dir: Path) -> Ratings:
    """Read the sheets that pages saved, one a reader, with the scores that their answers have now.

    A run is looked for where the page read it, then in `runs_dir`. Answers that have changed since, or have no reply,
    are left out and kept apart. Raises `DatasetError` naming the line that is wrong, or where a run is nowhere, nothing
    is marked, or no marked answer is left.
    """
    reviews = load_review_sheets(sheets, CODE, ASPECTS, _explain)
    if not any(review.marks[aspect] for review in reviews for aspect in ASPECTS):
        raise DatasetError(f"nothing is marked in {sheets[0]}: give marks from 1 to 5 on the page, and save them again")
    places = {
        row[CODE].partition("/")[0]: row[RUN_FOLDER]
        for path in sheets
        for _, row in read_sheet_rows(path, (RUN_FOLDER,))
    }
    codes_by_run: dict[str, list[str]] = {}
    for code in dict.fromkeys(code for review in reviews for code in review.items):
        codes_by_run.setdefault(code.partition("/")[0], []).append(code)
    entries, changed, wordless, runs = list[KeyEntry](), list[KeyEntry](), list[KeyEntry](), dict[str, str]()
    for run, codes in codes_by_run.items():
        try:
            folder = find_marked_run(run, [Path(places[run]), runs_dir / run])
        except DatasetError as error:
            raise DatasetError(
                f"cannot read the marked run {run}: {error}; name the folder of the runs with --runs-dir"
            ) from None
        runs[run] = str(folder.path.resolve())
        items, digests = read_current_answers(folder)
        for code in codes:
            key, _, digest = code.partition("/")[2].rpartition("/")
            item = items.get(key)
            entry = KeyEntry(
                code=code,
                run=run,
                key=key,
                group=item.group if item else "",
                scores=dict(item.scores) if item else {},
                shown=digest,
            )
            if not digest:
                wordless.append(entry)
            elif item is None or digests.get(key) != digest:
                changed.append(entry)
            else:
                entries.append(entry)
    if not entries:
        raise DatasetError(
            f"none of the {len(changed) + len(wordless)} marked answers of {sheets[0]} can be judged: {len(changed)} "
            f"have changed since they were marked, {len(wordless)} have no reply; make the page again, and mark "
            "answers that have a reply"
        )
    kept = {entry.code for entry in entries}
    return Ratings(
        folder=AuditFolder(sheets[0]),
        key=AuditKey(sample="page", seed=None, runs=runs, items=tuple(entries)),
        reviews=tuple(keep_codes(review, kept) for review in reviews),
        changed=tuple(changed),
        wordless=tuple(wordless),
    )


def _explain(code: str) -> str | None:
    if code.count("/") >= 2:
        return None
    return "a page writes no such code: import an exported sheet by its folder, which holds the key"
