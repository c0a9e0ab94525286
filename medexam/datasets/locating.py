"""Where data sets lie, and how they are brought from the Hugging Face hub to the cache folder.

Bringing is all that uses the network. It writes tables of exams, which the readers know, and leaves pictures behind
unless they are asked for.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.datasets.exam_table import FIELDS, WHOLE, parse_image, write_exam_table
from medexam.datasets.rows import parse_whole_number
from medexam.errors import DatasetError
from medexam.files import cache_dir, first_line
from medexam.questions import Language
from medexam.specs.catalogue import DatasetInfo, check_language, find_entry

SHIPPED = Path(__file__).parent
"""The folder of the data sets that ship in the package, each in a folder of its own."""


def find_files(name: str, language: Language, path: Path | None = None) -> tuple[Path, ...]:
    """Find the files that hold `name` in `language`, in reading order; empty if there are none.

    A `path` that names a file is taken at its word; a folder may hold languages beside those that are published, and
    files that have the language in their name. Raises `DatasetError` if the data set has no such language.
    """
    entry = find_entry(name)
    if path is None or language not in entry.file_names:
        check_language(name, language)
    if path is not None and not path.expanduser().is_dir():
        return (path.expanduser(),) if path.expanduser().exists() else ()
    for folder in _folders(entry, path):
        for pattern in entry.file_names[language]:
            if files := tuple(sorted(folder.glob(pattern))):
                return files
    if path is not None:
        word = re.compile(rf"(?:^|[^a-z]){language}(?:[^a-z]|$)", re.IGNORECASE)
        endings = {Path(pattern).suffix for pattern in entry.file_names[language]}
        folder = path.expanduser()
        inside = [file for depth in ("*", "*/*") for file in folder.glob(depth) if file.suffix in endings]
        return tuple(sorted(file for file in inside if word.search(str(file.relative_to(folder)))))
    return ()


def locate_files(name: str, language: Language, path: Path | None = None) -> tuple[Path, ...]:
    """Find files as `find_files` does, but raise `DatasetError` naming every way to bring them when there are none."""
    if files := find_files(name, language, path):
        return files
    entry = find_entry(name)
    file_name = entry.file_names[language][0]
    if path is not None and path.expanduser().is_dir():
        raise DatasetError(
            f"{name}: no file for language {language} in {path}: put {' or '.join(entry.file_names[language])} there, "
            f"or name the file itself in dataset.path"
        )
    if path is not None:
        raise DatasetError(
            f"{name}: {path} does not exist: correct dataset.path, or leave it out and {_ways(entry, file_name)}"
        )
    raise DatasetError(
        f"{name}: no file for language {language} on this machine: set dataset.path to the file, "
        f"or {_ways(entry, file_name)}"
    )


def find_own_file(path: Path) -> Path:
    """Find the file at `path`; raise `DatasetError` if it is missing or a folder."""
    path = path.expanduser()
    if not path.is_file():
        problem = "is a folder: name one of its files" if path.is_dir() else "does not exist"
        raise DatasetError(f"{path}: {problem}; correct dataset.path")
    return path


def find_languages(name: str, path: Path | None = None) -> tuple[Language, ...]:
    """Find the languages of `name` that are here, the published ones first.

    The language of a single file is read from its name. Raises `DatasetError` if no language is here or the
    file's name says none.
    """
    entry = find_entry(name)
    if path is not None and path.expanduser().is_file():
        names = entry.file_names
        stated = tuple(language for language in names if any(map(path.match, names[language])))
        if not stated:
            raise DatasetError(f"{name}: the name of {path} does not contain its language: say which with --language")
        return stated
    possible = entry.languages if path is None else entry.file_names
    languages = tuple(language for language in possible if find_files(name, language, path))
    if not languages:
        locate_files(name, entry.languages[0], path)
    return languages


def _folders(entry: DatasetInfo, path: Path | None) -> list[Path]:
    if path is not None:
        return [path.expanduser()]
    if entry.ships:
        return [_shipped_folder(entry)]
    data, folder = os.environ.get("MEDEXAM_DATA"), entry.folder or entry.name
    return ([Path(data).expanduser() / folder] if data else []) + [cache_dir() / folder]


def _shipped_folder(entry: DatasetInfo) -> Path:
    return (entry.package or SHIPPED) / (entry.folder or entry.name)


def _ways(entry: DatasetInfo, file_name: str) -> str:
    if entry.ships:
        return f"read the {entry.title} that ships in {_shipped_folder(entry)}"
    data, folder = os.environ.get("MEDEXAM_DATA"), entry.folder or entry.name
    place = (
        f"put {folder}/{file_name} in $MEDEXAM_DATA ({data})"
        if data
        else f"set MEDEXAM_DATA to the folder that holds {folder}/{file_name}"
    )
    if entry.origin is not None:
        return f"{place}; it comes from {entry.origin}"
    return f"{place}, or run `medexam data fetch {entry.name}` (looked in {cache_dir() / entry.name})"


HUB_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """One language that was brought here."""

    language: Language
    path: Path
    questions: int
    origin: str
    """The hub id, with `@` and the commit where the hub said it."""


def fetch_exam_set(
    name: str,
    languages: Sequence[Language] | None = None,
    *,
    hub: str | None = None,
    folder: Path | None = None,
    images: bool = False,
) -> Iterator[Fetched]:
    """Bring `name` in `languages` (None: all that it is published in), yielding each as it arrives.

    `hub` is another hub id, or a local copy of the hub's folder, to read instead of the authors' own; `folder` is
    written instead of the cache folder; `images` keeps the bytes of pictures. Raises `DatasetError` if the hub cannot
    be reached or holds something else.
    """
    entry = find_entry(name)
    if entry.hub is None:
        if entry.origin is not None:
            raise DatasetError(
                f"{name} is not on the hub: download it from {entry.origin} and set MEDEXAM_DATA to the folder "
                f"that holds {entry.folder or name}"
            )
        raise DatasetError(f"{name} ships in the package: there is nothing to fetch")
    language_codes = tuple(languages) if languages else entry.languages
    for language in language_codes:
        check_language(name, language)
    origin = hub or entry.hub
    revision = _fetch_revision(origin)
    stated = f"{origin}@{revision}" if revision else origin
    for language in language_codes:
        records = fetch_records(origin, language, None, revision)
        if missing := [field for field in FIELDS if records and field not in records[0]]:
            raise DatasetError(f"{origin}, configuration {language}: lacks the fields {', '.join(missing)}")
        for record in records:
            record.update({field: parse_whole_number(record[field]) for field in WHOLE})
            if not images:
                record["image"] = parse_image(record["image"])
            elif isinstance(record["image"], str):
                record["image"] = {"bytes": None, "path": record["image"]} if record["image"] else None
        path = (folder or cache_dir()) / name / f"{language}.parquet"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_exam_table(path, records, stated, with_pictures=images)
        except OSError as error:
            raise DatasetError(
                f"cannot write {path} ({error}): set MEDEXAM_CACHE to a folder that can be written"
            ) from None
        yield Fetched(language=language, path=path, questions=len(records), origin=stated)


def _fetch_revision(hub: str) -> str | None:
    if Path(hub).is_dir():
        return None
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        return HfApi().dataset_info(hub, timeout=HUB_TIMEOUT_S).sha
    except OfflineModeIsEnabled:
        return None
    except (OSError, ValueError, httpx.HTTPError) as error:
        raise _unreachable(hub, error) from None


def fetch_records(hub: str, config: str | None, split: str | None, revision: str | None) -> list[dict[str, Any]]:
    """Fetch the rows of one split of a data set on the hub, of all splits if `split` is None.

    Pictures are the hub's `{path, bytes}`. Raises `DatasetError` that says what to do instead.
    """
    try:
        import datasets
    except ImportError:
        raise DatasetError(
            f"{hub}: the hub needs the `datasets` library: pip install 'medexam[data]', or copy the files and set "
            "dataset.path or MEDEXAM_DATA"
        ) from None
    import httpx

    try:
        loaded = datasets.load_dataset(hub, config, split=split, revision=revision)
        records: list[dict[str, Any]] = []
        for part in [loaded] if split else loaded.values():
            for name, feature in part.features.items():
                if isinstance(feature, datasets.Image):
                    part = part.cast_column(name, datasets.Image(decode=False))
            records += map(dict, part)
    except (OSError, ValueError, RuntimeError, httpx.HTTPError, datasets.exceptions.DatasetsError) as error:
        raise _unreachable(f"{hub}, configuration {config}" if config else hub, error) from None
    return records


def _unreachable(name: str, error: Exception) -> DatasetError:
    return DatasetError(
        f"cannot read {name} from the Hugging Face hub ({first_line(error)}): check its names, the network, "
        f"HF_HUB_OFFLINE and HF_ENDPOINT; or `hf download --repo-type dataset {name.partition(',')[0]}`, and set "
        "dataset.path or MEDEXAM_DATA"
    )
