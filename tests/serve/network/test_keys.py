"""Key files: written for their owner alone, refused where others may read them."""

from pathlib import Path

import pytest

from medexam.errors import EngineError, SpecError
from medexam.serve import make_key, read_key_file, write_key


def test_a_key_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "8000.key"
    key = make_key()
    write_key(path, key)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert read_key_file(path) == key


def test_keys_differ_and_fit_a_header() -> None:
    keys = {make_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(len(key) > 40 and key.replace("-", "").replace("_", "").isalnum() for key in keys)


def test_a_file_that_was_open_to_others_is_made_anew(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("old", encoding="utf-8")
    path = tmp_path / "one.key"
    path.symlink_to(elsewhere)
    write_key(path, "secret")
    assert read_key_file(path) == "secret"
    assert elsewhere.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (None, 0o600, "no such key file; name the right one with api_key_file"),
        (b"secret\n", 0o640, "others may read this key .mode 640.; close it with `chmod 600"),
        (b"secret\n", 0o604, "others may read"),
        (b" \n", 0o600, "is empty"),
        (b"two words\n", 0o600, "not a key file"),
        (b"one\ntwo\n", 0o600, "not a key file"),
        (b"\xff\xfe", 0o600, "not a key file"),
    ],
)
def test_files_that_hold_no_safe_key(tmp_path: Path, content: bytes | None, mode: int, message: str) -> None:
    path = tmp_path / "my.key"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    with pytest.raises(SpecError, match=message) as raised:
        read_key_file(path)
    assert str(path) in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_key_that_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match=r"the key cannot be kept there.*--registry"):
        write_key(tmp_path / "file" / "my.key", "secret")
