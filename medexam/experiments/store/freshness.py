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
from medexam.experiments.store.run_folder import ENVIRONMENT, METRICS, PARQUET, PREDICTIONS, REPORT, SPEC, RunFolder
from medexam.inputs import UnreadableError, check_regular

Say = Callable[[str], None]
"""Told in one line what was done to a folder, or why nothing was."""

MADE_FROM = "made_from.json"
DERIVED = (METRICS, REPORT, PARQUET)
SCORING = 3
"""Raised when the same answers make other numbers or other files than before."""
_TRUTH = (SPEC, ENVIRONMENT, MODELS, ITEMS, PREDICTIONS)
_DATA = "the data set's files"
_VERSION = "the version of the scoring"
_MISSING = "missing"


@dataclass(frozen=True)
class Freshness:
    """What has changed in a run folder since its derived files were made."""

    changed: tuple[str, ...]
    """What differs, in words; empty where the derived files are fresh."""
    note: str | None = None
    """What a reader should know of how they were made; None if nothing."""


def record_made(folder: RunFolder, files_digest: str, note: str | None = None) -> None:
    """Keep what the derived files, as they lie in the folder, were made from; `files_digest` is that of the data."""
    sources = {**_digests(folder, _TRUTH), _DATA: files_digest, _VERSION: str(SCORING)}
    folder.write_json(MADE_FROM, {"sources": sources, "note": note})


def answers_unchanged(folder: RunFolder) -> bool:
    """Return whether the derived files were made from the answers and golds that the folder holds now."""
    sources = _read_kept(folder).get("sources", {})
    unchanged = all(sources.get(name) == _digest(folder.path / name) for name in (ITEMS, PREDICTIONS))
    return unchanged and not folder.has_shards


def find_changes(folder: RunFolder) -> Freshness:
    """Compare the folder with what its derived files were made from, and the data set's files if they are at hand.

    No data set is parsed, and no code of the user's own is run.
    """
    made_from = _read_kept(folder)
    missing = tuple(f"{name} is missing" for name in (*DERIVED, MADE_FROM) if not (folder.path / name).exists())
    if missing:
        return Freshness(missing)
    sources = made_from.get("sources", {})
    current_sources = {**_digests(folder, _TRUTH), _VERSION: str(SCORING)}
    dataset = folder.read_record().cell.dataset
    if not dataset.runs_code:
        with suppress(DatasetError):
            current_sources[_DATA] = digest_files(dataset)
    changes = [f"{name} changed" for name in current_sources if current_sources[name] != sources.get(name)]
    if folder.has_shards:
        changes.append("workers left answers in shards")
    return Freshness(tuple(changes), made_from.get("note"))


def _read_kept(folder: RunFolder) -> dict[str, Any]:
    """Read what `made_from.json` holds; empty where it is missing or damaged."""
    try:
        made_from = folder.read_json(MADE_FROM)
    except RunFolderError:
        return {}
    return made_from if isinstance(made_from.get("sources"), dict) else {}


def _digests(folder: RunFolder, names: tuple[str, ...]) -> dict[str, str]:
    return {name: _digest(folder.path / name) for name in names}


def _digest(path: Path) -> str:
    try:
        check_regular(path)
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return _MISSING
    except UnreadableError as error:
        raise RunFolderError(f"{path} {error}") from None
    except OSError as error:
        raise RunFolderError(f"cannot read {path}: {error.strerror}; make it readable") from None
