"""Keys of the questions to ask, from a file: `dataset.only`."""

import json
from collections.abc import Collection
from pathlib import Path

from medexam.errors import DatasetError
from medexam.inputs import read_regular


def read_chosen(path: Path, all_keys: Collection[str]) -> frozenset[str]:
    """Read the keys in a file: one a line, or those in the document of `medexam compare --subset N --json`.

    Raises `DatasetError` if it cannot be read, is empty, or names a question that is not among `all_keys`.
    """
    try:
        text = read_regular(path.expanduser()).decode()
        if text.lstrip().startswith("{"):
            keys = frozenset(map(str, json.loads(text)["subset"]["questions"]))
        else:
            keys = frozenset(filter(None, map(str.strip, text.splitlines())))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(
            f"dataset.only: cannot read keys from {path} ({type(error).__name__}: {error}): give a file with one key "
            "on each line, or what `medexam compare --subset N --json` prints"
        ) from None
    if unknown := sorted(keys - set(all_keys)):
        raise DatasetError(f"dataset.only: {path} names {unknown[0]}, which is not in the data set; correct the file")
    if not keys:
        raise DatasetError(f"dataset.only: {path} names no question; write one key on each line")
    return keys
