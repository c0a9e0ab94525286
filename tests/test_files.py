"""Files written whole, folders that appear at once, and logs whose last line is torn."""

import stat
from pathlib import Path

import pytest

from medexam.errors import RunFolderError
from medexam.files import cut_torn_line, parse_lines, read_whole_lines, whole_file, whole_folder, write_whole


def test_a_file_is_replaced_when_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, "old")
    with whole_file(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def _fail_after(draft: Path) -> None:
    draft.write_text("ne")
    raise OSError("disk full")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")
    with pytest.raises(OSError, match="full"), whole_file(path) as draft:
        _fail_after(draft)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o644)
    write_whole(path, "secret", private=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_folder_appears_with_all_that_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "parent" / "folder"
    with whole_folder(path) as draft:
        (draft / "file").touch()
        assert not path.exists()
    assert [each.name for each in path.iterdir()] == ["file"]
    with pytest.raises(OSError, match="folder"), whole_folder(path):
        pass
    assert list(path.parent.iterdir()) == [path]


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
