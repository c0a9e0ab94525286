"""What each command does undisturbed: how long it takes, what comes out, and which modules it imports."""

import asyncio  # noqa: F401 - before `_asyncio` is imported by its name: it would be made twice, and no task found
import gc
import importlib
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soak.children import be_command, in_fork, start
from soak.results import files_in
from soak.server import ServerProcess, stamps_in
from soak.works import Work, write_inputs

LIMIT_S = 600.0


@dataclass(frozen=True)
class Baseline:
    """One command, undisturbed."""

    seconds: float
    """In a fork that has imported everything."""
    cold_s: float
    """With its imports."""
    result: Any
    files: Mapping[str, int]
    """What lies in its folder at the end, with the number of bytes."""


def find_baselines(
    works: Mapping[str, Work], server: ServerProcess, inputs: Path, scratch: Path
) -> dict[str, Baseline]:
    """Carry out each command twice, cold and warm, and leave all modules that they import in this process."""
    in_fork(lambda: write_inputs(inputs, works.values()))
    modules: set[str] = set()
    cold = {}
    for name, work in works.items():
        if work.earlier:
            _finish(work.earlier, inputs, scratch / "earlier.streams")
        work.begin(scratch / name, inputs)
        begun = time.monotonic()
        modules.update(in_fork(lambda work=work, name=name: _imported(work.words, scratch / name)))
        cold[name] = time.monotonic() - begun
        shutil.rmtree(scratch / name)
    import_all(sorted(modules))
    for name, work in works.items():
        _import_also(work, inputs, scratch / name)
    assert threading.active_count() == 1, f"threads do not live on in forks: {threading.enumerate()}"
    gc.collect()
    gc.freeze()
    return {name: _measure(work, server, inputs, scratch / name, cold[name]) for name, work in works.items()}


def _import_also(work: Work, inputs: Path, folder: Path) -> None:
    """Import what a work's further commands import, each carried out once behind its own."""
    if not work.also:
        return
    work.begin(folder, inputs)
    _finish(work.words, folder, folder.with_suffix(".streams"))
    for words in work.also:
        import_all(in_fork(lambda words=words: _imported(words, folder)))
    shutil.rmtree(folder)


def _measure(work: Work, server: ServerProcess, inputs: Path, folder: Path, cold_s: float) -> Baseline:
    work.begin(folder, inputs)
    known, begun = server.size(), time.monotonic()
    _finish(work.words, folder, folder.with_suffix(".streams"))
    seconds = time.monotonic() - begun
    kept = stamps_in(work.reply_files(folder))
    assert kept <= {*server.asked(known)}, "replies hold stamps that were not given"
    assert kept or not work.replies, "no reply holds its stamp"
    found = Baseline(seconds, cold_s, in_fork(lambda: work.result(folder)), files_in(folder))
    shutil.rmtree(folder)
    return found


def _finish(words: Sequence[str], cwd: Path, streams: Path) -> None:
    child = start(words, cwd, streams)
    assert child.wait(LIMIT_S), f"medexam {words[0]} takes longer than {LIMIT_S:.0f} s undisturbed"
    assert child.status == 0, f"medexam {words[0]} ended with {child.status}: {child.said}"


def _imported(words: Sequence[str], folder: Path) -> list[str]:
    streams = folder.with_suffix(".streams")
    streams.mkdir(exist_ok=True)
    code = be_command(words, folder, streams)
    assert code == 0, f"medexam {words[0]} ended with {code}: see {streams}"
    return sorted(sys.modules)


def import_all(names: Iterable[str]) -> None:
    """Import those modules that can be imported by their names alone."""
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException:  # some are made by others, and cannot be found by their names
            continue
