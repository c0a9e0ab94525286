"""Answers questions with lm-evaluation-harness; run by the interpreter that has it, which need not have medexam.

Reads one JSON object a line on standard input and writes one a line on standard output. A line in:

    {"model": "hf", "model_args": {...}, "task_folder": "...", "task": "...", "threads": 2}

Its line out: `load_s` (0 where the model of the line before serves again), `answering_s`, the time inside the model's
`loglikelihood` alone, `evaluating_s`, that of the whole evaluation, and per document, in the order of the task's file,
the summed log-probability of each choice in nats. Each new model first answers two documents untimed.
"""

import importlib.metadata
import json
import os
import sys
import time
from typing import Any

import lm_eval
import torch
from lm_eval.api.registry import get_model
from lm_eval.tasks import TaskManager

WARM_UP = 2
"""Documents."""


class Answerer:
    """The last model that was asked for, and the time it spends."""

    def __init__(self) -> None:
        self._asked: tuple[str, str] | None = None
        self._model: Any = None
        self._spent: list[float] = []

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What one line asks for."""
        torch.set_num_threads(asked["threads"])
        load_s = self._load(asked["model"], asked["model_args"])
        tasks = TaskManager(include_path=asked["task_folder"], include_defaults=False)
        if load_s:
            self._evaluate(asked["task"], tasks, limit=WARM_UP)
        self._spent.clear()
        begun = time.perf_counter()
        results = self._evaluate(asked["task"], tasks, limit=None)
        evaluating_s = time.perf_counter() - begun
        samples = sorted(results["samples"][asked["task"]], key=lambda sample: sample["doc_id"])
        return {
            "load_s": load_s,
            "answering_s": sum(self._spent),
            "evaluating_s": evaluating_s,
            "keys": [sample["doc"]["key"] for sample in samples],
            "logprobs": [[float(logprob) for logprob, _ in sample["filtered_resps"]] for sample in samples],
            "acc": sum(sample["acc"] for sample in samples) / len(samples),
            "acc_norm": sum(sample["acc_norm"] for sample in samples) / len(samples),
        }

    def _load(self, name: str, model_args: dict[str, Any]) -> float:
        asked = (name, json.dumps(model_args, sort_keys=True))
        if asked == self._asked:
            return 0.0
        begun = time.perf_counter()
        self._model = get_model(name).create_from_arg_obj(model_args)
        self._asked = asked
        plain = self._model.loglikelihood

        def timed(requests: list[Any]) -> list[tuple[float, bool]]:
            started = time.perf_counter()
            answers: list[tuple[float, bool]] = plain(requests, disable_tqdm=True)
            self._spent.append(time.perf_counter() - started)
            return answers

        self._model.loglikelihood = timed
        return time.perf_counter() - begun

    def _evaluate(self, task: str, tasks: TaskManager, limit: int | None) -> dict[str, Any]:
        results: dict[str, Any] = lm_eval.simple_evaluate(
            model=self._model, tasks=[task], task_manager=tasks, limit=limit, bootstrap_iters=0, log_samples=True
        )
        return results


def main() -> None:
    # Libraries print as they like; only answers go where the parent reads.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    versions = {name: importlib.metadata.version(name) for name in ("lm-eval", "torch", "transformers")}
    replies.write(json.dumps({"versions": versions}) + "\n")
    answerer = Answerer()
    for line in sys.stdin:
        replies.write(json.dumps(answerer.answer(json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
