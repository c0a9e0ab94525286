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
from medexam.retrievers.base import import_library

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
_SUFFIXES = (*_LINES, *_TABLES, ".json", ".json.gz", *_TEXT_FILES)
"""Endings of files of passages."""
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


Row = Mapping[str, Any]
Rows = Iterator[tuple[Place, Row]]


def bad_row(place: Place, reason: str) -> DatasetError:
    """Make the error of a row that is no passage."""
    return DatasetError(f"{place}: {reason}: correct it, or take the row out")


def find_source(source: str | Path | None) -> tuple[Callable[[], Rows], dict[str, Any]]:
    """Find what `load_corpus` reads: what reads its rows, as often as is needed, and what is known of it.

    That is `name`, `source`, and `left_out`: files of the folder that are not read. Raises `DatasetError` if nothing is
    found.
    """
    folder = os.environ.get("MEDEXAM_DATA")
    path = Path(folder or "", DEFAULT_FILE).expanduser() if source is None else Path(source).expanduser()
    if path.exists() and (source is not None or folder):
        name = path.resolve().name if path.is_dir() else path.name.split(".")[0]
        files, left_out = _list_files(path)
        return partial(_read_files, files, path), {"name": name, "source": str(path), "left_out": left_out}
    if isinstance(source, str) and _HUB_NAME.fullmatch(source) and not source.endswith((*_SUFFIXES, ".gz")):
        return partial(_read_hub, _load_hub(source)), {"name": source, "source": source}
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


def _list_files(path: Path) -> tuple[list[Path], tuple[str, ...]]:
    """List the file at `path`, or the files of passages in that folder and the folders in it, by name; no hidden ones.

    With them come the names of the files that are left out: those without the fields of a passage, text files beside
    others, and BEIR's `queries`. Raises `DatasetError` if nothing is left.
    """
    if path.is_file():
        if not path.name.lower().endswith(_SUFFIXES):
            raise DatasetError(f"{path} is no file of passages: name one that ends in {', '.join(_SUFFIXES)}")
        return [path], ()
    places = sorted(file.relative_to(path) for file in path.rglob("*") if file.name.lower().endswith(_SUFFIXES))
    files = [path / place for place in places if not any(part.startswith(".") for part in place.parts)]
    files = [file for file in files if not _ABOUT.match(file.name)]
    rows = [file for file in files if not file.name.lower().endswith(_TEXT_FILES)]
    if any(file.name.startswith("corpus.") for file in rows):
        rows = [file for file in rows if not file.name.startswith("queries.")]
    if len(rows) > 1:
        rows = [file for file in rows if _holds_passages(file)] or rows
    if not (listed_files := rows or files):
        raise DatasetError(f"{path} holds no file of passages ({', '.join(_SUFFIXES)}): name another in the corpus key")
    return listed_files, tuple(str(file.relative_to(path)) for file in files if file not in listed_files)


def _holds_passages(file: Path) -> bool:
    """Return whether the first row has the fields of a passage; a damaged file is told where it is read."""
    try:
        row = next((row for _, row in _rows_of(file, file.parent)), {})
    except (DatasetError, UnreadableError):
        return False
    except OSError:
        return True
    return isinstance(row, dict) and None not in (find_field(row, (*IDS, UNNAMED)), find_field(row, TEXTS))


def _rows_of(file: Path, root: Path) -> Rows:
    name = file.name.lower()
    if name.endswith(".parquet"):
        return _read_parquet(file)
    if name.endswith(_LINES):
        return _read_lines(file)
    if name.endswith(_TABLES):
        return _read_table(file)
    return _read_text(file, root) if name.endswith(_TEXT_FILES) else _read_list(file)


def _read_files(files: Sequence[Path], root: Path) -> Rows:
    """Yield every row of the files in turn; empty lines are none, and a text file's id is its path within `root`.

    Raises `DatasetError` if a file is damaged or lacks a column.
    """
    for file in files:
        place = None
        try:
            for place, row in _rows_of(file, root):
                if not isinstance(row, dict):
                    raise bad_row(place, f"is {row!r:.40}, not an object")
                yield place, row
        except (OSError, UnreadableError) as error:
            raise DatasetError(
                f"{file if place is None else f'{place} and what follows'}: cannot be read ({error}): the file may be "
                f"truncated; copy it again, or name one that ends in {', '.join(_SUFFIXES)}; {EXPECTED}"
            ) from None


