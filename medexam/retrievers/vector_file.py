"""Vectors on disk, read into memory part by part: an index of any size is built in the memory of one part.

Nothing is mapped, because the pages of a mapped file count as memory of the process that touched them.
"""

import os
import weakref
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class StoredVectors:
    """The float32 rows of one or more `.npy` files of equal width, one file behind the other."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Open the files; raises `OSError` if one cannot be opened and `ValueError` if it holds no such rows."""
        self._files = [path.open("rb", buffering=0) for path in paths]
        for file in self._files:
            weakref.finalize(self, file.close)
        shapes = []
        for path, file in zip(paths, self._files, strict=True):
            np.lib.format.read_magic(file)
            shape, by_column, kind = np.lib.format.read_array_header_1_0(file)
            if len(shape) != 2 or by_column or kind != np.float32:
                raise ValueError(f"{path}: it holds no rows of float32")
            shapes.append(shape)
        self._begins = [file.tell() for file in self._files]
        self._ends = list(accumulate(count for count, _ in shapes))
        self.shape: tuple[int, int] = (self._ends[-1], shapes[0][1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: NDArray[np.int64]) -> Vectors:
        """Read the vectors of rows of any shape `[...]`, as `[..., dimension]`; -1 is the last row."""
        unique, inverse = np.unique(rows % len(self), return_inverse=True)
        vectors = np.empty((len(unique), self.shape[1]), dtype=np.float32)
        for place, row in enumerate(unique.tolist()):
            self._read_into(vectors[place : place + 1], row)
        return vectors[inverse.reshape(rows.shape)]

    def read(self, start: int, stop: int) -> Vectors:
        """Read the rows from `start` to before `stop`, of which those that exist are given."""
        vectors = np.empty((max(0, min(stop, len(self)) - start), self.shape[1]), dtype=np.float32)
        self._read_into(vectors, start)
        return vectors

    def parts(self, most_bytes: int, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Vectors]]:
        """Yield the rows from `start` to before `stop` (None: all) in parts of at most `most_bytes`, with first row."""
        step = max(1, most_bytes // (self.shape[1] * 4))
        stop = len(self) if stop is None else stop
        for first in range(start, stop, step):
            yield first, self.read(first, min(first + step, stop))

    def _read_into(self, vectors: Vectors, start: int) -> None:
        """Fill `vectors` with the rows that begin at `start`; raises `OSError` where a file has become shorter."""
        row_count = 0
        while row_count < len(vectors):
            file = bisect_right(self._ends, start + row_count)
            row = start + row_count - (self._ends[file - 1] if file else 0)
            part_rows = min(len(vectors) - row_count, self._ends[file] - start - row_count)
            part = vectors[row_count : row_count + part_rows].data.cast("B")
            offset = self._begins[file] + row * self.shape[1] * 4
            while part:
                byte_count = os.preadv(self._files[file].fileno(), [part], offset)
                if not byte_count:
                    raise OSError(f"{self._files[file].name} ends too early")
                part, offset = part[byte_count:], offset + byte_count
            row_count += part_rows
