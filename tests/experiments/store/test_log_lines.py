"""Logs whose last line is torn."""

from pathlib import Path

import pytest

from medexam.errors import RunFolderError
from medexam.experiments.store.log_lines import cut_torn_line, parse_lines, read_whole_lines


def test_a_torn_last_line_counts_as_not_written(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert list(read_whole_lines(path)) == []
    cut_torn_line(path)
    path.write_bytes(b"1\n23\n4")
    assert list(parse_lines(path, int)) == [(1, 0, 1), (2, 2, 23)]
    cut_torn_line(path)
    assert path.read_bytes() == b"1\n23\n"


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"1\nx\n")
    with pytest.raises(RunFolderError, match=r"log, line 2 is damaged .*; remove the line to ask it again"):
        list(parse_lines(path, int))