def _read_lines(path: Path) -> Rows:
    with open_unpacked(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.isspace():
                place = Place(str(path), "line", number)
                try:
                    row = parse_json(line)
                except UnreadableError as error:
                    raise bad_row(place, str(error)) from None
                yield place, row


def _read_list(path: Path) -> Rows:
    if not isinstance(values := read_json(path), list):
        raise UnreadableError("it holds no list of passages")
    for number, value in enumerate(values, start=1):
        yield Place(str(path), "row", number), value


def _read_parquet(path: Path) -> Rows:
    with open_parquet(path) as file:
        columns = _check_columns(str(path), file.schema_arrow.names)
        for number, row in enumerate(parquet_rows(file, columns), start=1):
            yield Place(str(path), "row", number), row


def _read_table(path: Path) -> Rows:
    """Yield the rows of a table, each with its line; the first line names the columns."""
    try:
        with long_cells(), open_unpacked(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as lines:
            first = lines.readline(LONGEST_TEXT)
            delimiter = max("\t,;", key=first.count)
            columns = next(csv.reader([first], delimiter=delimiter), [])
            _check_columns(str(path), columns)
            rows, line = csv.reader(lines, delimiter=delimiter, strict=True), 2
            for row in rows:
                place = Place(str(path), "line", line)
                if len(row) == len(columns):
                    yield place, dict(zip(columns, row, strict=True))
                elif row:
                    raise bad_row(place, f"has {len(row)} cells, and the columns are {', '.join(columns)}")
                line = rows.line_num + 2
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8 (byte {error.object[error.start]:#04x})") from None
    except csv.Error as error:
        raise UnreadableError(f"is no table ({error})") from None


def _read_text(path: Path, root: Path) -> Rows:
    """Yield a text file as a row; its title is the heading it begins with, else the file's name."""
    text, title = decode(read_bytes(path)).replace("\r\n", "\n"), path.stem
    is_markdown = path.suffix.lower() == ".md"
    text = _FRONT.sub("", text) if is_markdown else text
    if is_markdown and (heading := _HEADING.match(text)):
        text, title = text[heading.end() :].strip() or heading[1], heading[1].strip(" #")
    name = path.relative_to(root).as_posix() if path != root else path.name
    yield Place(str(path), "line", 1), {"id": name, "title": title, "content": text.strip(), "source": root.stem}


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


def _load_hub(name: str) -> Mapping[str, Any]:
    """Load the splits of a hub data set, by name; what stands behind `#` is its configuration.

    Raises `CorpusUnreachableError` if it cannot be downloaded, and `DatasetError` where it lacks a column.
    """
    import httpx

    datasets = import_library("datasets", "data")
    hub_id, _, configuration = name.partition("#")
    try:
        # The hub's client writes two lines for each of its retries; the error says it once.
        with errors_only("huggingface_hub"):
            parts: Mapping[str, Any] = datasets.load_dataset(hub_id, configuration or None)
    except (OSError, ValueError, httpx.HTTPError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CorpusUnreachableError(
            f"corpus {name} is no path here and cannot be downloaded from the Hugging Face hub ({reason}): correct the "
            "name or path, check the network, HF_HUB_OFFLINE and HF_ENDPOINT, or copy its files into a folder and name "
            "that"
        ) from None
    return {
        f"{name}, split {split}": part.select_columns(_check_columns(f"{name}, split {split}", part.column_names))
        for split, part in parts.items()
    }


def _read_hub(parts: Mapping[str, Any]) -> Rows:
    for place, part in parts.items():
        batches = part.iter(batch_size=_BATCH_ROWS)
        rows = (
            dict(zip(batch, values, strict=True)) for batch in batches for values in zip(*batch.values(), strict=True)
        )
        for number, row in enumerate(rows, start=1):
            yield Place(place, "row", number), row
