"""The questions of a run: kept in its folder as they were asked, and compared with what its data set holds by now.

`items.parquet` has a row a question and a column a field; the names of what no program sees begin with `gold_`. A
picture lies in `pictures/`, under the SHA-256 of its bytes.

Scores are made anew where golds have changed. Answers to texts that have changed since are never scored on the new
ones: a report shows what was asked, and the run is not continued.
"""

import base64
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_json

from medexam.datasets.fingerprints import digest_files
from medexam.datasets.kept import keep
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.files import whole_file, write_whole
from medexam.inputs import first_line, open_parquet, parquet_rows
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.questions import AnswerKey, AnySet, Gold, ItemSet, Question, Task, TaskGold
from medexam.specs import DatasetSpec
from medexam.specs.identity import differing_keys
from medexam.text import writable

if TYPE_CHECKING:
    import pyarrow as pa

ITEMS = "items.parquet"
_PICTURES = "pictures"
_GOLD = "gold_"
_SET = b"medexam"
"""The file's entry that says what the questions are a part of."""
_ROWS = 8192
"""Questions that are held as rows and written at once."""
_FORMS: Mapping[str, tuple[type, type]] = {"choice": (Question, Gold), "words": (Task, TaskGold)}
_BY_CONTENT = (
    *("dataset.fingerprint", "translations", "prompts", "words", "pictures", "retriever", "reader"),
    *("model.weights", "model.dtype", "model.script"),
)
"""What identities hold of things that may change while a spec still says the same."""


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
    names = ("questions", "dataset_golds", "dataset_fingerprint")
    same = all(getattr(before, name) == getattr(record, name) for name in names)
    return same and (described, rows) == (_describe(items), len(items.questions))


def _describe(items: AnySet) -> bytes:
    """Describe what the questions are a part of, and whether they have options or are answered in words."""
    described = {name: value for name, value in vars(items).items() if name not in ("questions", "golds")}
    return json.dumps({"form": "words" if items.in_words else "choice", **described}).encode()


def digest_data(items: AnySet, dataset: DatasetSpec) -> str:
    """Return the SHA-256 of the files that items were read from; empty if nobody knows it."""
    # What a benchmark of the user's own loads need not know of files.
    with suppress(DatasetError):
        return items.files_digest or digest_files(dataset)
    return ""


def load_items(folder: RunFolder, keys: frozenset[str] | None = None) -> AnySet:
    """Load what the run was last asked, or the questions of `keys`: from its folder, else from the data set.

    Within `reads_kept`, folders of the same questions share them. Raises `RunFolderError` where the folder is damaged,
    and `DatasetError` as `as_asked` does.
    """
    record, path = folder.read_record(), folder.path / ITEMS
    if not record.keeps_items:
        items = as_asked(record, _load_data(record))
        return items if keys is None else items.only(item.key for item in items.questions if item.key in keys)
    try:
        with path.open("rb") as stream:
            file = _ItemsFile(hashlib.file_digest(stream, "sha256").hexdigest(), path)
            return _read_whole(file) if keys is None else _read_items(file, keys)
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


def _read_items(items_file: _ItemsFile, keys: frozenset[str] | None = None) -> AnySet:
    pictures: dict[str, str] = {}
    questions, golds = [], {}
    with open_parquet(items_file.path) as file:
        described = json.loads((file.schema_arrow.metadata or {})[_SET])
        form = described.pop("form")
        item_type, gold_type = map(TypeAdapter[Any], _FORMS[form])
        for row in parquet_rows(file):
            if keys is not None and row["key"] not in keys:
                continue
            row["key"] = sys.intern(row["key"])
            if name := row.get("picture"):
                if name not in pictures:
                    content = (items_file.path.parent / _PICTURES / Path(name).name).read_bytes()
                    data = base64.b64encode(content).decode("ascii")
                    pictures[name] = f"data:image/{Path(name).suffix[1:]};base64,{data}"
                row["picture"] = pictures[name]
            gold = {name.removeprefix(_GOLD): row.pop(name) for name in list(row) if name.startswith(_GOLD)}
            questions.append(item_type.validate_python(row))
            golds[questions[-1].key] = gold_type.validate_python(gold)
    described = {name: tuple(value) if isinstance(value, list) else value for name, value in described.items()}
    expected: Any = AnswerKey(golds) if form == "choice" else golds
    return ItemSet(**described, questions=tuple(questions), golds=expected)


# A part of a file is let go by who asked for it.
_read_whole = keep(worth=lambda _: True)(_read_items)


def _write_items(folder: Path, items: AnySet) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    item_type, gold_type = _FORMS["words" if items.in_words else "choice"]
    item_form, gold_form = TypeAdapter[Any](item_type), TypeAdapter[Any](gold_type)
    columns = _types_of(item_type) | {_GOLD + name: kind for name, kind in _types_of(gold_type).items()}
    schema = pa.schema(list(columns.items()), metadata={_SET: _describe(items)})
    pictures: dict[str, str] = {}

    def to_columns(item: Any) -> dict[str, Any]:
        row: dict[str, Any] = item_form.dump_python(item, mode="json")
        if url := row.get("picture"):
            if url not in pictures:
                pictures[url] = _write_picture(folder, url)
            row["picture"] = pictures[url]
        gold = gold_form.dump_python(items.golds[item.key], mode="json")
        return row | {_GOLD + name: value for name, value in gold.items()}

    rows = map(to_columns, items.questions)
    try:
        with (
            whole_file(folder / ITEMS) as draft,
            pq.ParquetWriter(draft, schema, compression="zstd", compression_level=9) as writer,
        ):
            while batch := list(islice(rows, _ROWS)):
                writer.write_table(make_table(batch, schema))
        pa.default_memory_pool().release_unused()
    except OSError as error:
        raise RunFolderError(f"cannot write {folder / ITEMS}: {error.strerror or error}") from None


