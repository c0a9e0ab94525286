"""Passages on disk, read one at a time: a JSON line each, and where each line begins.

A search over millions of passages reads the few that it found; the corpus's text is never in memory as a whole.
"""

import json
import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from medexam.errors import IndexStaleError
from medexam.files import whole_file
from medexam.retrievers.base import Passage
from medexam.retrievers.index_manifest import OFFSETS, PASSAGES

if TYPE_CHECKING:
    from medexam.retrievers.exhaustive import Rows


class PassageStore:
    """The passages of an index folder by row; `write_passages` made it."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        self._folder = folder
        try:
            self._offsets: Rows = np.load(folder / OFFSETS, mmap_mode="r", allow_pickle=False)
            with (folder / PASSAGES).open("rb") as stream:
                self._text = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise IndexStaleError(f"{folder}: its passages cannot be read: {error}") from error

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> Passage:
        """The passage of a row; raises `IndexError` outside of the corpus and `IndexStaleError` for a damaged line."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        line = self._text[int(self._offsets[row]) : int(self._offsets[row + 1])]
        try:
            return Passage(**json.loads(line))
        except (TypeError, ValueError) as error:
            raise IndexStaleError(f"{self._folder / PASSAGES}: line {row + 1} is damaged: {error}") from error


def write_passages(passages: Iterable[Passage], folder: Path) -> None:
    """Write the passages and their offsets; both files appear whole or not at all. Raises `OSError`."""
    import numpy as np

    offsets = [0]
    with whole_file(folder / OFFSETS) as offsets_draft, whole_file(folder / PASSAGES) as draft:
        with draft.open("wb") as stream:
            for passage in passages:
                row = {"id": passage.id, "title": passage.title, "content": passage.content, "source": passage.source}
                line = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
                stream.write(line)
                offsets.append(offsets[-1] + len(line))
        with offsets_draft.open("wb") as stream:
            np.save(stream, np.array(offsets, dtype=np.int64))
