"""The rows of an index as Arrow: passages and vectors, written and read block by block, or opened by `datasets`.

Files that an index is built from are read and not mapped, because the pages of a mapped file count as memory of the
process that touched them: an index of any size is built in the memory of one block.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.errors import EngineError
from medexam.files import whole_file, write_whole
from medexam.retrievers.base import Passage

Vectors = NDArray[np.float32]

VECTOR = "vector"
"""The column of the vectors, float32 of a fixed length, beside `id`, `title`, `content` and `source`."""
STATE = "state.json"
INFO = "dataset_info.json"
END = b"\xff\xff\xff\xff\0\0\0\0"
"""How a stream of Arrow ends."""
_TEXTS = ("id", "title", "content", "source")


def load_datasets() -> Any:
    """Import `datasets`; raises `EngineError` with the install line where it is missing."""
    try:
        import datasets
    except ModuleNotFoundError:
        raise EngineError("dense retrieval needs datasets: pip install 'medexam[retrieval]'") from None
    return datasets


def row_schema(dimension: int | None) -> Any:
    """Build the Arrow schema of rows with vectors of this length, as `datasets` writes it; None: without vectors."""
    import pyarrow as pa

    fields = [(name, pa.string()) for name in _TEXTS]
    if dimension is None:
        return pa.schema(fields)
    return (
        load_datasets()
        .Features.from_arrow_schema(pa.schema([*fields, (VECTOR, pa.list_(pa.float32(), dimension))]))
        .arrow_schema
    )


def make_batch(passages: Sequence[Passage], vectors: Vectors | None, schema: Any) -> Any:
    """Make an Arrow batch of passages and their vectors `[n, dimension]`."""
    import pyarrow as pa

    columns: list[Any] = [pa.array([getattr(passage, name) for passage in passages], pa.string()) for name in _TEXTS]
    if vectors is not None:
        columns.append(pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]))
    return pa.record_batch(columns, schema=schema)


def write_passages(passages: Iterable[Passage], path: Path, block: int) -> None:
    """Write passages without vectors, `block` to a batch, whole or not at all; raises `OSError`."""
    import pyarrow as pa

    schema = row_schema(None)
    passages = iter(passages)
    with whole_file(path) as draft, pa.OSFile(str(draft), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
        while part := list(islice(passages, block)):
            stream.write_batch(make_batch(part, None, schema))


def read_passages(path: Path) -> Iterator[list[Passage]]:
    """Read the passages of a file batch by batch; raises `OSError`."""
    for batch in _batches([path]):
        yield to_passages(batch.to_pydict())


def read_vectors(paths: Sequence[Path]) -> Iterator[Vectors]:
    """Read the vectors of several files, one behind the other, batch by batch as `[n, dimension]`."""
    for batch in _batches(paths):
        column = batch.column(VECTOR)
        yield column.flatten().to_numpy().reshape(len(column), -1)


def to_passages(columns: dict[str, Any]) -> list[Passage]:
    """Make passages of columns."""
    return [Passage(*texts) for texts in zip(*(columns[name] for name in _TEXTS), strict=True)]


def write_description(folder: Path, files: Sequence[str], dimension: int, fingerprint: str) -> None:
    """Write what `datasets.load_from_disk` needs to open these files of a folder as one data set; raises `OSError`."""
    datasets = load_datasets()
    datasets.DatasetInfo(features=datasets.Features.from_arrow_schema(row_schema(dimension))).write_to_directory(folder)
    state: dict[str, Any] = {
        "_data_files": [{"filename": name} for name in files],
        "_fingerprint": fingerprint,
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    write_whole(folder / STATE, json.dumps(state, indent=2))


def _batches(paths: Sequence[Path]) -> Iterator[Any]:
    import pyarrow as pa

    for path in paths:
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            yield from stream
