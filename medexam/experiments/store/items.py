"""`items.parquet`: each question as a run was asked it, and what is expected of it in columns of its own.

A question is stored as its benchmark has it, a field a column. The names of what no program sees begin with `gold_`. A
picture lies beside the file, in `pictures/`, under the SHA-256 of its bytes.
"""

import base64
import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from medexam.datasets.fingerprints import digest_files
from medexam.datasets.kept import keep
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.files import whole_file, write_whole
from medexam.inputs import first_line, open_parquet, parquet_rows, read_regular
from medexam.questions import AnswerKey, AnySet, Exam, Gold, ItemSet, Option, Question, Task, TaskGold
from medexam.specs import DatasetSpec
from medexam.text import writable

if TYPE_CHECKING:
    import pyarrow as pa

ITEMS = "items.parquet"
PICTURES = "pictures"
"""The folder of the pictures that were shown."""
_GOLD = "gold_"
_SET = b"medexam"
"""The file's entry that says what the questions are a part of."""
_ROWS = 8192
"""Questions that are held as rows and written at once."""
_BARE = ("key", "exam", "number", "language", "options.list.element.number", "image", "gold_number", "gold_others")
"""Columns of a question with numbered options, without its texts."""
_FORMS: Mapping[str, tuple[type, type]] = {"choice": (Question, Gold), "words": (Task, TaskGold)}


def begin_run(folder: RunFolder, record: RunRecord, items: AnySet) -> None:
    """Write what a run is asked: its questions, unless `record` says that it keeps none, and then `spec.json`.

    Raises `RunFolderError` where the folder cannot be written.
    """
    if record.keeps_items:
        items = replace(items, files_digest=digest_data(items, record.cell.dataset))
        if not _are_written(folder, record, items):
            _write_items(folder.path, items)
    folder.write_record(record)


def _are_written(folder: RunFolder, record: RunRecord, items: AnySet) -> bool:
    """Return whether the folder holds these questions whole: to read 100,000 takes less than to write them."""
    try:
        before = folder.read_record()
        with open_parquet(folder.path / ITEMS) as file:
            described = (file.schema_arrow.metadata or {}).get(_SET)
            rows = sum(batch.num_rows for batch in file.iter_batches())
    except (RunFolderError, ValueError, OSError):
        return False
    same = (before.questions, before.dataset_golds, before.dataset_fingerprint)
    return same == (record.questions, record.dataset_golds, record.dataset_fingerprint) and (
        (described, rows) == (_describe(items), len(items.questions))
    )


def _describe(items: AnySet) -> bytes:
    """Describe what the questions are a part of, and whether they have options or are answered in words."""
    described = {each.name: getattr(items, each.name) for each in fields(items)}
    del described["questions"], described["golds"]
    return json.dumps({"form": "words" if items.in_words else "choice", **described}).encode()


def digest_data(items: AnySet, dataset: DatasetSpec) -> str:
    """Return the SHA-256 of the files that items were read from; empty if nobody knows it."""
    # What a benchmark of the user's own loads need not know of files.
    with suppress(DatasetError):
        return items.files_digest or digest_files(dataset)
    return ""


def read_items(folder: RunFolder, keys: frozenset[str] | None = None, *, texts: bool = True) -> AnySet:
    """Read the questions that the run was last asked, or those of `keys`, with what is expected of them.

    Without `texts` the stems and options of questions with numbered options are empty, which takes a third of the
    memory. Within `reads_kept`, folders of the same questions share them. Raises `RunFolderError` where the file is
    missing or damaged.
    """
    path = folder.path / ITEMS
    try:
        with path.open("rb") as stream:
            items_file = _ItemsFile(hashlib.file_digest(stream, "sha256").hexdigest(), path)
            return _read_rows(items_file, None, texts) if keys is None else _read_some(items_file, keys, texts)
    except FileNotFoundError as error:
        raise RunFolderError(f"{error.filename} is missing: restore it, or run the spec again") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"{path} holds no questions that can be read ({first_line(error)}): restore it, or run the spec again"
        ) from None


@dataclass(frozen=True)
class _ItemsFile:
    """A file of questions, equal to others of the same bytes."""

    digest: str
    path: Path = field(compare=False)


