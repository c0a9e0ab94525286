"""Whether the files that are made from a run's answers say what the answers say now: known by content, never by time.

`made_from.json` keeps what `metrics.json`, `report.md` and `predictions.parquet` were made from, as SHA-256. It is
written last, so that files of two scorings never pass for one.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.datasets.fingerprints import digest_files
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.store.answerers import MODELS
from medexam.experiments.store.items import ITEMS
from medexam.experiments.store.logs import check_file
from medexam.experiments.store.run_folder import ENVIRONMENT, METRICS, PARQUET, PREDICTIONS, REPORT, SPEC, RunFolder

Say = Callable[[str], None]
"""Told in one line what was done to a folder, or why nothing was."""

MADE_FROM = "made_from.json"
DERIVED = (METRICS, REPORT, PARQUET)
SCORING = 3
"""Raised when the same answers make other numbers or other files than before."""
_TRUTH = (SPEC, ENVIRONMENT, MODELS, ITEMS, PREDICTIONS)
_DATA = "the data set's files"
_VERSION = "the version of the scoring"


@dataclass(frozen=True)
class Freshness:
    """What has changed in a run folder since its derived files were made."""

    changed: tuple[str, ...]
    """What differs, in words; empty where the derived files are fresh."""
    note: str | None = None
    """What a reader should know of how they were made; None if nothing."""


def record_made(folder: RunFolder, files_digest: str, note: str | None = None) -> None:
    """Keep what the derived files, as they lie in the folder, were made from; `files_digest` is that of the data."""
    sources = {name: _digest(folder.path / name) for name in _TRUTH}
    folder.write_json(MADE_FROM, {"sources": {**sources, _DATA: files_digest, _VERSION: str(SCORING)}, "note": note})


def answers_unchanged(folder: RunFolder) -> bool:
    """Return whether the derived files were made from the answers and golds that the folder holds now."""
    sources = _read_made_from(folder).get("sources", {})
    unchanged = all(sources.get(name) == _digest(folder.path / name) for name in (ITEMS, PREDICTIONS))
    return unchanged and not folder.has_shards


def find_changes(folder: RunFolder) -> Freshness:
    """Compare the folder with what its derived files were made from, and the data set's files if they are at hand.

    No data set is parsed, and no code of the user's own is run.
    """
    if missing := [f"{name} is missing" for name in (*DERIVED, MADE_FROM) if not (folder.path / name).exists()]:
        return Freshness(tuple(missing))
    made_from, dataset = _read_made_from(folder), folder.read_record().cell.dataset
    sources = {**{name: _digest(folder.path / name) for name in _TRUTH}, _VERSION: str(SCORING)}
    if not dataset.runs_code:
        with suppress(DatasetError):
            sources[_DATA] = digest_files(dataset)
    before = made_from.get("sources", {})
    changes = [f"{name} changed" for name, digest in sources.items() if digest != before.get(name)]
    changes += ["workers left answers in shards"] * folder.has_shards
    return Freshness(tuple(changes), made_from.get("note"))


def _read_made_from(folder: RunFolder) -> dict[str, Any]:
    """Read what the derived files were made from; empty where that is missing or damaged."""
    try:
        made_from = folder.read_json(MADE_FROM)
    except RunFolderError:
        return {}
    return made_from if isinstance(made_from.get("sources"), dict) else {}


def _digest(path: Path) -> str:
    try:
        check_file(path)
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        raise RunFolderError(f"cannot read {path}: {error.strerror}; make it readable") from None
