"""The rows of a corpus with the place where each stands: files of every format, and data sets of the hub.

It knows formats, and how the fields of a passage are called in the corpora of others: MedRAG, BEIR, DPR, Pyserini,
LangChain, TREC. Which rows are passages is for `medexam.retrievers.corpora` to say.
"""

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from medexam.errors import CorpusUnreachableError, DatasetError
from medexam.inputs import (
    LONGEST_TEXT,
    UnreadableError,
    decode,
    open_parquet,
    open_unpacked,
    parquet_rows,
    parse_json,
    read_bytes,
    read_json,
)
from medexam.library_logging import errors_only

IDS = ("id", "_id", "docid", "doc_id", "document_id", "pid", "passage_id", "psg_id", "chunk_id", "id_", "pmid")
TEXTS = ("content", "text", "contents")
"""Of several that a row has, the first counts: MedRAG's `contents` repeats the title before the `content`."""
RARER_TEXTS = ("page_content", "passage", "passage_text", "chunk")
"""A row without one of `TEXTS` has one of these."""
TITLES = ("title", "doc_title", "document_title")
UNNAMED = "page_content"
"""The field of LangChain's documents, which need no id."""
_METADATA = ("metadata", "meta")


def _spellings(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spelling for name in names for spelling in (name, name.capitalize(), name.upper())))


_NAMES: tuple[tuple[str, ...], ...] = (IDS, TEXTS, RARER_TEXTS, TITLES)
_SPELLED = {names: _spellings(names) for names in _NAMES}
KNOWN = (*(spelling for spellings in _SPELLED.values() for spelling in spellings), "source", *_METADATA)
"""The columns of which a passage may be made."""
EXPECTED = (
    f"a passage has its id in {', '.join(IDS[:5])} or {IDS[5]}, its text in "
    f"{', '.join((*TEXTS, *RARER_TEXTS[:-1]))} or {RARER_TEXTS[-1]}, and perhaps a title and a source"
)
_TABLE_SUFFIXES = (".tsv", ".tsv.gz", ".csv", ".csv.gz")
_DELIMITERS = "\t,;|"
_BARE = ("id", "text", "title")
"""The columns of a TSV without a header, as in DPR and MS MARCO."""
_JSON_SUFFIXES = (".json", ".json.gz")
_TEXT_SUFFIXES = (".txt", ".md")
_ABOUT = re.compile(r"readme|licen[cs]e|copying|citation", re.IGNORECASE)
"""Files that speak of a corpus."""
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_HEADING = re.compile(r"\A\s*# +(.+)\n")
_LINES = (".jsonl", ".jsonl.gz", ".parquet")
_KINDS = (_LINES, _TABLE_SUFFIXES, _JSON_SUFFIXES, _TEXT_SUFFIXES)
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
        if kind is _TEXT_SUFFIXES:
            matches = [file for file in matches if not _ABOUT.match(file.name)]
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
        name, number, unit = file.name.lower(), 0, "line"
        rows: Iterator[tuple[int, Mapping[str, Any] | Unreadable]]
        is_listed = name.endswith(_LINES)
        if name.endswith(".parquet"):
            unit, rows = "row", _read_parquet(file)
        elif is_listed and not _begins_list(file):
            rows = _read_lines(file)
        elif name.endswith(_TABLE_SUFFIXES):
            rows = _read_table(file)
        elif name.endswith(_TEXT_SUFFIXES):
            rows = _read_text(file, root)
        else:
            is_listed, unit, rows = False, "row", enumerate(map(_check_object, _read_json_rows(file)), start=1)
        try:
            for number, row in rows:
                yield Place(str(file), unit, number), row
        except (OSError, UnreadableError) as error:
            if is_listed:
                raise DatasetError(
                    f"{file}: cannot be read after {unit} {number} ({error}): the file may be truncated; copy it again"
                ) from None
            raise DatasetError(
                f"{file} is no file of passages: name one that ends in {', '.join(SUFFIXES)} and is whole (after row "
                f"{number} it {error}); {EXPECTED}"
            ) from None


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
            f"pip install 'medexam[data]', or correct the path"
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


