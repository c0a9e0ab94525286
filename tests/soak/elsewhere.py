"""Run folders from elsewhere: moved, unpacked, half there, or with what is no file instead of a file."""

import json
import os
import random
import shutil
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from soak.pairs import FORMATS
from soak.results import lines
from soak.stage import Stage

MADE = "elsewhere"
"""The folder of the inputs that holds the runs."""
MARK = "imported.txt"
"""What the runs' own code leaves in the folder where it is imported."""
MARKING = f"""from pathlib import Path
Path({MARK!r}).touch()

def longest(question, gold, prediction):
    return len(question.options)
"""
_STRANGER_SHARE = 0.7
"""Of trials in which this installation did not make the runs."""
_LONGEST_CUT = 3
"""Files that are cut or gone in one trial."""


def look_at_runs(stage: Stage) -> None:
    """Bring the runs here in some way, and read them by every command."""
    chance, runs = stage.chance, stage.folder / MADE
    way, change = chance.choice([*_WAYS.items()])
    stranger = chance.random() < _STRANGER_SHARE
    if stranger:
        _rename_code(runs, chance)
    runs = change(runs, chance)
    before = partial(os.environ.__setitem__, "XDG_STATE_HOME", str(stage.folder / "state")) if stranger else bool
    found = sorted(path for path in runs.iterdir() if path.is_dir() and not path.name.startswith("ml"))
    one = str(chance.choice(found)) if found else str(runs)
    commands = [
        ["report", str(runs), "--html", "page.html"],
        ["show", one],
        ["list", "--runs-dir", str(runs)],
        ["compare", str(runs)],
        ["track", str(runs)],
        ["export", one, "--to", chance.choice(FORMATS), "--out", "exported"],
        ["run", "--resume", one],
    ]
    kept = lines(f"{runs.relative_to(stage.folder)}/*/predictions.jsonl")
    for words in chance.sample(commands, len(commands)):
        there = {*kept(stage.folder)}
        step = stage.carry_out(way, words, before=before)
        step.lost = len(there.difference(kept(stage.folder)))
        if stranger and (stage.folder / MARK).exists():
            stage.blame(f"medexam {words[0]} imported code that a run from elsewhere names")
            (stage.folder / MARK).unlink()


def _rename_code(runs: Path, chance: random.Random) -> None:
    """Have each run name its code by a relative name, or as it is, and lay that code where it may be looked for."""
    for path in runs.glob("*/spec.json"):
        for place in (path.parent, runs.parent):
            (place / "marking.py").write_text(MARKING, encoding="utf-8")
        if chance.random() < 0.5:
            record = json.loads(path.read_text(encoding="utf-8"))
            record["cell"]["metrics"] = ["./marking.py:longest"]
            path.write_text(json.dumps(record), encoding="utf-8")


def _move(runs: Path, chance: random.Random) -> Path:
    return runs.rename(runs.with_name(chance.choice(["moved", "moved here", "runs", "móved-ö"])))


def _copy(runs: Path, _: random.Random) -> Path:
    """As an archive is unpacked: with other times, and the first run there twice."""
    found = runs.with_name("unpacked")
    shutil.copytree(runs, found, copy_function=shutil.copyfile)
    first = min(path.parent for path in found.glob("*/spec.json"))
    shutil.copytree(first, first.with_name(f"copy-{first.name}"))
    return found


def _cut(runs: Path, chance: random.Random) -> Path:
    """Have files be cut at a random byte, damaged at one, or gone."""
    files = _files(runs)
    for path in chance.sample(files, chance.randint(1, min(_LONGEST_CUT, len(files)))):
        data, place = path.read_bytes(), chance.randrange(path.stat().st_size + 1)
        match chance.choice(["gone", "cut", "damaged"]):
            case "gone":
                path.unlink()
            case "cut":
                path.write_bytes(data[:place])
            case "damaged":
                path.write_bytes(data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :])
    return runs


def _replace(runs: Path, chance: random.Random) -> Path:
    """Put what is no file in a file's place."""
    path = chance.choice([*_files(runs), *(file.with_name(".lock") for file in runs.glob("*/spec.json"))])
    path.unlink(missing_ok=True)
    match chance.choice(["folder", "full folder", "pipe", "socket", "loop", "device"]):
        case "folder":
            path.mkdir()
        case "full folder":
            (path / "spec.json").mkdir(parents=True)
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                before = Path.cwd()
                os.chdir(path.parent)  # the name of a socket has a hundred letters at most
                bound.bind(path.name)
                os.chdir(before)
        case "loop":
            path.symlink_to(path.name)
        case "device":
            path.symlink_to("/dev/zero")
    return runs


def _files(runs: Path) -> list[Path]:
    return sorted(path for path in runs.glob("*/*") if path.is_file() and path.stat().st_size)


_WAYS: Mapping[str, Callable[[Path, random.Random], Path]] = {
    "moved": _move,
    "copied": _copy,
    "half there": _cut,
    "replaced": _replace,
}
