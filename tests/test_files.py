"""Files written whole, folders that appear at once, and what killed writers leave."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from medexam.files import cache_dir, file_name, whole_file, whole_folder, write_whole


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("headqa_v2 en", "headqa_v2 en"),
        ("../a/b", ".._a_b"),
        ("..", "unknown"),
        ("", "unknown"),
        ("a\x00\nb\u202ec", "a__b_c"),
        ("日本語.", "日本語"),
    ],
)
def test_any_text_becomes_the_name_of_a_file(text: str, name: str, tmp_path: Path) -> None:
    assert file_name(text) == name
    (tmp_path / file_name(text)).touch()


def test_long_texts_become_names_that_differ(tmp_path: Path) -> None:
    names = {file_name("é" * 300 + end) for end in "ab"}
    assert len(names) == 2
    for name in names:
        (tmp_path / name).touch()


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


@pytest.mark.parametrize("way", ["whole_file", "whole_folder"])
def test_what_a_killed_writer_left_goes_when_its_place_is_written_again(way: str, tmp_path: Path) -> None:
    path = tmp_path / "made"
    kill = "import os, sys; from pathlib import Path; from medexam import files\n"
    kill += f"with files.{way}(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", kill, path], check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".made.")
    make = whole_file if way == "whole_file" else whole_folder
    with make(path), make(path.with_name("other")):
        assert not left.exists()
        assert len(list(tmp_path.iterdir())) == 2
    assert sorted(tmp_path.iterdir()) == [path, path.with_name("other")]


def test_a_writer_that_lives_keeps_its_draft(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write = "import sys; from pathlib import Path; from medexam.files import whole_file\n"
    write += "with whole_file(Path(sys.argv[1])) as draft: print(flush=True); input(); draft.write_text('slow')"
    command = [sys.executable, "-c", write, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as slow:
        assert slow.stdout is not None
        slow.stdout.readline()
        write_whole(path, "quick")
        slow.communicate(b"\n")
    assert (slow.returncode, path.read_text(), list(tmp_path.iterdir())) == (0, "slow", [path])


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("MEDEXAM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg/medexam"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache/medexam"
