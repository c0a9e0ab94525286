"""Where the files of a data set lie on this machine.

A path given by the user wins, then `$MEDEXAM_DATA`, then what `medexam data fetch` brought. It opens no file.
"""

import os
import re
from pathlib import Path

from medexam.errors import DatasetError
from medexam.files import cache_dir
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
