"""Where a corpus is read, and which of its rows are passages.

It knows rows, by the names that `medexam.retrievers.formats.names` holds; it keeps nothing in memory.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from medexam.errors import DatasetError
from medexam.retrievers.base import Passage
from medexam.retrievers.corpus_rows import (
    SUFFIXES,
    Place,
    PlacedRow,
    Unreadable,
    list_files,
    load_hub,
    read_corpus_files,
    read_hub_rows,
    read_licence,
)
from medexam.retrievers.formats.names import EXPECTED, IDS, TITLES, UNNAMED, find_field, find_text, read_metadata
from medexam.text import composed

DEFAULT_FILE = "corpus/passages.jsonl.gz"
"""What is read in `$MEDEXAM_DATA` where no corpus is named."""
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(#[\w.-]+)?")


@dataclass(frozen=True)
class CorpusSource:
    """A file, folder or hub data set, which can be read as often as is needed."""

    name: str
    label: str
    """As the user wrote it."""
    rows: Callable[[], Iterator[PlacedRow]]
    licence: str | None


class PlacedPassages:
    """The passages of a source in reading order, each with its place; every iteration reads the source again.

    Raises `DatasetError` where a row is not JSON or lacks its id or text; with `skip_bad` such rows are counted.
    """

    def __init__(self, source: CorpusSource, *, skip_bad: bool) -> None:
        self.source = source
        self.skipped = 0
        """Rows that the latest iteration left out."""
        self._skip_bad = skip_bad

    def __iter__(self) -> Iterator[tuple[Place, Passage]]:
        collections: dict[str, str] = {}
        self.skipped = 0
        for place, row in self.source.rows():
            try:
                yield place, _parse(place, row, self.source.name, collections)
            except _RowError as error:
                if not self._skip_bad:
                    raise DatasetError(
                        f"{place}: {error}: correct it, or leave out such rows and count them (`medexam index build "
                        f"--skip-bad`, retriever.skip_bad in a spec)"
                    ) from None
                self.skipped += 1

    def repeated(self, key: str) -> DatasetError:
        """Build the error that says where the id `key` stands for the first and for the second time."""
        first, second = islice((place for place, row in self.source.rows() if find_id(place, row) == key), 2)
        return DatasetError(
            f"{second}: id {key!r} is already in {first}: give each passage an id of its own, or name the one file "
            "that is to be read"
        )


class _RowError(Exception):
    """Why a row is no passage."""


def find_source(source: str | Path | None) -> CorpusSource:
    """Find what `medexam.retrievers.corpora.load_corpus` reads; raises `DatasetError` if nothing is found."""
    path = _default_path() if source is None else Path(source).expanduser()
    if path.exists():
        files = list_files(path)
        licence = read_licence((path if path.is_dir() else path.parent) / "README.md")
        name = path.resolve().name if path.is_dir() else path.name.split(".")[0]
        return CorpusSource(name, str(path), lambda: read_corpus_files(files, path), licence)
    if isinstance(source, str) and _HUB_NAME.fullmatch(source) and not source.endswith((*SUFFIXES, ".gz")):
        parts = load_hub(source)
        licence = next((part.info.license for part in parts.values() if part.info.license), None)
        return CorpusSource(source, source, lambda: read_hub_rows(source, parts), licence)
    raise DatasetError(
        f"corpus {path} does not exist: correct the path, name a hub data set such as MedRAG/textbooks, or name none "
        f"and set MEDEXAM_DATA to a folder that holds {DEFAULT_FILE}"
    )


def _default_path() -> Path:
    folder = os.environ.get("MEDEXAM_DATA")
    path = Path(folder).expanduser() / DEFAULT_FILE if folder else None
    if path is not None and path.exists():
        return path
    lacking = f"{path} does not exist" if path is not None else "MEDEXAM_DATA is not set"
    raise DatasetError(
        f"no corpus is named and {lacking}: name a file or folder of passages or a hub data set such as "
        f"MedRAG/textbooks, or set MEDEXAM_DATA to a folder that holds {DEFAULT_FILE}"
    )


def _parse(place: Place, row: Mapping[str, Any] | Unreadable, corpus: str, collections: dict[str, str]) -> Passage:
    """Parse the passage of a row; `collections` lets all passages of a source share one text."""
    if isinstance(row, Unreadable):
        raise _RowError(row.reason)
    key = find_id(place, row)
    if key is None:
        raise _RowError(f"id is {_value(row, IDS)!r}, not a text{_fields_of(row, IDS)}")
    try:
        field = find_text(row)
    except ValueError as error:
        raise _RowError(f"of passage {key!r}, {error}") from None
    content, title = row.get(field or ""), _value(row, TITLES)
    if title is None:
        title = read_metadata(row, "title")
    if not isinstance(content, str) or not content.strip():
        raise _RowError(f"passage {key!r} has no text in `{field or 'content'}`{'' if field else _fields_of(row)}")
    if title is not None and not isinstance(title, str):
        raise _RowError(f"title of passage {key!r} is {title!r}, not a text")
    try:
        f"{key}{title}{content}".encode()
    except UnicodeEncodeError:
        raise _RowError(f"passage {key!r} holds half a surrogate pair, which is not a character") from None
    source = row.get("source") or read_metadata(row, "source")
    # MedRAG numbers the passages of a book behind its title: First_Aid_Step1_12 is of First_Aid_Step1.
    prefix, mark, _ = key.partition("_")
    if title and key.startswith(f"{title}_") and key[len(title) + 1 :].isdecimal():
        prefix = title
    has_prefix = mark and prefix and stated_id(row) is not None
    collection = source if isinstance(source, str) and source else prefix if has_prefix else corpus
    return Passage(key, composed(title or ""), composed(content), collections.setdefault(collection, collection))


def find_id(place: Place, row: Mapping[str, Any] | Unreadable) -> str | None:
    """Find the id of a row; LangChain's document without one has that of its file and number. None without either."""
    key = stated_id(row)
    if key is None and not isinstance(row, Unreadable) and UNNAMED in row and _value(row, IDS) is None:
        return f"{Path(place.file).name.partition('.')[0]}-{place.number}"
    return key


def stated_id(row: Mapping[str, Any] | Unreadable) -> str | None:
    """Return the id of a row; None if it has none. Whole numbers are taken as texts."""
    key = None if isinstance(row, Unreadable) else _value(row, IDS)
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    return key if isinstance(key, str) and key else None


def _value(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return row.get(find_field(row, names) or "")


def _fields_of(row: Mapping[str, Any], names: tuple[str, ...] | None = None) -> str:
    """Write what a row has instead of the field that is missing; empty if it has that."""
    if names is not None and find_field(row, names) is not None:
        return ""
    return f" (its fields are {', '.join(list(row)[:20])}; {EXPECTED})"
