"""The rows of a corpus with the place where each stands: files of every format, and data sets of the hub.

It knows formats only; which rows are passages is for `medexam.retrievers.corpora` to say.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from medexam.errors import CorpusUnreachableError, DatasetError
from medexam.inputs import UnreadableError, open_parquet, open_unpacked, parquet_rows, parse_json
from medexam.library_logging import errors_only
from medexam.retrievers.formats import documents, tables
from medexam.retrievers.formats.names import EXPECTED, IDS, KNOWN, UNNAMED, find_field, find_text

_LINES = (".jsonl", ".jsonl.gz", ".parquet")
_KINDS = (_LINES, tables.SUFFIXES, documents.JSON_SUFFIXES, documents.TEXT_SUFFIXES)
"""Endings of files of passages; of a folder the files of the first kind that it has are read."""
SUFFIXES = tuple(suffix for kind in _KINDS for suffix in kind)
_BATCH_ROWS = 1000


class Place(NamedTuple):
    """Where a row stands."""

    file: str
    """A path, or a hub data set with its split."""
    unit: str
    """`line` or `row`."""
    number: int
    """From 1."""

    def __str__(self) -> str:
        return f"{self.file}, {self.unit} {self.number}"


class Unreadable(NamedTuple):
    """A row that could not be read."""

    reason: str


PlacedRow = tuple[Place, Mapping[str, Any] | Unreadable]


def list_files(path: Path) -> list[Path]:
    """List the file at `path`, or the files of passages in that folder and the folders in it, by name; no hidden ones.

    Other formats hold passages only if no JSON Lines or Parquet lie there, and BEIR's `queries` are none.
    Raises `DatasetError` if there is none.
    """
    if path.is_file():
        if not path.name.lower().endswith(SUFFIXES):
            raise DatasetError(f"{path} is no file of passages: name one that ends in {', '.join(SUFFIXES)}")
        return [path]
    inner_paths = sorted(file.relative_to(path) for file in path.rglob("*") if file.name.lower().endswith(SUFFIXES))
    visible_files = [path / file for file in inner_paths if not any(part.startswith(".") for part in file.parts)]
    for kind in _KINDS:
        matches = [file for file in visible_files if file.name.lower().endswith(kind)]
        if kind is documents.TEXT_SUFFIXES:
            matches = [file for file in matches if documents.is_passage(file)]
        if any(_stem(file) == "corpus" for file in matches):
            matches = [file for file in matches if _stem(file) != "queries"]
        if matches:
            return matches
    raise DatasetError(f"{path} holds no file of passages ({', '.join(SUFFIXES)}): name another in the corpus key")


def read_corpus_files(files: Sequence[Path], root: Path) -> Iterator[PlacedRow]:
    """Yield every row of the files in turn; empty lines are none, and a text file's id is its path within `root`.

    Raises `DatasetError` if a file is damaged or lacks a column.
    """
    for file in files:
        name = file.name.lower()
        if name.endswith(".parquet"):
            yield from _read_parquet(file)
        elif name.endswith(_LINES):
            yield from _read_lines(file)
        else:
            yield from _read_other(file, root)


def read_licence(path: Path) -> str | None:
    """Read `license` in the front matter of a data set card; None if there is no card or it says none."""
    licence = read_front_matter(path).get("license")
    return ", ".join(map(str, licence)) if isinstance(licence, list) else str(licence) if licence else None


def read_front_matter(card: Path) -> Mapping[str, Any]:
    """Read the fields that a card on the hub begins with; empty if there is no card or it is damaged."""
    try:
        preamble, front, _ = card.read_text(encoding="utf-8").split("---\n", 2)
        fields = None if preamble else yaml.safe_load(front)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return fields if isinstance(fields, dict) else {}


def load_hub(name: str) -> Mapping[str, Any]:
    """Load the splits of a hub data set, by name; what stands behind `#` is its configuration.

    Raises `CorpusUnreachableError` if it cannot be downloaded, and `DatasetError` where it lacks a column.
    """
    try:
        import datasets
    except ImportError:
        raise CorpusUnreachableError(
            f"{name} is no path here, and reading it from the hub needs the `datasets` library: "
            f"pip install 'medexam[hub]', or correct the path"
        ) from None
    import httpx

    hub_id, _, configuration = name.partition("#")
    try:
        # The hub's client writes two lines for each of its retries; the error says it once.
        with errors_only("huggingface_hub"):
            parts: Mapping[str, Any] = datasets.load_dataset(hub_id, configuration or None)
    except (OSError, ValueError, httpx.HTTPError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0") else ""
        raise CorpusUnreachableError(
            f"corpus {name} is no path here and cannot be downloaded from the Hugging Face hub{offline} ({reason}): "
            f"correct the name or path, check the network, HF_HUB_OFFLINE and HF_ENDPOINT, or copy its files into a "
            f"folder and name that"
        ) from None
    for split, part in parts.items():
        _check_columns(f"{name}, split {split}", part.column_names)
    return parts


def read_hub_rows(name: str, parts: Mapping[str, Any]) -> Iterator[PlacedRow]:
    """Yield every row of what `load_hub` brought, all splits together."""
    for split, part in parts.items():
        subset = part.select_columns([field for field in KNOWN if field in part.column_names])
        place = f"{name}, split {split}"
        number = 0
        for batch in subset.iter(batch_size=_BATCH_ROWS):
            for values in zip(*batch.values(), strict=True):
                number += 1
                yield Place(place, "row", number), dict(zip(batch, values, strict=True))


def _read_lines(path: Path) -> Iterator[PlacedRow]:
    name, number = str(path), 0
    if _begins_list(path):
        yield from _read_other(path, path)
        return
    try:
        with open_unpacked(path) as lines:
            for number, line in enumerate(lines, start=1):
                if not line.isspace():
                    yield Place(name, "line", number), _parse_line(line)
    except (OSError, UnreadableError) as error:
        raise DatasetError(
            f"{name}: cannot be read after line {number} ({error}): the file may be truncated; copy it again"
        ) from None


def _begins_list(path: Path) -> bool:
    """Return whether a file of JSON Lines is one JSON list instead."""
    try:
        with open_unpacked(path) as lines:
            first = next((line for line in lines if not line.isspace()), b"").strip()
    except (OSError, UnreadableError):
        return False
    return first.startswith(b"[") and (first == b"[" or first.startswith((b"[{", b"[ {")))


def _read_other(path: Path, root: Path) -> Iterator[PlacedRow]:
    name, number = str(path), 0
    try:
        if path.name.lower().endswith(tables.SUFFIXES):
            for number, row in tables.read_table(path):
                yield Place(name, "line", number), Unreadable(row) if isinstance(row, str) else row
        elif path.name.lower().endswith(documents.TEXT_SUFFIXES):
            inner_path = path.relative_to(root).as_posix() if path != root else path.name
            yield Place(name, "line", 1), _read_text(path, inner_path, root.stem)
        else:
            for number, row in enumerate(documents.read_json_rows(path), start=1):
                is_row = isinstance(row, dict)
                yield Place(name, "row", number), row if is_row else Unreadable(f"is {row!r:.40}, not an object")
    except (OSError, UnreadableError) as error:
        raise DatasetError(
            f"{name} is no file of passages: name one that ends in {', '.join(SUFFIXES)} and is whole (after row "
            f"{number} it {error}); {EXPECTED}"
        ) from None


def _read_text(path: Path, name: str, source: str) -> Mapping[str, str] | Unreadable:
    try:
        return {**documents.read_text_file(path, name), "source": source}
    except UnreadableError as error:
        return Unreadable(str(error))


def _stem(path: Path) -> str:
    return path.name.partition(".")[0].lower()


def _parse_line(line: bytes) -> Mapping[str, Any] | Unreadable:
    try:
        row = parse_json(line)
    except UnreadableError as error:
        return Unreadable(str(error))
    return row if isinstance(row, dict) else Unreadable(f"is {row!r:.40}, not an object")


def _read_parquet(path: Path) -> Iterator[PlacedRow]:
    name, number = str(path), 0
    try:
        with open_parquet(path) as file:
            columns = file.schema_arrow.names
            _check_columns(name, columns)
            rows = parquet_rows(file, [field for field in KNOWN if field in columns])
            for number, row in enumerate(rows, start=1):
                yield Place(name, "row", number), row
    except UnreadableError as error:
        raise DatasetError(
            f"{name}: cannot be read after row {number} ({error}): the file may be truncated; copy it again"
        ) from None


def _check_columns(place: str, columns: Sequence[str]) -> None:
    try:
        text = find_text(columns)
    except ValueError as error:
        raise DatasetError(f"{place}: {error}") from None
    lacks_id = find_field(columns, IDS) is None and text != UNNAMED
    if missing := [*(["id"] if lacks_id else []), *(["content"] if text is None else [])]:
        raise DatasetError(
            f"{place}: lacks the column {' and '.join(missing)}: its columns are {', '.join(columns[:20])}, and "
            f"{EXPECTED}; rename the columns"
        )
