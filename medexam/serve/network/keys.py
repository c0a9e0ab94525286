"""API keys of servers: made, and read from a variable or a file that only its owner may read.

A key in a file is on no command line, in no spec and in no script.
"""

import os
import secrets
import stat
from pathlib import Path

from medexam.errors import SpecError
from medexam.text import remember_secret

_OTHER_FILE = "name another with api_key_file"


def make_key() -> str:
    """Make a new key of 256 random bits, in characters that a header and a shell take as they are."""
    key = secrets.token_urlsafe(32)
    remember_secret(key)
    return key


def read_key_file(path: Path) -> str:
    """Read the key in the file; raises `SpecError` if it is missing, empty, no key, or others may read it."""
    path = path.expanduser()
    try:
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SpecError(
                f"{path}: others may read this key (mode {mode & 0o777:o}); close it with `chmod 600 {path}`"
            )
        key = path.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        # A key that was written instead of a file is not shown.
        name = path if len(path.parts) > 1 or path.suffix else "api_key_file"
        raise SpecError(
            f"{name}: no such key file; name the right one with api_key_file, or a variable with api_key_env"
        ) from None
    except OSError as error:
        raise SpecError(f"{path}: the key cannot be read: {error.strerror}; {_OTHER_FILE}") from None
    if not key.strip():
        raise SpecError(f"{path}: the key file is empty; write the key into it, or {_OTHER_FILE}")
    return _check_key(key, f"{path}: not a key file", _OTHER_FILE)


def read_key_variable(variable: str) -> str | None:
    """Read the key in an environment variable, None if it is not set; raises `SpecError` if it holds no key."""
    key = os.environ.get(variable, "")
    return _check_key(key, f"the environment variable {variable}", "set it again") if key.strip() else None


def _check_key(text: str, source: str, way_out: str) -> str:
    """Return a text's key, which no message shows from here on; raises `SpecError` where a header cannot hold it."""
    key = text.strip()
    remember_secret(key)
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SpecError(f"{source}: a key is one word without special characters, and this is not; {way_out}")
    return key
