"""API keys of servers: made, and read from a variable."""

import os
import secrets

from medexam.errors import SpecError
from medexam.text import remember_secret


def make_key() -> str:
    """Make a new key of 256 random bits, in characters that a header and a shell take as they are."""
    key = secrets.token_urlsafe(32)
    remember_secret(key)
    return key


def read_key_variable(variable: str) -> str | None:
    """Read the key in an environment variable, None if it is not set; raises `SpecError` if it holds no key."""
    if not (key := os.environ.get(variable, "").strip()):
        return None
    # No message shows it from here on.
    remember_secret(key)
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SpecError(
            f"the environment variable {variable}: a key is one word without special characters, and this is not; set "
            "it again"
        )
    return key
