"""lm-evaluation-harness as a peer: an environment of its own, questions as a task of it, and a process that answers.

It runs in another interpreter, since its requirements are not medexam's; torch and transformers are the same versions.
Nothing here reaches a model hub.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from medexam.questions import Question

DRIVER = Path(__file__).with_name("lm_eval_driver.py")

TASK = "medexam_headqa"
# The protocol of the harness's own HEAD-QA tasks, on a local file.
TASK_YAML = """\
task: {task}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{{{qtext}}}}\\nAnswer:"
doc_to_choice: answers
doc_to_target: gold
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
  - metric: acc_norm
    aggregation: mean
    higher_is_better: true
"""


@dataclass(frozen=True)
class PeerPass:
    """The harness's answers to some questions."""

    logprobs: tuple[tuple[float, ...], ...]
    """Row i is question i, column j its j-th option; summed over the option's tokens, nats."""
    acc: float
    """The harness's own figure: share of questions whose likeliest option is right."""
    acc_norm: float
    """Likewise, with each log-probability divided by the option's characters."""
    load_s: float
    """0 where the model was loaded already."""
    answering_s: float
    """Inside the model's `loglikelihood`: tokenising, computing or calling, and reading the probabilities."""
    evaluating_s: float
    """The whole evaluation: also reading the file, building requests and scoring."""

    def answers(self, questions: Sequence[Question], *, per_character: bool = False) -> tuple[int, ...]:
        """The printed number of the option that it takes of each question; the first of those that tie."""
        taken = []
        for question, logprobs in zip(questions, self.logprobs, strict=True):
            sizes = [len(option.text) if per_character else 1 for option in question.options]
            scores = [logprob / size for logprob, size in zip(logprobs, sizes, strict=True)]
            taken.append(question.options[scores.index(max(scores))].number)
        return tuple(taken)


class LMEvalPeer:
    """A process with the harness that answers until it is closed; a context manager.

    Raises `RuntimeError` with the end of its log where it breaks.
    """

    def __init__(self, python: Path, *, threads: int) -> None:
        self.threads = threads
        self._work = tempfile.TemporaryDirectory(prefix="medexam-lm-eval-")
        folder = Path(self._work.name)
        self._log = folder / "driver.log"
        settings = {
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "HF_DATASETS_CACHE": str(folder / "datasets"),
            "OMP_NUM_THREADS": str(threads),
        }
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [str(python), str(DRIVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **settings},
                text=True,
            )
        self._passes = 0
        self.versions: dict[str, str] = self._read()["versions"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._work.cleanup()

    def ask(
        self, model: str, model_args: Mapping[str, Any], questions: Sequence[Question], golds: Sequence[int]
    ) -> PeerPass:
        """Have the harness's model `model` answer `questions`; `golds` are the printed numbers of the right options."""
        assert self._process.stdin is not None
        self._passes += 1
        folder = Path(self._work.name) / f"pass-{self._passes}"
        write_task(folder, questions, golds)
        asked = {
            "model": model,
            "model_args": dict(model_args),
            "task_folder": str(folder),
            "task": TASK,
            "threads": self.threads,
        }
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        reply = self._read()
        keys = reply.pop("keys")
        if keys != [question.key for question in questions]:
            raise RuntimeError("lm-eval answered other questions than it was asked")
        return PeerPass(logprobs=tuple(map(tuple, reply.pop("logprobs"))), **reply)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            end = self._log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"lm-eval ended with status {self._process.wait()}:\n{end}")
        reply: dict[str, Any] = json.loads(line)
        return reply


def write_task(folder: Path, questions: Sequence[Question], golds: Sequence[int]) -> None:
    """A folder with the questions as a task of the harness."""
    folder.mkdir(parents=True)
    rows = [
        {
            "key": question.key,
            "qtext": question.stem,
            "answers": [option.text for option in question.options],
            "gold": question.option_numbers.index(gold),
        }
        for question, gold in zip(questions, golds, strict=True)
    ]
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "task.yaml").write_text(TASK_YAML.format(task=TASK, file=json.dumps(str(file))), encoding="utf-8")
