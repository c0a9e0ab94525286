"""Where a file or a folder is made before it takes its place, and what is left of that when its process is killed.

A draft lies beside its place and is named after its writer: the machine, the process and the thread. It is hidden, so
no reader takes it for what it will be.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident

from medexam.processes import host_name, process_lives

_END = ".draft"


@contextmanager
def drafting(path: Path) -> Iterator[Path]:
    """Where to make what will be `path`; nothing is there at first, and what is left there at the end is removed.

    Drafts of `path` whose writers were killed are removed first. Raises `OSError`.
    """
    for left in _abandoned(path):
        with suppress(OSError):
            _remove(left)
    draft = path.parent / f"{_opening(path)}{os.getpid()}.{get_ident()}{_END}"
    _remove(draft)
    try:
        yield draft
    finally:
        with suppress(OSError):
            _remove(draft)


def _opening(path: Path) -> str:
    return f".{path.name}.{host_name()}."


def _abandoned(path: Path) -> list[Path]:
    """Drafts of `path` of this machine's dead processes; those of other machines cannot be looked up here."""
    form = re.compile(rf"{re.escape(_opening(path))}(\d+)\.\d+{re.escape(_END)}")
    # One look at the folder, and no sort: it may hold many files.
    with suppress(OSError), os.scandir(path.parent) as entries:
        found = [(path.parent / entry.name, match[1]) for entry in entries if (match := form.fullmatch(entry.name))]
        return [draft for draft, pid in found if not process_lives(int(pid))]
    return []


def _remove(draft: Path) -> None:
    if draft.is_dir() and not draft.is_symlink():
        shutil.rmtree(draft)
    else:
        draft.unlink(missing_ok=True)
