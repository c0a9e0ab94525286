"""Key files: refused where others may read them."""

from pathlib import Path

import pytest

from medexam.errors import SpecError
from medexam.serve import read_key_file


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
