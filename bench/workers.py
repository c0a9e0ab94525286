"""What several processes of this machine ask, beside one: `medexam run --workers N`.

    python bench/workers.py --number 2 --rounds 3

The same questions are asked by one process and by N, in pairs whose order alternates, of `instant_server.py` in another
process. Two figures compare them. `questions_per_s` is by the clock, from the first question to the merged
answers; where the cores have other work too, N processes get a smaller share of them than one. So
`processor_ms` gives the processor time of a question, of the driver and all workers: on N cores without other work, N
processes ask `on_idle_cores` times as many questions a second as one, if the driver takes turns with them. Starting the
processes is in neither. Prints one JSON document.
"""

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from client_capacity import instant_server, read_source, say, write_workload
from distributed import make_spec

from medexam.experiments import Runner, plan_spec
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.run.shard import SpreadExecutor, run_here


class TimedRunner(Runner):
    """Measures the asking, the merging of the answers included."""

    seconds: float
    processor_s: float
    """Of this process and of the shards."""

    async def _ask(self, *arguments: Any) -> None:
        begun, spent = time.perf_counter(), processor_s()
        await super()._ask(*arguments)
        self.seconds, self.processor_s = time.perf_counter() - begun, processor_s() - spent


def processor_s() -> float:
    """Seconds of processor time that this process and those that it has waited for have had."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def ask_by(many: int, spec: dict[str, Any], number: int) -> tuple[float, float]:
    """Questions a second, and milliseconds of processor time of one, where `many` processes ask."""
    with tempfile.TemporaryDirectory() as runs_dir:
        plan = plan_spec(spec, {}, runs_dir=Path(runs_dir))
        with RunProgress(disable=True) as observer:
            runner = TimedRunner(plan, observer, executor=None if many == 1 else SpreadExecutor(many, run_here))
            (run,), _ = runner.run()
    if run.metrics.n != number:
        raise RuntimeError(f"{run.metrics.n} of {number} questions were answered")
    return number / runner.seconds, 1000 * runner.processor_s / number


def measure(arguments: argparse.Namespace, endpoint: str, exams: Path) -> dict[str, Any]:
    """The document."""
    spec, many = make_spec(exams, [endpoint]), arguments.number
    spec["program"]["answer_format"] = arguments.answer_format
    pairs: list[Sequence[tuple[float, float]]] = []
    for turn in range(arguments.rounds):
        found = {each: ask_by(each, spec, arguments.questions) for each in ((1, many) if turn % 2 == 0 else (many, 1))}
        pairs.append((found[1], found[many]))
        for each, (rate, spent_ms) in found.items():
            say(f"round {turn + 1}, {each} at work: {rate:.0f} questions/s, {spent_ms:.3f} ms of processor time each")
    return {
        "number": many,
        "answer_format": arguments.answer_format,
        "questions": arguments.questions,
        "questions_per_s": [[round(rate) for rate, _ in pair] for pair in pairs],
        "processor_ms": [[round(spent_ms, 3) for _, spent_ms in pair] for pair in pairs],
        "by_the_clock": round(statistics.median(more[0] / one[0] for one, more in pairs), 2),
        "on_idle_cores": round(many * statistics.median(one[1] / more[1] for one, more in pairs), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MEDEXAM_DATA", ".")))
    parser.add_argument("--number", type=int, default=2, help="processes that ask")
    parser.add_argument("--questions", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--answer-format", choices=["guided", "free"], default="guided")
    arguments = parser.parse_args()
    load_average = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory(prefix="medexam-workers-") as scratch, instant_server(None) as server:
        exams = write_workload(read_source(arguments.data), arguments.questions, Path(scratch)).exams
        report = measure(arguments, server.endpoint, exams)
    print(json.dumps({"load_average": load_average, **report}, indent=1))


if __name__ == "__main__":
    main()
