"""The bytes of a data set's files as one digest, which tells whether they changed without parsing them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from medexam.datasets.locating import locate_files
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec


def digest_files(spec: DatasetSpec) -> str:
    """SHA-256 over the names and bytes of the files that hold a data set, in hexadecimal.

    Raises `DatasetError` where they are missing or cannot be read.
    """
    content = hashlib.sha256()
    for path in _all_files(spec, locate_files(spec.name, spec.language, spec.path)):
        content.update(f"{path.name}\0{_digest(path)}\0".encode())
    return content.hexdigest()


def _all_files(spec: DatasetSpec, found: Sequence[Path]) -> Sequence[Path]:
    """The files of a data set with those that are read beside them."""
    if spec.name == "cliniqlink":
        return sorted(found[0].parent.glob("*.json"))
    if found[0].suffix == ".tsv":
        return sorted(found[0].parent.parent.glob("*/*.tsv"))
    return found


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}): make it readable") from None
