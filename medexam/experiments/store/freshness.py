"""Whether the files that are made from a run's answers say what the answers say now: known by content, never by time.

`made_from.json` keeps what `metrics.json`, `report.md` and `predictions.parquet` were made from, as SHA-256, and what
they held then. It is written last, so that files of two scorings never pass for one.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.datasets.fingerprints import digest_files
from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.experiments.store.answerers import MODELS
from medexam.experiments.store.run_folder import ENVIRONMENT, METRICS, PARQUET, PREDICTIONS, REPORT, SPEC, RunFolder
from medexam.experiments.store.shards import has_shards
from medexam.experiments.store.trust import check_trusted
from medexam.inputs import UnreadableError, check_regular
from medexam.plugins import __version__, hash_source
from medexam.specs.identity import digest
from medexam.specs.names import OWN_METRICS, short_name

Say = Callable[[str], None]
"""Told in one line what was done to a folder, or why nothing was."""

MADE_FROM = "made_from.json"
DERIVED = (METRICS, REPORT, PARQUET)
SCORING = 2
"""Raised when the same answers make other numbers or other files than before."""
_TRUTH = (SPEC, ENVIRONMENT, MODELS, PREDICTIONS)
_DATA = "the data set's files"
_VERSION = "the version of the scoring"
_MISSING = "missing"
NOT_RUN = "not run"
"""Stands for the digest of a metric whose code could not be run when the files were made."""


@dataclass(frozen=True)
class Freshness:
    """What has changed in a run folder since its derived files were made."""

    changed: tuple[str, ...]
    """What differs, in words; empty where the derived files are fresh."""
    answers_changed: bool | None
    """Whether the numbers may be of other answers or of another selection; None where the folder does not tell."""
    without_data: str | None
    """Why the data set cannot be read, so that a change of its golds would not be seen; None where it can."""


def read_sources(folder: RunFolder, files_digest: str) -> dict[str, str]:
    """Read what derived files that are made now are made from; `files_digest` is that of the data that were read.

    Without the code of the user's own metrics: `metric_sources`.
    """
    version = f"{__version__}, scoring {SCORING}"
    return {**_digests(folder, _TRUTH), _DATA: files_digest, _VERSION: version}


def metric_sources(digests: Mapping[str, str]) -> dict[str, str]:
    """Name what else they are made from, where `digests` maps each metric of the user's own to that of its source."""
    return {f"the code of metric {short_name(name)}": source_digest for name, source_digest in digests.items()}


def digest_metrics(folder: RunFolder) -> dict[str, str | SpecError]:
    """Map each metric of the user's own that the run names to its source's digest, or why it cannot be run; nothing is
    run.
    """
    digests: dict[str, str | SpecError] = {}
    for name in folder.read_record().cell.metrics:
        try:
            check_trusted(folder.path, f"metric {short_name(name)}")
            digests[name] = digest(hash_source(name, OWN_METRICS))
        except SpecError as error:
            digests[name] = error
    return digests


def answers_unchanged(folder: RunFolder) -> bool:
    """Return whether the derived files were made from the answers that the folder holds now."""
    made_from = _read_kept(folder)
    sources = {} if made_from is None else made_from["sources"]
    return sources.get(PREDICTIONS) == _digest(folder.path / PREDICTIONS) and not has_shards(folder.path)


def record_made(folder: RunFolder, sources: dict[str, str]) -> None:
    """Keep that the derived files, as they lie in the folder, were made from `sources`."""
    folder.write_json(MADE_FROM, {"sources": sources, "files": _digests(folder, DERIVED)})


def find_changes(folder: RunFolder) -> Freshness:
    """Compare the folder and the data set with what the derived files were made from; no data set is parsed."""
    without_data = None
    try:
        data_digest = digest_files(folder.read_record().cell.dataset)
    except DatasetError as error:
        data_digest, without_data = None, str(error)
    made_from = _read_kept(folder)
    if made_from is None:
        changes = [f"{name} is missing" for name in DERIVED if not (folder.path / name).exists()]
        return Freshness(tuple(changes) or ("nothing says what they were made from",), None, without_data)
    sources, files = made_from["sources"], made_from["files"]
    metric_digests = digest_metrics(folder)
    current_sources = read_sources(folder, sources.get(_DATA, "") if data_digest is None else data_digest)
    current_sources |= metric_sources(
        {name: digest_or_error for name, digest_or_error in metric_digests.items() if isinstance(digest_or_error, str)}
    )
    changes = [f"{name} changed" for name in current_sources if current_sources[name] != sources.get(name)]
    if has_shards(folder.path):
        changes.append("workers left answers in shards")
    changed_files = [name for name, digest in _digests(folder, DERIVED).items() if digest != files.get(name)]
    numbers = {f"{name} changed" for name in (SPEC, PREDICTIONS)} | {"workers left answers in shards"}
    return Freshness(
        (*changes, *(f"{name} changed" for name in changed_files)),
        METRICS in changed_files or not numbers.isdisjoint(changes),
        without_data,
    )


def _read_kept(folder: RunFolder) -> dict[str, Any] | None:
    """Read what `made_from.json` holds; None where it is missing or holds something else."""
    try:
        made_from = folder.read_json(MADE_FROM)
    except RunFolderError:
        return None
    return (
        made_from if isinstance(made_from.get("sources"), dict) and isinstance(made_from.get("files"), dict) else None
    )


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
