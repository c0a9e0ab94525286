"""Disks that are full: a small file system in a folder's place, or a limit on the size of files."""

import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

PAGE = 4096


@cache
def can_mount() -> bool:
    """Whether this process may mount file systems."""
    with TemporaryDirectory() as folder:
        if _mount(Path(folder), PAGE):
            return _run("umount", folder)
    return False


@contextmanager
def small_disk(folder: Path, room: int) -> Iterator[None]:
    """Have what is in the folder lie on a file system with `room` more bytes, until the block ends."""
    aside = folder.with_suffix(".aside")
    folder.rename(aside)
    folder.mkdir()
    held = sum(-(-path.lstat().st_size // PAGE) * PAGE + PAGE for path in aside.rglob("*"))
    if not _mount(folder, held + room + 4 * PAGE):
        raise RuntimeError(f"cannot mount a file system at {folder}")
    try:
        shutil.copytree(aside, folder, dirs_exist_ok=True, symlinks=True)
        yield
        shutil.rmtree(aside)
        shutil.copytree(folder, aside, symlinks=True)
    finally:
        _run("umount", str(folder))
        folder.rmdir()
        aside.rename(folder)


def limit_files(size: int) -> None:
    """Have this process write no file larger than `size` bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """`limit_files` in this block."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _mount(folder: Path, size: int) -> bool:
    return _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))


def _run(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0
