"""The bytes of the pictures that questions refer to, as a data set holds them: in its rows, or as files beside it.

A file is looked for in the folder of the data and below it. A name that leads out of that folder, by `..` or by a link,
is an error. Nothing is fetched: an address is no file.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from medexam.datasets.loading import load_rows
from medexam.datasets.locating import locate_files
from medexam.datasets.own.columns import Columns, read_questions
from medexam.datasets.own.questions import parse_choice
from medexam.datasets.own.tables import SourceTable
from medexam.errors import DatasetError
from medexam.inputs import open_parquet, parquet_rows
from medexam.questions import Question
from medexam.specs import DatasetSpec

Pictures = Mapping[tuple[str, int], Mapping[str, Any]]
"""Booklet and printed number -> the hub's `{path, bytes}` of the picture."""
FOLDER = "images"
"""A folder beside the data in which pictures are looked for, too."""


def read_originals(spec: DatasetSpec) -> Iterator[tuple[Question, bytes | None]]:
    """Read each question of the source that refers to a picture, whatever is selected, with the picture's bytes.

    None where the data set names a picture and does not hold it. Raises `DatasetError` if a file cannot be read, or if
    a name leads out of the folder of the data.
    """
    if spec.kind is None:
        reading = load_rows(
            spec.name, spec.language, spec.path, explained=spec.explained, as_published=spec.as_published
        )
        embedded = read_embedded(locate_files(spec.name, spec.language, spec.path)) or {}
        for question in (row.question for row in reading.rows):
            if question.image is not None:
                content = _bytes_of(embedded.get((question.exam.name, question.number)))
                yield question, content or _read_file(reading.folder, question.image, shortened=True)
        return
    table = read_questions(spec)
    columns = Columns(spec.columns, table, ("stem",))
    for question in (row.question for row in parse_choice(table, spec)[0].rows):
        if question.image is not None:
            content = _bytes_of(_image_of(table, columns, question))
            yield question, content or _read_file(table.folder, question.image, shortened=False)


def read_embedded(paths: Sequence[Path]) -> Pictures | None:
    """Read the pictures that the Parquet files at `paths` hold with their bytes; None if they hold none.

    Raises `DatasetError` for a file that is not whole.
    """
    import pyarrow as pa

    picture_by_question: dict[tuple[str, int], Mapping[str, Any]] = {}
    for path in paths:
        if path.suffix != ".parquet":
            continue
        try:
            with open_parquet(path) as file:
                if not pa.types.is_struct(file.schema_arrow.field("image").type):
                    continue
                rows = parquet_rows(file, ["name", "qid", "image"])
                picture_by_question |= {
                    (row["name"], int(row["qid"])): row["image"] for row in rows if row["image"] is not None
                }
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{path}: cannot read its pictures ({error}): it may be truncated") from None
    return picture_by_question or None


def find_picture(folder: Path, name: str, *, shortened: bool = False) -> Path | None:
    """Find the file called `name` in `folder` or in its `images`; None if there is none.

    `shortened` looks for it without the first folders of its name, too: some published names begin where their authors
    kept them. Raises `DatasetError` for a name that leads out of `folder`.
    """
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part != "."]
    if not parts or PurePosixPath(name).is_absolute() or Path(name).is_absolute() or ".." in parts:
        raise _leads_out(folder, name)
    for first in range(len(parts) if shortened else 1):
        for base in (folder, folder / FOLDER):
            path = base.joinpath(*parts[first:])
            if not _is_file(path):
                continue
            if not path.resolve().is_relative_to(folder.resolve()):
                raise _leads_out(folder, name)
            return path
    return None


def _image_of(table: SourceTable, columns: Columns, question: Question) -> object:
    # The number of a question of one's own is its row's, from 1.
    record = table.rows[question.number - 1].record
    return None if isinstance(record, str) else columns.value(record, "image")


def _bytes_of(image: object) -> bytes | None:
    content = image.get("bytes") if isinstance(image, Mapping) else None
    return content if isinstance(content, bytes) and content else None


def _read_file(folder: Path, name: str, *, shortened: bool) -> bytes | None:
    path = find_picture(folder, name, shortened=shortened)
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}): make it readable") from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _leads_out(folder: Path, name: str) -> DatasetError:
    return DatasetError(
        f"picture {name!r:.80} lies outside of {folder}, the folder of the data, and is not read: put it there and "
        "name it from there"
    )
