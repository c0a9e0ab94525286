"""The questions of a run: kept in its folder as they were asked, and compared with what its data set holds by now.

`items.parquet` has a row a question and a column a field; the names of what no program sees begin with `gold_`. A
picture lies in `pictures/`, under the SHA-256 of its bytes.

Scores are made anew where golds have changed. Answers to texts that have changed since are never scored on the new
ones: a report shows what was asked, and the run is not continued.
"""

import base64
import ctypes
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic_core import to_json

from medexam.datasets.fingerprints import digest_files
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.store.logs import json_bytes, writing
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.files import first_line, open_parquet, parquet_rows, whole_file, write_whole
from medexam.kept import keep
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.questions import AnswerKey, AnySet, Exam, Gold, ItemSet, Question, Task, TaskGold
from medexam.specs.identity import digest

if TYPE_CHECKING:
    import pyarrow as pa

ITEMS = "items.parquet"
MANY = 20_000
"""Questions that are held at once; more are read in blocks while they are asked and scored."""
_PICTURES = "pictures"
_GOLD = "gold_"
_SET = b"medexam"
"""The file's entry that says what the questions are a part of."""
_ROWS = 2048
"""Questions that are held as rows and written at once."""
_FORMS: Mapping[str, tuple[type, type]] = {"choice": (Question, Gold), "words": (Task, TaskGold)}


def begin_run(folder: RunFolder, items: AnySet, **fields: Any) -> None:
    """Write what a run is asked: its questions, unless it is to keep none, and then `spec.json`.

    `fields` are those of its record that do not follow from the folder and the items. Raises `RunFolderError` where the
    folder cannot be written.
    """
    # What a benchmark of the user's own loads need not know of files.
    with suppress(DatasetError):
        items = replace(items, files_digest=items.files_digest or digest_files(fields["cell"].dataset))
    of_items = {
        "dataset_files": items.files_digest,
        "dataset_version": items.version,
        "dataset_source": items.source,
        "dataset_fingerprint": items.fingerprint,
        "dataset_golds": items.golds_fingerprint,
        "questions": tuple(item.key for item in items.questions),
    }
    own = {"run_id": folder.name, "spec_digest": digest(fields["identity"])}
    record = RunRecord(**(own | fields | of_items))
    if record.keeps_items:
        has_items = False
        # To look takes less than to write 100,000.
        with suppress(RunFolderError):
            has_keys = folder.read_record().questions == record.questions
            has_items = has_keys and _read_description(folder.path / ITEMS) == json.loads(_describe(items))
        if not has_items:
            folder.drop_derived()
            _write_items(folder.path, items)
    folder.write_record(record)


def _describe(items: AnySet) -> str:
    """Describe in JSON what the questions are a part of, and whether they have options or are answered in words."""
    fields = {name: value for name, value in vars(items).items() if name not in ("questions", "golds")}
    return json.dumps({"form": "words" if items.in_words else "choice", **fields})


def _read_description(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    with _naming_damage(path):
        return dict(json.loads((pq.read_schema(path).metadata or {})[_SET]))


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise RunFolderError(f"{error.filename or path} is missing: restore it, or run the spec again") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"{path} holds no questions that can be read ({first_line(error)}): restore it, or run the spec again"
        ) from None


def load_items(folder: RunFolder, keys: frozenset[str] | None = None) -> AnySet:
    """Load what the run was last asked, or the questions of `keys`: from its folder, else from the data set.

    Within `reads_kept`, folders of the same questions share them; `MANY` are read in blocks. Raises `RunFolderError`
    where the folder is damaged, and `DatasetError` as `as_asked` does.
    """
    record, path = folder.read_record(), folder.path / ITEMS
    if not record.keeps_items:
        dataset = record.cell.dataset
        items = as_asked(record, find_stored_benchmark(dataset, in_words=False).load(dataset.whole))
        return items if keys is None else items.only(item.key for item in items.questions if item.key in keys)
    with _naming_damage(path), path.open("rb") as stream:
        file = _ItemsFile(hashlib.file_digest(stream, "sha256").hexdigest(), path)
        return _read_whole(file) if keys is None else _read_items(file, keys)


@dataclass(frozen=True)
class _ItemsFile:
    """A file of questions, equal to others of the same bytes."""

    digest: str
    path: Path = field(compare=False)


def _read_items(items_file: _ItemsFile, keys: frozenset[str] | None = None) -> AnySet:
    path, described = items_file.path, _read_description(items_file.path)
    is_choice = described.pop("form") == "choice"
    described = {name: tuple(value) if isinstance(value, list) else value for name, value in described.items()}
    golds: Any = (AnswerKey if is_choice else dict)(_scan_golds(path, keys))
    questions = StoredItems(path) if keys is None and len(golds) >= MANY else tuple(_scan_items(path, keys))
    return ItemSet(**described, questions=questions, golds=golds)


def _scan_rows(path: Path, keys: frozenset[str] | None, *, of_golds: bool) -> Iterator[dict[str, Any]]:
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        for row in parquet_rows(file, [name for name in names if name == "key" or name.startswith(_GOLD) == of_golds]):
            if keys is None or row["key"] in keys:
                yield row | {"key": sys.intern(row["key"])}


