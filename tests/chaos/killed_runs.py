"""Runs an experiment in children that are killed at random moments, then to its end; writes what was seen as JSON.

Usage: python killed_runs.py SPEC RUNS_DIR KILLS. The modules are imported once, and each child is a fork. The scripted
engine answers about a hundred questions a second, so that a child is killed amid them: every other one at any moment
after it was started, the others at any moment after they began to ask, however slow the machine is.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from medexam.experiments.plan.planner import plan_experiment
from medexam.experiments.run.runner import Runner
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.serve import ScriptedEngine
from watching import Silent

_answer = ScriptedEngine.complete


async def _answer_late(self, request):
    await asyncio.sleep(chance.uniform(0.02, 0.14))
    return await _answer(self, request)


class Telling(Silent):
    """Writes a byte when questions begin to be asked."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def cell_starts(self, planned) -> None:
        os.write(self._pipe, b".")


def start(document: dict, runs_dir: Path) -> tuple[int, int]:
    """A child that runs the experiment: its id, and a pipe that holds a byte, or ends, once it asks or is gone."""
    asks, tells = os.pipe()
    child = os.fork()
    if child == 0:
        Runner(plan_experiment(document, {}, runs_dir=runs_dir), Telling(tells)).run()
        os._exit(0)
    os.close(tells)
    return child, asks


def on_disk(runs_dir: Path) -> bytes:
    """The whole lines of the only run."""
    data = b"".join(path.read_bytes() for path in runs_dir.glob(f"*/{PREDICTIONS}"))
    return data[: data.rfind(b"\n") + 1]


def main() -> None:
    """Kill, look, and in the end let it finish."""
    spec, runs_dir, kills = sys.argv[1:]
    document = json.loads(Path(spec).read_text(encoding="utf-8"))
    if int(kills):
        ScriptedEngine.concurrency = 8
        ScriptedEngine.complete = _answer_late
    lines, lost = [0], 0
    for turn in range(int(kills)):
        before = on_disk(Path(runs_dir))
        child, asks = start(document, Path(runs_dir))
        if turn % 2:
            os.read(asks, 1)
        time.sleep(chance.uniform(0.1, 1.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(asks)
        after = on_disk(Path(runs_dir))
        lost += not after.startswith(before)
        lines.append(after.count(b"\n"))
    child, _ = start(document, Path(runs_dir))
    _, status = os.waitpid(child, 0)
    sys.stdout.write(json.dumps({"lines": lines, "lost": lost, "status": status}))


chance = random.Random(5)
main()
