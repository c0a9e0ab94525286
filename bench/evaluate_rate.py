"""How many examples a second `medexam.Evaluate` evaluates beside `dspy.Evaluate`, on a server that answers at once.

    python bench/evaluate_rate.py --examples 5000 --rounds 3

Each side is a process of its own: the same module, metric and examples, asked of `instant_server.py` in another one.
`dspy` is stock DSPy with its own model, without caches and history, with 8, 16 and 64 threads; its best counts.
`medexam` is `medexam.Evaluate` with `medexam.lm("vllm")`, which keeps every answer, scores the run and writes its
report. `medexam_dspy_lm` is the same with DSPy's own model. The rate is that of the whole call, from the first example
to the result. Sides alternate in rounds; the median counts. `client_ms` are the milliseconds of processor time that
the client takes for an example, which other work on the machine changes less. Prints one JSON document.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from client_capacity import instant_server

SIDES = ("dspy:8", "dspy:16", "dspy:64", "medexam", "medexam_dspy_lm")


def run_side(side: str, endpoint: str, examples: int, folder: str) -> None:
    """Evaluate once, and print the seconds and the score."""
    import dspy

    import medexam

    name, _, threads = side.partition(":")
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    if name == "medexam":
        lm = medexam.lm("vllm", endpoints=endpoint, max_tokens=64)
    else:
        settings = {"api_base": endpoint, "api_key": "EMPTY", "temperature": 0.0, "max_tokens": 64, "cache": False}
        lm = dspy.LM("openai/smollm2", **settings)
    dspy.configure(lm=lm, disable_history=True)
    devset = [dspy.Example(question=f"Question {n}?", answer="1").with_inputs("question") for n in range(examples)]
    if name == "dspy":
        evaluate: Any = dspy.Evaluate(devset=devset, metric=is_right, num_threads=int(threads))
    else:
        evaluate = medexam.Evaluate(
            devset=devset, metric=is_right, runs_dir=folder, num_threads=int(threads or 0) or None, track=False
        )
    program = dspy.Predict("question -> answer")
    program(question="A first question, which loads what is loaded late.")
    begin, processor = time.monotonic(), time.process_time()
    result = evaluate(program)
    seconds = {"seconds": time.monotonic() - begin, "processor": time.process_time() - processor}
    print(json.dumps({**seconds, "score": result.score}))


def is_right(example: Any, prediction: Any) -> bool:
    return bool(prediction.answer == example.answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--examples", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", nargs="*", default=SIDES)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.endpoint, arguments.examples, arguments.folder)
        return
    rates: dict[str, list[float]] = {side: [] for side in arguments.sides}
    client_ms: dict[str, list[float]] = {side: [] for side in arguments.sides}
    with instant_server(None) as server:
        for _ in range(arguments.rounds):
            for side in arguments.sides:
                with tempfile.TemporaryDirectory() as folder:
                    options = [f"--side={side}", f"--endpoint={server.endpoint}", f"--folder={folder}"]
                    command = [sys.executable, str(Path(__file__)), f"--examples={arguments.examples}", *options]
                    done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(f"{side}: {done.stderr[-2000:]}")
                report = json.loads(done.stdout.splitlines()[-1])
                rates[side].append(arguments.examples / report["seconds"])
                client_ms[side].append(1000 * report["processor"] / arguments.examples)
    medians = {side: round(statistics.median(values), 1) for side, values in rates.items()}
    theirs = max((rate for side, rate in medians.items() if side.startswith("dspy")), default=None)
    ratios = {side: round(rate / theirs, 2) for side, rate in medians.items() if theirs and side.startswith("medexam")}
    processor = {side: round(statistics.median(values), 3) for side, values in client_ms.items()}
    figures = {"examples_per_s": medians, "times_dspy": ratios, "client_ms": processor}
    print(json.dumps({"examples": arguments.examples, **figures}, indent=2))


if __name__ == "__main__":
    main()