def _scan_golds(path: Path, keys: frozenset[str] | None) -> Iterator[tuple[str, Any]]:
    """Yield the key of each item of a file, or of those of `keys`, with its gold."""
    # Most are equal, and as objects of their own they would weigh as much as the questions.
    build_gold = lru_cache(1024)(TypeAdapter[Any](_FORMS[_read_description(path)["form"]][1]).validate_json)
    for row in _scan_rows(path, keys, of_golds=True):
        key = row.pop("key")
        yield key, build_gold(to_json({name.removeprefix(_GOLD): value for name, value in row.items()}))


def _scan_items(path: Path, keys: frozenset[str] | None) -> Iterator[Any]:
    """Yield each item of a file, or those of `keys`."""
    pictures: dict[str, str] = {}
    item_form = TypeAdapter[Any](_FORMS[_read_description(path)["form"]][0])
    build_exam = lru_cache(1024)(TypeAdapter(Exam).validate_json)
    for row in _scan_rows(path, keys, of_golds=False):
        if name := row.get("picture"):
            if name not in pictures:
                data = base64.b64encode((path.parent / _PICTURES / Path(name).name).read_bytes()).decode("ascii")
                pictures[name] = f"data:image/{Path(name).suffix[1:]};base64,{data}"
            row["picture"] = pictures[name]
        if "exam" in row:
            row["exam"] = build_exam(to_json(row["exam"]))
        yield item_form.validate_python(row)


class StoredItems(Sequence[Any]):
    """The questions of a file in its order, or those of `keys`, read in blocks at each look: 100,000 weigh much."""

    def __init__(self, path: Path, keys: Iterable[str] | None = None) -> None:
        self._path, self._keys = path, None if keys is None else frozenset(keys)

    def __len__(self) -> int:
        if self._keys is not None:
            return len(self._keys)
        with open_parquet(self._path) as file:
            return int(file.metadata.num_rows)

    def __iter__(self) -> Iterator[Any]:
        with _naming_damage(self._path):
            yield from _scan_items(self._path, self._keys)

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]


def release_memory(questions: Sized) -> None:
    """Give back what is free after many questions, where the C library does so on request: glibc holds tens of MB."""
    # It takes a while in a large process, so that few questions are not worth it.
    with suppress(OSError, TypeError, AttributeError):
        if len(questions) >= MANY:
            ctypes.CDLL(None).malloc_trim(0)


# A part of a file is let go by who asked for it.
_read_whole = keep(worth=lambda _: True)(_read_items)


def _write_items(folder: Path, items: AnySet) -> None:
    import pyarrow as pa

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

    write_table(folder / ITEMS, map(to_columns, items.questions), schema)


def write_table(path: Path, rows: Iterator[Mapping[str, Any]], schema: "pa.Schema") -> None:
    """Write JSON-ready rows as a Parquet file, whole or not at all; raises `RunFolderError` where that fails.

    They become a table by JSON, since pyarrow's reader of Python's objects imports pandas (54 MB).
    """
    import pyarrow as pa
    import pyarrow.json as pj
    import pyarrow.parquet as pq

    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    with writing(path), whole_file(path) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        while batch := list(islice(rows, _ROWS)):
            content = b"\n".join(map(json_bytes, batch))
            reading = pj.ReadOptions(use_threads=False, block_size=len(content) + 1)
            writer.write_table(pj.read_json(pa.BufferReader(content), reading, options))
    pa.default_memory_pool().release_unused()


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


def data_changed(folder: RunFolder) -> bool:
    """Return whether the files of the run's data set are at hand, and others than those that it was asked from.

    Code of the user's own is not run: what a benchmark of theirs loads is taken to be unchanged. Raises
    `RunFolderError` where its questions are damaged.
    """
    record = folder.read_record()
    if record.cell.dataset.runs_code:
        return False
    before = _read_description(folder.path / ITEMS)["files_digest"] if record.keeps_items else record.dataset_files
    with suppress(DatasetError):
        return before not in ("", digest_files(record.cell.dataset))
    return False


def as_asked(record: RunRecord, data: AnySet) -> AnySet:
    """Return `data` with the items that the run was last asked for, in its order, without those that have lost their
    answer.

    `data` is everything that the run's data set holds. Raises `DatasetError` if an item is gone, and if the texts are
    no longer those that the run was asked.
    """
    items_by_key, change = {item.key: item for item in data.questions}, ""
    if record.dataset_fingerprint != data.fingerprint:
        change = (
            f"the texts of its data have changed since it was asked (SHA-256 {record.dataset_fingerprint[:12]} then, "
            f"{data.fingerprint[:12]} in {data.source} now)"
        )
    missing = (key for key in record.questions if key not in items_by_key and key not in data.left_out)
    if change := next((f"{key} is no longer in its data" for key in missing), change):
        raise DatasetError(
            f"run {record.run_id} cannot continue: {change}; restore {record.dataset_source}, or run its spec without "
            "--resume to ask the data as they are"
        )
    return replace(data, questions=tuple(items_by_key[key] for key in record.questions if key in items_by_key))
