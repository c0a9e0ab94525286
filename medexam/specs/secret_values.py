"""What no spec may hold: keys and passwords, since specs are stored with their runs and sent to MLflow."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from medexam.errors import SpecError
from medexam.text import hide_lookalikes

INSTEAD = "name the variable that holds the key in model.api_key_env, or the file in model.api_key_file"


def check_secrets(tree: Any) -> None:
    """Raise `SpecError`, naming the place and not the value, for a text that looks like a key or holds a password."""
    for path, value in walk(tree):
        if looks_secret(value):
            raise SpecError(f"{path} looks like a secret, and specs are stored: {INSTEAD}")


def looks_secret(value: object) -> bool:
    """Return whether the value is a text with what looks like a key, or with an address that holds a user or a key."""
    return isinstance(value, str) and hide_lookalikes(value) != value


def is_variable(name: str) -> bool:
    """Return whether an environment variable can be called so, and it does not look like a key."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and not looks_secret(name)


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value in nested mappings and lists, behind its dotted path."""
    if path:
        yield path, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, child in inner:
        yield from walk(child, f"{path}.{name}" if path else str(name))
