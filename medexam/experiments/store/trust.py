"""Whether the code that a run folder names may be imported: only of runs that this installation made, or on request.

Running a spec runs its code. A report is another matter: its reader may have got the folder from anybody, and the user
who unpacks an archive owns what was in it. So the spec of a run that names code is signed with a key in the user's
state folder. A folder may be moved; another spec, another key or none make it a stranger's.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.files import state_dir, write_new
from medexam.inputs import UnreadableError, read_record
from medexam.text import writable

RECORD = "spec.json"
"""The file that names the code."""
SIGNATURE = "signature"
"""Its field that holds the signature."""
TRUST: ContextVar[bool] = ContextVar("trust", default=False)
"""Whether the user has said that the code named by any run may be imported (`--trust`)."""
_KEY = "signing.key"
_RELATIVE_CODE = re.compile(r"(?![/~])[^\n:]+\.py:\w[\w.]*")
"""A name of code in a file that lies where the name is read."""


def sign(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `spec.json` holds, with this installation's signature; without one where no key can be kept."""
    unsigned = {name: value for name, value in record.items() if name != SIGNATURE}
    with suppress(OSError):
        return {**unsigned, SIGNATURE: _signature(unsigned, _make_key())}
    return unsigned


def is_own(folder: Path, name: str = RECORD) -> bool:
    """Return whether this installation made what is in `folder`, and nobody changed its file `name` since."""
    try:
        record, key = read_record(folder / name), _read_key()
    except (OSError, UnreadableError):
        return False
    if not isinstance(record, dict) or not isinstance(signature := record.pop(SIGNATURE, None), str):
        return False
    return hmac.compare_digest(signature.encode(), _signature(record, key).encode())


def check_trusted(folder: Path, subject: str) -> None:
    """Raise `SpecError` if importing `subject` would run code that the spec of a run from elsewhere names."""
    if not (TRUST.get() or is_own(folder)):
        raise SpecError(
            f"{subject} is not executed, because another installation made run {folder.name}: read the code, then "
            "give --trust"
        )


def beside_run(value: Any, folder: Path) -> Any:
    """Return what a stored spec holds, with names of code in files resolved beside the run, and not where the reader
    is.
    """
    if isinstance(value, Mapping):
        return {name: beside_run(part, folder) for name, part in value.items()}
    if isinstance(value, list):
        return [beside_run(part, folder) for part in value]
    if isinstance(value, str) and _RELATIVE_CODE.fullmatch(value):
        return f"{folder.absolute() / value.rpartition(':')[0]}:{value.rpartition(':')[2]}"
    return value


def _signature(record: Mapping[str, Any], key: bytes) -> str:
    # As it is read again: tuples are lists there.
    text = json.dumps(json.loads(json.dumps(writable(record))), sort_keys=True, ensure_ascii=True)
    return hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()


def _read_key() -> bytes:
    return (state_dir() / _KEY).read_bytes()


def _make_key() -> bytes:
    """Return the key, which is made at its first use, for its owner alone; raises `OSError`."""
    with suppress(FileNotFoundError):
        return _read_key()
    path = state_dir() / _KEY
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Another process may be first; its key is the key then.
    with suppress(FileExistsError):
        write_new(path, secrets.token_hex(32), private=True)
    return _read_key()
