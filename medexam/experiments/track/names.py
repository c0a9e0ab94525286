"""Names of metrics and parameters as MLflow takes them.

MLflow refuses a whole run for one name with a character such as `@`, `%` or a bracket. Such a name is replaced by one
that it takes, and a tag keeps the original.
"""

import hashlib
import posixpath
from collections.abc import Iterable, Mapping

from medexam.formatting import mlflow_name

ORIGINAL = "medexam.name."
"""How a tag's name begins that keeps an original name; the name in MLflow follows."""
_LENGTH = 200
"""Characters of a name, so that the tag's own name fits MLflow's limit of 250."""


def storable_names(names: Iterable[str]) -> dict[str, str]:
    """Name -> the name that MLflow takes for it: the same where it takes that, and one of its own where not."""
    wanted = list(dict.fromkeys(names))
    stored = {name: name for name in wanted if _storable(name) == name}
    taken = set(stored)
    for name in wanted:
        if name not in stored:
            other = _storable(name)
            if other in taken:
                other = f"{other[: _LENGTH - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
            stored[name] = other
            taken.add(other)
    return stored


def original_names(stored: Mapping[str, str]) -> dict[str, str]:
    """Tag -> the original name, of the names that are stored under another one."""
    return {f"{ORIGINAL}{other}": name for name, other in stored.items() if other != name}


def _storable(name: str) -> str:
    # MLflow reads a name as a path, and refuses one that is not the shortest for its place.
    path = posixpath.normpath(mlflow_name(name)[:_LENGTH]).strip("/. ")
    return path or "_"
