"""Names of metrics and parameters as MLflow takes them.

MLflow refuses a whole run for one name with a character such as `@`, `%` or a bracket. Such a name is replaced by one
that it takes, and a tag keeps the original.
"""

import hashlib
import posixpath
from collections.abc import Iterable, Mapping

from medexam.tables import mlflow_name

ORIGINAL = "medexam.name."
"""How a tag's name begins that keeps an original name; the name in MLflow follows."""
_LENGTH = 200
"""Characters of a name, so that the tag's own name fits MLflow's limit of 250."""


def storable_names(names: Iterable[str]) -> dict[str, str]:
    """Map each name to the one that MLflow takes for it: the same where it takes that, and one of its own where not."""
    originals = list(dict.fromkeys(names))
    stored_names = {name: name for name in originals if _storable(name) == name}
    used_names = set(stored_names)
    for name in originals:
        if name not in stored_names:
            substitute = _storable(name)
            if substitute in used_names:
                substitute = f"{substitute[: _LENGTH - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
            stored_names[name] = substitute
            used_names.add(substitute)
    return stored_names


def original_names(stored_names: Mapping[str, str]) -> dict[str, str]:
    """Map tags to the original names, of the names that are stored under another one."""
    return {f"{ORIGINAL}{substitute}": name for name, substitute in stored_names.items() if substitute != name}


def _storable(name: str) -> str:
    # MLflow reads a name as a path, and refuses one that is not the shortest for its place.
    path = posixpath.normpath(mlflow_name(name)[:_LENGTH]).strip("/. ")
    return path or "_"
