"""The line on standard error that says how far a large model folder or index is read to know what it holds."""

import sys
from pathlib import Path


class ReadingLine:
    """Called while files are hashed: one line that grows on a terminal, one line for each folder without."""

    def __init__(self) -> None:
        self._last_path: Path | None = None

    def __call__(self, path: Path, position: int, total: int) -> None:
        """Note that `position` of the `total` bytes of `path` are read."""
        text = f"medexam: reading {path} once, to know what it holds: "
        if sys.stderr.isatty():
            end = "\n" if position >= total else ""
            sys.stderr.write(f"\r{text}{position / 1e9:.1f} of {total / 1e9:.1f} GB{end}")
            sys.stderr.flush()
        elif path != self._last_path:
            sys.stderr.write(f"{text}{total / 1e9:.1f} GB ...\n")
        self._last_path = path
