"""The rows of a corpus with the place where each stands: files of every format, and data sets of the hub.

It knows formats, and how the fields of a passage are called in the corpora of others: MedRAG, BEIR, DPR, Pyserini,
LangChain. Which rows are passages is for `medexam.retrievers.corpora` to say.
"""

import csv
import io
import os
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from medexam.errors import CorpusUnreachableError, DatasetError
from medexam.files import (
    LONGEST_TEXT,
    UnreadableError,
    decode,
    long_cells,
    open_parquet,
    open_unpacked,
    parquet_rows,
    parse_json,
    read_bytes,
    read_json,
)
from medexam.process import errors_only

DEFAULT_FILE = "corpus/passages.jsonl.gz"
"""What is read in `$MEDEXAM_DATA` where no corpus is named."""
IDS = ("id", "_id", "docid", "doc_id", "document_id", "pid", "passage_id", "psg_id", "chunk_id", "pmid")
UNNAMED = "page_content"
"""The field of LangChain's documents, which need no id."""
TEXTS = ("content", "text", "contents", "passage", "passage_text", UNNAMED)
"""Of several that a row has, the first counts: MedRAG's `contents` repeats the title before the `content`."""
TITLES = ("title", "doc_title", "document_title")
METADATA = "metadata"
_COLUMNS = (*IDS, *TEXTS, *TITLES, "source", METADATA)
"""Those of which a passage may be made."""
EXPECTED = (
    f"a passage has its id in {', '.join(IDS[:5])} or {IDS[5]}, its text in {', '.join(TEXTS[:-1])} or {UNNAMED}, and "
    "perhaps a title and a source"
)
_LINES, _TABLES, _TEXT_FILES = (
    (".jsonl", ".jsonl.gz", ".parquet"),
    (".tsv", ".tsv.gz", ".csv", ".csv.gz"),
    (".txt", ".md"),
)
_KINDS = (_LINES, _TABLES, (".json", ".json.gz"), _TEXT_FILES)
"""Endings of files of passages; of a folder the files of the first kind that it has are read."""
_SUFFIXES = tuple(suffix for kind in _KINDS for suffix in kind)
_ABOUT = re.compile(r"readme|licen[cs]e|copying|citation", re.IGNORECASE)
"""Files that speak of a corpus."""
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_HEADING = re.compile(r"\A\s*# +(.+)\n")
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(#[\w.-]+)?")
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


Row = Mapping[str, Any] | Unreadable
_NumberedRows = Iterator[tuple[int, Row]]


class CorpusSource(NamedTuple):
    """A file, folder or hub data set, which can be read as often as is needed."""

    name: str
    label: str
    """As the user wrote it."""
    rows: Callable[[], Iterator[tuple[Place, Row]]]
    licence: str | None


def find_source(source: str | Path | None) -> CorpusSource:
    """Find what `load_corpus` reads; raises `DatasetError` if nothing is found."""
    folder = os.environ.get("MEDEXAM_DATA")
    path = Path(folder or "", DEFAULT_FILE).expanduser() if source is None else Path(source).expanduser()
    if path.exists() and (source is not None or folder):
        licence = read_front_matter((path if path.is_dir() else path.parent) / "README.md").get("license")
        licence = ", ".join(map(str, licence)) if isinstance(licence, list) else licence
        name = path.resolve().name if path.is_dir() else path.name.split(".")[0]
        rows = partial(_read_files, _list_files(path), path)
        return CorpusSource(name, str(path), rows, None if licence is None else str(licence))
    if isinstance(source, str) and _HUB_NAME.fullmatch(source) and not source.endswith((*_SUFFIXES, ".gz")):
        parts = _load_hub(source)
        licence = next((part.info.license for part in parts.values() if part.info.license), None)
        return CorpusSource(source, source, partial(_read_hub, parts), licence)
    way_out = f"or set MEDEXAM_DATA to a folder that holds {DEFAULT_FILE}"
    if source is None:
        lacking = f"{path} does not exist" if folder else "MEDEXAM_DATA is not set"
        raise DatasetError(
            f"no corpus is named and {lacking}: name a file or folder of passages or a hub data set such as "
            f"MedRAG/textbooks, {way_out}"
        )
    raise DatasetError(
        f"corpus {path} does not exist: correct the path, name a hub data set such as MedRAG/textbooks, {way_out}"
    )


def _list_files(path: Path) -> list[Path]:
    """List the file at `path`, or the files of passages in that folder and the folders in it, by name; no hidden ones.

    Other formats hold passages only if no JSON Lines or Parquet lie there, and BEIR's `queries` are none.
    Raises `DatasetError` if there is none.
    """
    if path.is_file():
        if not path.name.lower().endswith(_SUFFIXES):
            raise DatasetError(f"{path} is no file of passages: name one that ends in {', '.join(_SUFFIXES)}")
        return [path]
    places = sorted(file.relative_to(path) for file in path.rglob("*") if file.name.lower().endswith(_SUFFIXES))
    files = [path / place for place in places if not any(part.startswith(".") for part in place.parts)]
    for kind in _KINDS:
        matches = [file for file in files if file.name.lower().endswith(kind)]
        if kind is _TEXT_FILES:
            matches = [file for file in matches if not _ABOUT.match(file.name)]
        if any(file.name.startswith("corpus.") for file in matches):
            matches = [file for file in matches if not file.name.startswith("queries.")]
        if matches:
            return matches
    raise DatasetError(f"{path} holds no file of passages ({', '.join(_SUFFIXES)}): name another in the corpus key")


def _read_files(files: Sequence[Path], root: Path) -> Iterator[tuple[Place, Row]]:
    """Yield every row of the files in turn; empty lines are none, and a text file's id is its path within `root`.

    Raises `DatasetError` if a file is damaged or lacks a column.
    """
    for file in files:
        name, number = file.name.lower(), 0
        unit = "row" if name.endswith((".parquet", ".json", ".json.gz")) else "line"
        if name.endswith(".parquet"):
            rows = _read_parquet(file)
        elif name.endswith(_LINES):
            rows = _read_lines(file)
        elif name.endswith(_TABLES):
            rows = _read_table(file)
        elif name.endswith(_TEXT_FILES):
            rows = _read_text(file, root)
        else:
            rows = _read_list(file)
        try:
            for number, row in rows:
                yield Place(str(file), unit, number), row
        except (OSError, UnreadableError) as error:
            raise DatasetError(
                f"{file}: cannot be read after {unit} {number} ({error}): the file may be truncated; copy it again, or "
                f"name one that ends in {', '.join(_SUFFIXES)}; {EXPECTED}"
            ) from None


def _read_lines(path: Path) -> _NumberedRows:
    with open_unpacked(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.isspace():
                continue
            try:
                row = _check_object(parse_json(line))
            except UnreadableError as error:
                row = Unreadable(str(error))
            yield number, row


def _check_object(value: Any) -> Row:
    return value if isinstance(value, dict) else Unreadable(f"is {value!r:.40}, not an object")


def _read_list(path: Path) -> _NumberedRows:
    if not isinstance(rows := read_json(path), list):
        raise UnreadableError("it holds no list of passages")
    yield from enumerate(map(_check_object, rows), start=1)


def _read_parquet(path: Path) -> _NumberedRows:
    with open_parquet(path) as file:
        columns = _check_columns(str(path), file.schema_arrow.names)
        yield from enumerate(parquet_rows(file, columns), start=1)


def _read_table(path: Path) -> _NumberedRows:
    """Yield the rows of a table, each with its line; the first line names the columns."""
    try:
        with long_cells(), open_unpacked(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as lines:
            first = lines.readline(LONGEST_TEXT)
            delimiter = max("\t,;", key=first.count)
            columns = next(csv.reader([first], delimiter=delimiter), [])
            _check_columns(str(path), columns)
            rows, line = csv.reader(lines, delimiter=delimiter, strict=True), 2
            for row in rows:
                if len(row) == len(columns):
                    yield line, dict(zip(columns, row, strict=True))
                elif row:
                    yield line, Unreadable(f"has {len(row)} cells, and the columns are {', '.join(columns)}")
                line = rows.line_num + 2
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8 (byte {error.object[error.start]:#04x})") from None
    except csv.Error as error:
        raise UnreadableError(f"is no table ({error})") from None


def _read_text(path: Path, root: Path) -> _NumberedRows:
    """Yield a text file as a row; its title is the heading it begins with, else the file's name."""
    try:
        text, title = decode(read_bytes(path)).replace("\r\n", "\n"), path.stem
    except UnreadableError as error:
        yield 1, Unreadable(str(error))
        return
    is_markdown = path.suffix.lower() == ".md"
    text = _FRONT.sub("", text) if is_markdown else text
    if is_markdown and (heading := _HEADING.match(text)):
        text, title = text[heading.end() :].strip() or heading[1], heading[1].strip(" #")
    name = path.relative_to(root).as_posix() if path != root else path.name
    yield 1, {"id": name, "title": title, "content": text.strip(), "source": root.stem}


def _check_columns(place: str, columns: Sequence[str]) -> list[str]:
    """Return the columns of which passages are made; raises `DatasetError` where id or text is missing."""
    text = find_field(columns, TEXTS)
    lacks_id = find_field(columns, IDS) is None and text != UNNAMED
    if missing := [*(["id"] if lacks_id else []), *(["content"] if text is None else [])]:
        raise DatasetError(
            f"{place}: lacks the column {' and '.join(missing)}: its columns are {', '.join(columns[:20])}, and "
            f"{EXPECTED}; rename the columns"
        )
    return [name for name in _COLUMNS if name in columns]


def find_field(fields: Container[str], names: Sequence[str]) -> str | None:
    """Return the first of `names` that is one of the fields; None if none is."""
    # A loop: millions of rows are looked through, and nearly all have the first name.
    for name in names:
        if name in fields:
            return name
    return None


def read_front_matter(card: Path) -> Mapping[str, Any]:
    """Read the fields that a card on the hub begins with; empty if there is no card or it is damaged."""
    try:
        preamble, front, _ = card.read_text(encoding="utf-8").split("---\n", 2)
        fields = None if preamble else yaml.safe_load(front)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _load_hub(name: str) -> Mapping[str, Any]:
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
    return {
        f"{name}, split {split}": part.select_columns(_check_columns(f"{name}, split {split}", part.column_names))
        for split, part in parts.items()
    }


def _read_hub(parts: Mapping[str, Any]) -> Iterator[tuple[Place, Row]]:
    """Yield every row of what `_load_hub` brought, all splits together."""
    for place, part in parts.items():
        batches = part.iter(batch_size=_BATCH_ROWS)
        rows = (
            dict(zip(batch, values, strict=True)) for batch in batches for values in zip(*batch.values(), strict=True)
        )
        for number, row in enumerate(rows, start=1):
            yield Place(place, "row", number), row
