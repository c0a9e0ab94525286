"""Two commands beside each other on one folder of runs: `run` loses nothing, and `rm` removes nothing that is held."""

import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from fake_vllm import free_port

from soak.children import Child, in_fork
from soak.results import copies, lines, runs
from soak.server import stamps_in
from soak.stage import Stage, Words

NAME = "pair"
"""The experiment whose questions are asked; the other runs were complete before."""
REPLIES = f"runs/{NAME}-*/predictions.jsonl"
MOST = 4
"""Pairs in one trial."""
WATCHED_S = 3.0
"""Longest time that `watch` serves."""
ASKED_S = 5.0
"""What `run` takes undisturbed."""
_CTRL_C_SHARE = 0.5
"""Of `run`, so that the next pair finds it begun."""
_OFTEN = {"run": 7, "rm": 4}
"""How often a command is one of two, where that is not once."""
FORMATS = ("lm-eval", "inspect", "every-eval-ever", "hub")
_REMOVED = "was removed or moved while answers were written to it"
"""What `run` says where its folder goes although it holds the lock."""


def result(folder: Path) -> Any:
    """The experiment's runs, and what MLflow has of them."""
    return [runs(folder, REPLIES), [row for row in copies(folder / "runs") if row[0].startswith(NAME)]]


def pair_up(stage: Stage) -> None:
    """Begin random pairs, then let `run` end, and compare what comes out with what comes out undisturbed."""
    removed = False
    for _ in range(stage.chance.randint(1, MOST)):
        removed |= _try_pair(stage)
    end = stage.carry_out("end", stage.running)
    if end.statuses != [0]:
        end.wedges = 1
        return
    found = in_fork(partial(result, stage.folder))
    # What is removed and asked anew is another run to MLflow, beside the one before.
    alone = stage.undisturbed
    stage.trial.differs = found[0] != alone[0] if removed else found != alone


def _try_pair(stage: Stage) -> bool:
    """One pair; whether `rm` removed a run of the experiment."""
    folder, chance = stage.folder, stage.chance
    names = chance.choices([*_COMMANDS], [_OFTEN.get(name, 1) for name in _COMMANDS], k=2)
    there = sorted(path.parent.name for path in folder.glob("runs/*/spec.json"))
    known = [run for run, *_ in stage.undisturbed[0]]
    commands = [_COMMANDS[name](stage, sorted({*there, *known})) for name in names]
    size, kept = stage.server.size(), {run: set(lines(f"runs/{run}/predictions.jsonl")(folder)) for run in there}
    stamps = {run: stamps_in(folder.glob(f"runs/{run}/predictions.jsonl")) for run in there if run.startswith(NAME)}
    late = chance.uniform(0, ASKED_S)
    step = stage.carry_out("beside", *commands, delay_s=late, meanwhile=partial(_look, names, commands, chance))
    taken = {
        Path(word).name
        for name, words, status in zip(names, commands, step.statuses, strict=True)
        if name == "rm" and status == 0
        for word in words[2:]
    }
    for run in [run for run in there if run not in taken]:
        step.lost += len(kept[run].difference(lines(f"runs/{run}/predictions.jsonl")(folder)))
    held = set().union(*(found for run, found in stamps.items() if run not in taken))
    step.twice = sum(stamp in held for stamp in stage.server.asked(size))
    if any(_REMOVED in child.said for child in stage.children):
        stage.blame(f"{' beside '.join(names)}: a run was removed whose lock was held")
    return any(run.startswith(NAME) for run in taken)


def _look(names: list[str], commands: list[Words], chance: random.Random, children: list[Child]) -> None:
    """Have each `watch` serve its page for a moment, then press Ctrl-C; some `run` meets it too."""
    for name, words, child in zip(names, commands, children, strict=True):
        if name == "run" and chance.random() < _CTRL_C_SHARE and not child.wait(chance.uniform(0, ASKED_S)):
            child.signal(signal.SIGINT)
        if name == "watch" and not child.wait(chance.uniform(0, WATCHED_S)):
            if chance.random() < 0.5:
                with suppress(OSError):
                    urlopen(f"http://127.0.0.1:{words[words.index('--port') + 1]}/", timeout=WATCHED_S).read()
            time.sleep(0.01)
            child.signal(signal.SIGINT)


def _some(stage: Stage, there: list[str]) -> list[str]:
    """Some of the run folders that are there or will be."""
    return [f"runs/{run}" for run in stage.chance.sample(there, stage.chance.randint(1, len(there)))]


_COMMANDS: Mapping[str, Callable[[Stage, list[str]], list[str]]] = {
    "run": lambda stage, _: [*stage.running],
    "rm": lambda stage, there: ["rm", "--yes", *_some(stage, there)],
    "track": lambda *_: ["track", "runs"],
    "report": lambda *_: ["report", "runs", "--html", "page.html", "--markdown", "report.md"],
    "list": lambda *_: ["list", "--runs-dir", "runs"],
    "watch": lambda *_: ["watch", "runs", "--port", str(free_port()), "--every", "1"],
    "export": lambda stage, _: ["export", "runs", "--to", stage.chance.choice(FORMATS), "--out", "exported"],
    "import": lambda stage, _: [*import_words(stage.inputs), "--runs-dir", "runs"],
    "compare": lambda stage, there: ["compare", *(_some(stage, there) if stage.chance.random() < 0.5 else ["runs"])],
}


def import_words(inputs: Path) -> list[str]:
    """Words of `medexam import` of a table."""
    return ["import", str(inputs / "answers.csv"), "--dataset", "headqa_sample", "--language", "en"]
