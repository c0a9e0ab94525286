"""How many Python functions of medexam a question passes through, over a whole run and while it is asked.

    python bench/path_calls.py http://127.0.0.1:8123/v1 [--answer-format free] [--kind zero_shot]

Runs two numbers of questions of HEAD-QA v1 (`$MEDEXAM_DATA`) against `instant_server.py`, and counts each call of a
function of the package in whatever thread: the difference of the two counts by that of the questions, so that no
start-up is in it. A function that fewer than every second question calls is left out: it belongs to a request, a file
or a report. Prints one JSON document: calls a question, modules, and the calls of each function; `asking` counts from
the first question that is begun to the last answer that is kept, without planning, loading and scoring. With `--time`
it counts nothing, and prints the processor's milliseconds a question.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

import medexam
from medexam.experiments.run.scheduler import Scheduler

PACKAGE = str(Path(medexam.__file__).parent) + os.sep
LEAST = 0.5
"""Calls a question below which a function is left out."""


def run(endpoint: str, questions: int, program: dict[str, Any], folder: Path) -> None:
    """Ask so many questions in a run of their own."""
    spec = {
        "name": f"path-{questions}",
        "dataset": {"name": "headqa_v1", "language": "en"},
        "model": {"engine": "vllm", "endpoints": [endpoint]},
        "program": program,
    }
    medexam.run(spec, limit=questions, runs_dir=folder, track=False, progress=False)


def count(arguments: argparse.Namespace, folder: Path) -> list[tuple[Counter[str], Counter[str]]]:
    """Count the calls of each function of the package in a run of each size: all, and those while it asks."""
    calls, asking = Counter[str](), Counter[str]()
    is_asking, ask = False, Scheduler.run

    async def run_scheduler(scheduler: Scheduler) -> None:
        nonlocal is_asking
        is_asking = True
        try:
            await ask(scheduler)
        finally:
            is_asking = False

    def note(frame: FrameType, event: str, _: Any) -> None:
        # A coroutine that goes on is no call.
        if event == "call" and frame.f_lasti <= 4 and frame.f_code.co_filename.startswith(PACKAGE):
            code = frame.f_code
            name = f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}"
            calls[name] += 1
            asking[name] += int(is_asking)

    counts = []
    # Threads of the first run live on, and count for the second.
    threading.setprofile(note)
    sys.setprofile(note)
    Scheduler.run = run_scheduler  # type: ignore[method-assign,assignment]
    for number in arguments.questions:
        calls.clear()
        asking.clear()
        run(arguments.endpoint, number, arguments.program, folder / str(number))
        counts.append((Counter(calls), Counter(asking)))
    sys.setprofile(None)
    return counts


def main() -> None:
    """Print what a question costs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("endpoint")
    parser.add_argument("--kind", default="zero_shot")
    parser.add_argument("--answer-format", choices=("guided", "free"), default="guided")
    parser.add_argument("--questions", type=int, nargs=2, default=(500, 2500))
    parser.add_argument("--time", action="store_true")
    arguments = parser.parse_args()
    arguments.program = {"kind": arguments.kind, "answer_format": arguments.answer_format}
    few, many = arguments.questions
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.time:
            seconds = []
            for number in (16, few, many):
                start = time.process_time()
                run(arguments.endpoint, number, arguments.program, folder / str(number))
                seconds.append(time.process_time() - start)
            print(json.dumps({"processor_ms_a_question": round(1000 * (seconds[2] - seconds[1]) / (many - few), 3)}))
            return
        small, large = count(arguments, folder)
    whole, asking = (describe(*pair, many - few) for pair in zip(small, large, strict=True))
    print(json.dumps({**whole, "asking": asking}, indent=1))


def describe(few: Counter[str], many: Counter[str], questions: int) -> dict[str, Any]:
    """Describe the calls of so many questions, as those of many more than those of few."""
    rates = {name: (many[name] - few[name]) / questions for name in many}
    figures = {name: round(rate, 1) for name, rate in sorted(rates.items(), key=lambda pair: -pair[1]) if rate >= LEAST}
    modules: dict[str, float] = defaultdict(float)
    for name, rate in figures.items():
        modules[name.partition(":")[0]] += rate
    total = {"calls": round(sum(figures.values()), 1), "modules": len(modules)}
    return {**total, "of_modules": modules, "of_functions": figures}


if __name__ == "__main__":
    main()