def make_table(rows: Sequence[Mapping[str, Any]], schema: "pa.Schema") -> "pa.Table":
    """Make a table of JSON-ready rows: by JSON, since pyarrow's reader of Python's objects imports pandas (54 MB)."""
    import pyarrow as pa
    import pyarrow.json as pj

    try:
        content = b"\n".join(map(to_json, rows))
    except PydanticSerializationError:  # a script made halves of characters, which UTF-8 has no bytes for
        content = b"\n".join(to_json(writable(row)) for row in rows)
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return pj.read_json(pa.BufferReader(content), pj.ReadOptions(block_size=len(content) + 1), options)


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
    path = folder / _PICTURES / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        write_whole(path, data)
    return name


def check_items(folder: RunFolder) -> tuple[AnySet, str | None, str | None]:
    """Load what the run was last asked, and compare it with its data set if that is at hand and has changed.

    Returns the questions with the golds that the data set has now, whose scores are made anew because golds have
    changed, and that the data set holds other texts by now; None for what is not so. Code of the user's own is not run:
    what a benchmark of theirs loads is taken to be unchanged. Raises as `load_items` does.
    """
    record, items = folder.read_record(), load_items(folder)
    if not record.keeps_items:
        return items, describe_golds(folder, record, items), None
    dataset = record.cell.dataset
    try:
        files_digest = items.files_digest if dataset.runs_code else digest_files(dataset)
        data = None if files_digest == items.files_digest else _load_data(record)
    except DatasetError:
        data = None
    if data is None:
        return items, None, None
    if (text_note := describe_texts(record, data)) is not None:
        return replace(items, files_digest=files_digest), None, f"{text_note}; the run is shown as it was asked"
    return as_asked(record, data), describe_golds(folder, record, data), None


def _load_data(record: RunRecord) -> AnySet:
    return find_stored_benchmark(record.cell.dataset, in_words=False).load(record.cell.dataset.whole)


def as_asked(record: RunRecord, data: AnySet) -> AnySet:
    """Return `data` with the items that the run was last asked for, in its order, without those that have lost their
    answer.

    `data` is everything that the run's data set holds. Raises `DatasetError` if an item is gone, and if the texts are
    no longer those that the run was asked.
    """
    if (text_note := describe_texts(record, data)) is not None:
        raise DatasetError(
            f"run {record.run_id} cannot be scored again: {text_note}; restore "
            f"{record.dataset_source}, or run its spec again to ask the texts as they are"
        )
    items_by_key = {item.key: item for item in data.questions}
    missing_keys = [key for key in record.questions if key not in items_by_key and key not in data.left_out]
    if missing_keys:
        raise DatasetError(
            f"{len(missing_keys)} of {len(record.questions)} questions of run {record.run_id} are no longer in the "
            f"data set ({missing_keys[0]}): restore the file it was made from ({record.dataset_source}), or run the "
            "spec again"
        )
    return replace(data, questions=tuple(items_by_key[key] for key in record.questions if key in items_by_key))


def describe_texts(record: RunRecord, data: AnySet) -> str | None:
    """Describe how the texts of a run's data differ from those that it was asked; None where they do not."""
    if record.dataset_fingerprint == data.fingerprint:
        return None
    return (
        f"the texts of its data have changed since it was asked (SHA-256 {record.dataset_fingerprint[:12]} then, "
        f"{data.fingerprint[:12]} in {data.source} now)"
    )


def describe_golds(folder: RunFolder, record: RunRecord, data: AnySet) -> str | None:
    """Describe in one line whose scores are made anew for golds that have changed; None where none has."""
    if record.dataset_golds == data.golds_fingerprint:
        return None
    golds = load_items(folder).golds if record.keeps_items else {}
    change_count = sum(key not in data.golds or golds[key] != data.golds[key] for key in golds)
    count_note = f" ({change_count} of its {len(record.questions)} questions)" if change_count else ""
    return (
        f"run {record.run_id}: golds of its data have changed since it was scored{count_note}; "
        "its scores are made again"
    )


def describe_replaced(folder: RunFolder, spec_digest: str, identity: Mapping[str, Any]) -> str | None:
    """Describe in one line why `folder`, not made yet, does not go on with the last run of a spec that reads the same.

    Something that the spec names has changed its content. None if there is no such run.
    """
    paths = folder.path.parent.glob(f"{folder.name.removesuffix(spec_digest)}*")
    for other in sorted(map(RunFolder, paths), key=lambda each: each.path.stat().st_mtime, reverse=True):
        with suppress(RunFolderError):
            record = other.read_record()
            keys = differing_keys(identity, record.identity)
            if keys and all(key.startswith(_BY_CONTENT) for key in keys):
                names = ("the texts of the data" if key == "dataset.fingerprint" else key for key in keys)
                return f"{', '.join(names)} changed since run {record.run_id} was asked: run {folder.name} asks again"
    return None