def _read_some(items_file: _ItemsFile, keys: frozenset[str] | None, texts: bool) -> AnySet:
    pictures: dict[str, str] = {}
    questions, golds = [], {}
    with open_parquet(items_file.path) as file:
        described = json.loads((file.schema_arrow.metadata or {})[_SET])
        form = described.pop("form")
        item_type, gold_type = map(TypeAdapter[Any], _FORMS[form])
        is_bare = form == "choice" and not texts
        parts: dict[str, Any] = {}

        def share(kind: Any, value: Any) -> Any:
            """Make what many questions have in common once."""
            name = repr(value)
            if name not in parts:
                parts[name] = TypeAdapter(kind).validate_python(value)
            return parts[name]

        for row in parquet_rows(file, _BARE if is_bare else None):
            if keys is not None and row["key"] not in keys:
                continue
            row["key"] = sys.intern(row["key"])
            if name := row.get("picture"):
                if name not in pictures:
                    pictures[name] = _read_picture(items_file.path.parent, name)
                row["picture"] = pictures[name]
            gold = {name.removeprefix(_GOLD): row.pop(name) for name in list(row) if name.startswith(_GOLD)}
            if is_bare:
                options = [{**option, "text": ""} for option in row["options"]]
                row |= {"stem": "", "exam": share(Exam, row["exam"]), "options": share(tuple[Option, ...], options)}
            questions.append(item_type.validate_python(row))
            golds[questions[-1].key] = share(Gold, gold) if is_bare else gold_type.validate_python(gold)
    described = {name: tuple(value) if isinstance(value, list) else value for name, value in described.items()}
    expected: Any = AnswerKey(golds) if form == "choice" else golds
    return ItemSet(**described, questions=tuple(questions), golds=expected)


_read_rows = keep(worth=lambda _: True)(_read_some)
"""Whole files are read once within `reads_kept`; a part of one is let go by who asked for it."""


def _write_items(folder: Path, items: AnySet) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    item_type, gold_type = _FORMS["words" if items.in_words else "choice"]
    to_row: Callable[..., dict[str, Any]] = TypeAdapter(item_type).dump_python
    to_gold: Callable[..., dict[str, Any]] = TypeAdapter(gold_type).dump_python
    columns = {**_types_of(item_type), **{_GOLD + name: kind for name, kind in _types_of(gold_type).items()}}
    schema = pa.schema(list(columns.items()), metadata={_SET: _describe(items)})
    pictures: dict[str, str] = {}

    def to_columns(item: Any) -> dict[str, Any]:
        row = to_row(item, mode="json")
        if url := row.get("picture"):
            if url not in pictures:
                pictures[url] = _write_picture(folder, url)
            row["picture"] = pictures[url]
        gold = to_gold(items.golds[item.key], mode="json")
        return {**row, **{_GOLD + name: value for name, value in gold.items()}}

    rows = map(to_columns, items.questions)
    try:
        with (
            whole_file(folder / ITEMS) as draft,
            pq.ParquetWriter(draft, schema, compression="zstd", compression_level=9) as writer,
        ):
            while batch := list(islice(rows, _ROWS)):
                try:
                    table = pa.Table.from_pylist(batch, schema=schema)
                except UnicodeEncodeError:  # a script made halves of characters, which UTF-8 has no bytes for
                    table = pa.Table.from_pylist(writable(batch), schema=schema)
                writer.write_table(table)
        pa.default_memory_pool().release_unused()
    except OSError as error:
        raise RunFolderError(f"cannot write {folder / ITEMS}: {error.strerror or error}") from None


def _types_of(kind: Any) -> "dict[str, pa.DataType]":
    """Map the fields of a question or gold to the types of their columns."""
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind.model_fields
    hints = get_type_hints(kind)
    return {name: _type_of(hints[name]) for name in names}


def _type_of(annotation: Any) -> "pa.DataType":
    import pyarrow as pa

    parts = [part for part in get_args(annotation) if part not in (NoneType, ...)]
    if get_origin(annotation) is tuple:
        return pa.list_(_type_of(parts[0]))
    if get_origin(annotation) is Literal:
        return pa.string()
    if parts:
        return _type_of(parts[0])
    if is_dataclass(annotation):
        return pa.struct(list(_types_of(annotation).items()))
    return {str: pa.string(), int: pa.int32(), bool: pa.bool_()}[annotation]


def _write_picture(folder: Path, url: str) -> str:
    """Write a picture that is shown as this data URL, and return its file's name."""
    head, _, content = url.partition(",")
    data = base64.b64decode(content)
    name = f"{hashlib.sha256(data).hexdigest()}.{head.removeprefix('data:image/').partition(';')[0]}"
    path = folder / PICTURES / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        write_whole(path, data)
    return name


def _read_picture(folder: Path, name: str) -> str:
    content = read_regular(folder / PICTURES / Path(name).name)
    return f"data:image/{Path(name).suffix[1:]};base64,{base64.b64encode(content).decode('ascii')}"