def _read_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | Unreadable]]:
    with open_unpacked(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.isspace():
                continue
            try:
                row = _check_object(parse_json(line))
            except UnreadableError as error:
                row = Unreadable(str(error))
            yield number, row


def _begins_list(path: Path) -> bool:
    """Return whether a file of JSON Lines is one JSON list instead."""
    try:
        with open_unpacked(path) as lines:
            first = next((line for line in lines if not line.isspace()), b"").strip()
    except (OSError, UnreadableError):
        return False
    return first.startswith(b"[") and (first == b"[" or first.startswith((b"[{", b"[ {")))


def _stem(path: Path) -> str:
    return path.name.partition(".")[0].lower()


def _check_object(value: Any) -> Mapping[str, Any] | Unreadable:
    return value if isinstance(value, dict) else Unreadable(f"is {value!r:.40}, not an object")


def _read_parquet(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with open_parquet(path) as file:
        columns = file.schema_arrow.names
        _check_columns(str(path), columns)
        yield from enumerate(parquet_rows(file, [field for field in KNOWN if field in columns]), start=1)


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


def _read_table(path: Path) -> Iterator[tuple[int, Mapping[str, str] | Unreadable]]:
    """Yield the rows of a table, each with its line.

    Raises `OSError`, and `UnreadableError` if the header names no passages, or the file is damaged.
    """
    limit = csv.field_size_limit(LONGEST_TEXT)
    try:
        with open_unpacked(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as lines:
            first = lines.readline(LONGEST_TEXT)
            delimiter, columns, has_header = _read_header(first)
            # MS MARCO's texts hold single quotation marks; tables with a header are written by libraries.
            rows = csv.reader(
                lines,
                delimiter=delimiter,
                quoting=csv.QUOTE_MINIMAL if has_header else csv.QUOTE_NONE,
                strict=True,
            )
            last_line = 1
            if not has_header:
                yield 1, dict(zip(columns, first.rstrip("\r\n").split(delimiter), strict=True))
            for row in rows:
                line, last_line = last_line + 1, rows.line_num + 1
                if len(row) == len(columns):
                    yield line, dict(zip(columns, row, strict=True))
                elif row:
                    yield line, Unreadable(f"has {len(row)} cells, and the columns are {', '.join(columns)}")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8 (byte {error.object[error.start]:#04x})") from None
    except csv.Error as error:
        raise UnreadableError(f"is no table ({error})") from None
    finally:
        csv.field_size_limit(limit)


def _read_header(line: str) -> tuple[str, Sequence[str], bool]:
    """Read the delimiter, the columns, and whether the first line names them."""
    for delimiter in _DELIMITERS:
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
        if len(cells) > 1 and find_field(cells, IDS) is not None and find_text(cells) is not None:
            return delimiter, cells, True
    bare = line.rstrip("\r\n").split("\t")
    if 2 <= len(bare) <= len(_BARE) and bare[0].isdecimal():
        return "\t", _BARE[: len(bare)], False
    raise UnreadableError(f"begins with {line.strip()!r:.100}, which names no columns of passages")


def _read_json_rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a JSON document: a list, the list that an object holds, or an object of them by id.

    Raises `OSError`, and `UnreadableError` if it holds none.
    """
    document = read_json(path)
    if isinstance(document, Mapping) and find_text(document) is None:
        lists = [value for value in document.values() if isinstance(value, list)]
        if len(lists) == 1:
            document = lists[0]
        elif document and all(isinstance(value, str | Mapping) for value in document.values()):
            rows = ((key, {"content": value} if isinstance(value, str) else value) for key, value in document.items())
            document = [row if find_field(row, IDS) is not None else {"id": key, **row} for key, row in rows]
    if isinstance(document, Mapping) and find_text(document) is not None:
        document = [document]
    if not isinstance(document, list):
        raise UnreadableError("holds neither a list of passages nor an object with passages by id")
    yield from document


def _read_text(path: Path, root: Path) -> Iterator[tuple[int, Mapping[str, str] | Unreadable]]:
    """Yield a text file as a row; its title is the heading it begins with, else the file's name. Raises `OSError`."""
    try:
        text = decode(read_bytes(path)).replace("\r\n", "\n")
    except UnreadableError as error:
        yield 1, Unreadable(str(error))
        return
    text, title = _FRONT.sub("", text) if path.suffix.lower() == ".md" else text, path.stem
    if path.suffix.lower() == ".md" and (heading := _HEADING.match(text)):
        text, title = text[heading.end() :].strip() or heading[1], heading[1].strip(" #")
    name = path.relative_to(root).as_posix() if path != root else path.name
    yield 1, {"id": name, "title": title, "content": text.strip(), "source": root.stem}


def find_field(fields: Sequence[str] | Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of `names`, a constant of this module, that is one of the fields; None if none is."""
    # A loop: millions of rows are looked through, and nearly all have the first name.
    for spelling in _SPELLED[names]:
        if spelling in fields:
            return spelling
    return None


def find_text(fields: Sequence[str] | Mapping[str, Any]) -> str | None:
    """Return the field that holds the text; None if none does. Raises `ValueError` if it may be one of several."""
    if (field := find_field(fields, TEXTS)) is not None:
        return field
    matches = [spelling for spelling in _SPELLED[RARER_TEXTS] if spelling in fields]
    if len(matches) > 1:
        raise ValueError(f"its text may be {' or '.join(matches)}: rename the right field to content")
    return matches[0] if matches else None


def read_metadata(row: Mapping[str, Any], name: str) -> Any:
    """Return what a row's own metadata hold as `name`; None if there is no such thing."""
    metadata = next((row[field] for field in _METADATA if field in row), None)
    return metadata.get(name) if isinstance(metadata, Mapping) else None
