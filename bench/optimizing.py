"""A random search over demonstrations: beside plain calls through `run`, and beside stock DSPy's own, on one server.

    python bench/optimizing.py http://127.0.0.1:8000/v1 --validation 200 --candidates 8

- `optimize`: `medexam optimize` with `random_search`, demonstrations from HEAD-QA's training exams;
- `run`: `medexam run` of the programs that were tried, on as many other questions of the same exams;
- `dspy`: stock DSPy's optimizer of the same name and size, its own adapter and client, 16 threads.

Each side chooses its validation questions by a seed of its own, so that it does not profit from what another left in
the server's prefix cache. Prints one JSON document: seconds and calls of each side, the seconds a call of `optimize` by
those of `run`, and the seconds of `optimize` by those of `dspy`.
"""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy
from dspy.teleprompt import BootstrapFewShotWithRandomSearch

from medexam.datasets import load_exam_set
from medexam.experiments import Runner, plan_spec
from medexam.experiments.entry.progress import Bars, RunProgress
from medexam.experiments.optimize.optimization import Optimization
from medexam.experiments.optimize.optimizer import optimize
from medexam.experiments.optimize.plan import plan_optimization
from medexam.specs import DatasetSpec

KEY = os.environ.get("VLLM_API_KEY", "EMPTY")
DEMOS = 3
ATTEMPTS = 24
THREADS = 16
PROGRAM = {"kind": "zero_shot", "answer_format": "guided"}


def run_optimize(endpoint: str, validation: int, candidates: int, folder: Path) -> Optimization:
    document = {
        "name": "bench",
        "dataset": {"name": "headqa_v1", "language": "en", "split": "test", "limit": 10},
        "model": {"engine": "vllm", "endpoints": [endpoint]},
        "program": PROGRAM,
        "optimizer": {
            "kind": "random_search",
            "validation": {"split": "dev", "limit": validation},
            "demos": DEMOS,
            "candidates": candidates,
            "attempts": ATTEMPTS,
        },
    }
    with Bars() as progress:
        return optimize(plan_optimization(document, {}, runs_dir=folder), progress)


def run_plain(endpoint: str, validation: int, tried: Optimization, folder: Path) -> tuple[float, int]:
    """Seconds of asking, and calls."""
    loads = [str(tried.work.programs / trial.digest) for trial in tried.trials]
    document = {
        "name": "plain",
        "dataset": {"name": "headqa_v1", "language": "en", "split": "dev", "limit": validation, "seed": 1},
        "model": {"engine": "vllm", "endpoints": [endpoint]},
        "matrix": {"program": [{**PROGRAM, "load": load} for load in loads]},
    }
    plan = plan_spec(document, {}, runs_dir=folder)
    with RunProgress() as progress:
        started = time.perf_counter()
        runs, _ = Runner(plan, progress).run()
        seconds = time.perf_counter() - started
    return seconds, sum(run.metrics.n for run in runs)


def run_dspy(endpoint: str, model: str, validation: int, candidates: int) -> tuple[float, int]:
    """Seconds, and replies of the model."""
    calls = 0

    def examples(split: str, limit: int) -> list[dspy.Example]:
        found = load_exam_set(DatasetSpec(name="headqa_v1", language="en", split=split, limit=limit, seed=2))
        return [
            dspy.Example(question=one.printed, answer=found.key[one.key].number).with_inputs("question")
            for one in found.questions
        ]

    def is_right(example: Any, said: Any, _: Any = None) -> bool:
        nonlocal calls
        calls += 1
        return bool(said.answer == example.answer)

    lm = dspy.LM(f"openai/{model}", api_base=endpoint, api_key=KEY, temperature=0.0, max_tokens=64, cache=False)
    program = dspy.Predict(dspy.Signature("question: str -> answer: int", "Answer with the number of one option."))
    with dspy.context(lm=lm, disable_history=True), contextlib.redirect_stdout(io.StringIO()):
        optimizer = BootstrapFewShotWithRandomSearch(
            metric=is_right,
            max_bootstrapped_demos=DEMOS,
            max_labeled_demos=DEMOS,
            num_candidate_programs=candidates,
            num_threads=THREADS,
            max_errors=10**6,
        )
        started = time.perf_counter()
        optimizer.compile(
            program,
            trainset=examples("train", ATTEMPTS),
            valset=examples("dev", validation),
            restrict=list(range(-3, candidates - 3)),
        )
        return time.perf_counter() - started, calls


def main(endpoint: str, validation: int, candidates: int, *, without_dspy: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tried = run_optimize(endpoint, validation, candidates, Path(folder))
        plain_s, plain_calls = run_plain(endpoint, validation, tried, Path(folder))
        engine = json.loads(next(Path(folder).glob("plain*/environment.json")).read_text())["engine"]
    seconds, calls = (
        {"optimize": tried.seconds, "run": round(plain_s, 1)},
        {"optimize": tried.calls, "run": plain_calls},
    )
    if not without_dspy:
        dspy_s, calls["dspy"] = run_dspy(endpoint, engine["model"], validation, candidates)
        seconds["dspy"] = round(dspy_s, 1)
    document = {
        "validation": validation,
        "candidates": candidates,
        "demonstrations": DEMOS,
        "seconds": seconds,
        "calls": calls,
        "bootstrapping_calls": tried.calls - sum(trial.calls for trial in tried.trials),
        "seconds_a_call_to_run": round((tried.seconds / tried.calls) / (plain_s / plain_calls), 3),
        "seconds_to_dspy": round(tried.seconds / seconds["dspy"], 3) if "dspy" in seconds else None,
        "server": engine["server_version"],
        "dspy_version": version("dspy"),
    }
    json.dump(document, sys.stdout, indent=2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("endpoint")
    parser.add_argument("--validation", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument(
        "--without-dspy", action="store_true", help="leave out the peer, which takes several times as long"
    )
    options = parser.parse_args()
    main(options.endpoint, options.validation, options.candidates, without_dspy=options.without_dspy)
