"""Runs an experiment in children that are killed at random moments, then to its end; writes what was seen as JSON.

Usage: python killed_runs.py SPEC RUNS_DIR KILLS. The modules are imported once, and each child is a fork. The scripted
engine answers about a hundred questions a second, so that a child is killed amid them.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from medexam.experiments.planning import plan_experiment
from medexam.experiments.run_folder import PREDICTIONS
from medexam.experiments.runner import run_plan
from medexam.serve import ScriptedEngine
from watching import Silent

_answer = ScriptedEngine.complete


async def _answer_late(self, request):
    await asyncio.sleep(chance.uniform(0.02, 0.14))
    return await _answer(self, request)


def start(document: dict, runs_dir: Path) -> int:
    """A child that runs the experiment; its id."""
    child = os.fork()
    if child == 0:
        run_plan(plan_experiment(document, {}, runs_dir=runs_dir), Silent())
        os._exit(0)
    return child


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
    for _ in range(int(kills)):
        before = on_disk(Path(runs_dir))
        child = start(document, Path(runs_dir))
        time.sleep(chance.uniform(0.3, 1.6))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        after = on_disk(Path(runs_dir))
        lost += not after.startswith(before)
        lines.append(after.count(b"\n"))
    _, status = os.waitpid(start(document, Path(runs_dir)), 0)
    sys.stdout.write(json.dumps({"lines": lines, "lost": lost, "status": status}))


chance = random.Random(5)
main()
