"""Answers questions with lm-evaluation-harness's `local-completions`; run by the interpreter that has it, for one pass.

    python lm_eval_capacity_driver.py TASK_FOLDER --task capacity --model-args '{...}' --batch-size 32

Samples are neither kept nor written, nothing is bootstrapped, and the harness's own tasks are not looked through, which
is the least that it can be told to do. Prints one JSON object.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import lm_eval
from lm_eval.tasks import TaskManager


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("task_folder", type=Path)
    parser.add_argument("--task", required=True)
    parser.add_argument("--model-args", type=json.loads, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    arguments = parser.parse_args()
    # Libraries print as they like; only the answer goes where the parent reads.
    reply = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    results = lm_eval.simple_evaluate(
        model="local-completions",
        model_args=arguments.model_args,
        batch_size=arguments.batch_size,
        tasks=[arguments.task],
        task_manager=TaskManager(include_path=str(arguments.task_folder), include_defaults=False),
        bootstrap_iters=0,
        log_samples=False,
    )
    reply.write(json.dumps({"answered": results["n-samples"][arguments.task]["effective"]}) + "\n")
    reply.close()


if __name__ == "__main__":
    main()
