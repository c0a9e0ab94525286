"""Run folders from elsewhere: what is no file instead of a file, and specs that name code under a forged signature."""

import copy
import json
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path

from hypothesis import strategies as st

from generated.boundary import Boundary
from generated.commands import EndError, call
from generated.mutations import changed_value, json_bytes
from generated.names import check_shown

LONGEST_S = 20
"""What one command may take; one that reads a pipe or a file without end never ends."""
HUGE = 1 << 31
"""Bytes of a file that takes no place on the disk."""
METRIC = "def metric(question, gold, prediction):\n    return 1\n"
_FILES = (".lock", "parts", "report.md", "parts/w.jsonl", "map.png", "extra")
"""Places beside the files of a run."""


@contextmanager
def ending() -> Iterator[None]:
    """Raise `EndError` for what takes longer than `LONGEST_S`."""

    def refuse(*_: object) -> None:
        raise EndError("it does not end", f"after {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, refuse)
    signal.alarm(LONGEST_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _bind(path: Path) -> None:
    # The name of a socket has a hundred letters at most.
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)


KINDS: Mapping[str, Callable[[Path], object]] = {
    "folder": lambda path: path.mkdir(),
    "full folder": lambda path: (path / "spec.json").mkdir(parents=True),
    "pipe": os.mkfifo,
    "socket": _bind,
    "loop": lambda path: path.symlink_to(path.name),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "nothing": lambda path: path.symlink_to("/dev/null"),
    "link up": lambda path: path.symlink_to(".."),
    "memory": lambda path: path.symlink_to("/proc/self/mem"),
    "gone": lambda path: None,
    "empty": lambda path: path.touch(),
    "huge": lambda path: (path.touch(), os.truncate(path, HUGE)),
    "zeros": lambda path: path.write_bytes(b"\0" * 5000),
    "lines": lambda path: path.write_bytes(b"\n" * 5000),
    "deep": lambda path: path.write_bytes(b"[" * 100_000),
    "page": lambda path: path.write_bytes(b"<html>\r\n</html>\r\n"),
    "utf-16": lambda path: path.write_bytes('{"a": 1}\n'.encode("utf-16")),
}
"""What may lie where a file of a run should."""
COMMANDS: Mapping[str, Callable[[Path, Path], list[object]]] = {
    "report": lambda run, _: ["report", run],
    "show": lambda run, _: ["show", run],
    "list": lambda run, _: ["list", "--runs-dir", run.parent],
    "compare": lambda run, other: ["compare", run, other],
    "export": lambda run, _: ["export", run, "--to", "lm-eval", "--out", run.parent / "exported"],
    "resume": lambda run, _: ["run", "--resume", run],
    "page": lambda run, _: ["report", run.parent, "--html", run.parent / "page.html"],
    "rm": lambda run, _: ["rm", run, "--yes"],
}
"""What reads a run folder, of itself and of a whole run."""


def kinds_of_files(folder: Path, closing: ExitStack) -> Boundary:
    """A run folder in which one or two places hold something else."""
    whole = _make_run(folder)
    places = [path.name for path in whole.iterdir() if path.is_file()] + list(_FILES)
    spoilt = st.lists(
        st.tuples(st.sampled_from(sorted({*places})), st.sampled_from(list(KINDS))), min_size=1, max_size=2
    )
    inputs = st.tuples(spoilt, st.sampled_from(list(COMMANDS)), st.sampled_from(["", "", "", "link"]))

    def trial(one: tuple[list[tuple[str, str]], str, str]) -> None:
        changes, command, come = one
        shutil.rmtree(folder / "runs", ignore_errors=True)
        run = folder / "runs" / whole.name
        shutil.copytree(whole, run)
        for name, kind in changes:
            _spoil(run / name, kind)
        if come == "link":
            run.rename(folder / "runs" / "target")
            run.symlink_to("target")
        with ending():
            check_shown(call(*COMMANDS[command](run, whole)), command)
        if command == "rm" and come == "link" and not (folder / "runs" / "target").exists():
            raise EndError("rm removed what a link leads to", "")
        if not (whole / "spec.json").exists():
            raise EndError(f"{command} removed another run", "")

    return Boundary(inputs, trial)


def _spoil(path: Path, kind: str) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if not path.parent.is_dir():
        path.parent.unlink(missing_ok=True)
        path.parent.mkdir()
    KINDS[kind](path)


def forged_specs(folder: Path, closing: ExitStack) -> Boundary:
    """A signed spec that was changed to name other code, by signatures and names of any kind: it is never imported."""
    whole = _make_run(folder, metrics=["./good.py:metric"])
    signed = json.loads((whole / "spec.json").read_bytes())
    if not signed.get("signature"):
        raise EndError("the run is not signed", repr(signed))
    mark = folder / "imported"
    evil = f"from pathlib import Path\nPath({str(mark)!r}).touch()\n{METRIC}"
    run = folder / "runs" / whole.name
    for place in (folder, whole, whole.parent):
        (place / "evil.py").write_text(evil, encoding="utf-8")
    (folder / "evilpackage").mkdir()
    (folder / "evilpackage" / "__init__.py").write_text(evil, encoding="utf-8")
    (folder / "evilpackage" / "own.py").write_text(METRIC, encoding="utf-8")
    names = [
        *("./evil.py:metric", "evil.py:metric", "../evil.py:metric", f"{whole / 'evil.py'}:metric", "evil:metric"),
        *("evilpackage:metric", "evilpackage.own:metric", "././evil.py:metric", "evil.py:metric.x"),
    ]
    seeds = [_name_code(signed, field, name) for name in names for field in _CODE]
    signatures = st.sampled_from(
        ["", None, 0, [], {}, "0" * 64, signed["signature"], signed["signature"].upper(), "é", signed["signature"][:-1]]
    )
    documents = st.one_of(st.sampled_from(seeds), st.sampled_from(seeds), changed_value(seeds))
    inputs = st.tuples(documents, signatures, st.booleans(), st.sampled_from([*COMMANDS][:-1]))

    def trial(one: tuple[object, object, bool, str]) -> None:
        document, signature, keeps, command = one
        shutil.rmtree(run.parent, ignore_errors=True)
        shutil.copytree(whole, run)
        if isinstance(document, dict) and not keeps:
            document = {**document, "signature": signature}
        (run / "spec.json").write_bytes(json_bytes(document))
        for made in ("report.md", "metrics.json", "made_from.json"):
            (run / made).unlink(missing_ok=True)
        with ending():
            call(*COMMANDS[command](run, whole))
        if mark.exists():
            mark.unlink()
            raise EndError(f"{command} imports the code of a forged spec", "")

    return Boundary(inputs, trial)


def _name_code(signed: dict[str, object], field: str, name: str) -> dict[str, object]:
    document = copy.deepcopy(signed)
    cell = document["cell"]
    assert isinstance(cell, dict)
    match field:
        case "metrics":
            cell["metrics"] = [name]
        case "program":
            cell["program"] = {"kind": name}
        case "module":
            cell["program"] = {"kind": "module", "module": name}
        case "dataset":
            cell["dataset"] = {**cell["dataset"], "name": name}
        case "benchmark":
            cell["dataset"] = {**cell["dataset"], "kind": name}
        case "engine":
            cell["model"] = {**cell["model"], "engine": name}
        case "retriever":
            cell["program"] = {"kind": "retrieve_then_answer", "retriever": {"kind": name}, "k": 1}
    return document


_CODE = ("metrics", "program", "module", "dataset", "benchmark", "engine", "retriever")
"""Parts of a spec that may name code."""


def _make_run(folder: Path, **more: object) -> Path:
    (folder / "good.py").write_text(METRIC, encoding="utf-8")
    spec = {
        "name": "made",
        "dataset": {"name": "headqa_sample", "limit": 2},
        "program": {"kind": "longest"},
        **more,
    }
    (folder / "made.json").write_text(json.dumps(spec), encoding="utf-8")
    with chdir(folder):
        call("run", folder / "made.json", "--runs-dir", folder / "made")
    (whole,) = (path.parent for path in (folder / "made").glob("*/spec.json"))
    return whole
