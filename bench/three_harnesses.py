"""The same questions through lm-evaluation-harness, Inspect and medexam, with one model on one server.

    python bench/three_harnesses.py http://127.0.0.1:8000/v1 --model NAME --out three
    medexam compare three/runs/* three/lm_eval/*/samples_*.jsonl three/inspect/*.eval --protocol

The server is any that speaks the OpenAI wire, such as `medexam serve`. Each harness asks in its own words: medexam in
those of its `zero_shot`, guided; Inspect by `multiple_choice`; lm-evaluation-harness by a task that asks for a letter
and reads it with a regular expression. Questions are drawn with a fixed seed. The two others run in environments of
their own, which are made in medexam's cache the first time unless `--lm-eval-python` and `--inspect-python` name some.
`$VLLM_API_KEY` is the server's key, if it asks for one. Prints the paired table.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from peers.environments import INSPECT, LM_EVAL, find_python

from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec

DRIVER = Path(__file__).parent / "peers" / "inspect_logging_driver.py"
TASK = "medexam_letters"
LETTERS = "ABCDEFGHIJ"
SEED = 22


def main() -> None:
    """Ask through all three and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("endpoint", help="The server's address, with /v1.")
    parser.add_argument("--model", required=True, help="The name that the server knows the model by.")
    parser.add_argument("--dataset", default="headqa_v1")
    parser.add_argument("--language", default="en")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--in-flight", type=int, default=16, help="Requests at a time of each harness.")
    parser.add_argument("--out", type=Path, default=Path("three"))
    parser.add_argument("--lm-eval-python", type=Path)
    parser.add_argument("--inspect-python", type=Path)
    told = parser.parse_args()
    told.out.mkdir(parents=True, exist_ok=True)
    dataset = {"name": told.dataset, "language": told.language, "limit": told.questions, "seed": SEED}
    rows = told.out / "questions.jsonl"
    rows.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(dataset)), encoding="utf-8")
    _ask_medexam(told, dataset)
    _ask_lm_eval(told, rows)
    _ask_inspect(told, rows)
    files = [*(told.out / "lm_eval").rglob("samples_*.jsonl"), *(told.out / "inspect").glob("*.eval")]
    _medexam("compare", *sorted((told.out / "runs").glob("three-*")), *files, "--protocol", "--runs-dir", told.out)


def _rows(dataset: dict[str, Any]) -> list[dict[str, Any]]:
    items = load_exam_set(DatasetSpec.model_validate(dataset))
    return [
        {
            "key": question.key,
            "question": question.asked,
            "options": [option.text for option in question.options],
            "answer": LETTERS[question.option_numbers.index(items.golds[question.key].number)],
        }
        for question in items.questions
    ]


def _ask_medexam(told: argparse.Namespace, dataset: dict[str, Any]) -> None:
    spec = told.out / "medexam.yaml"
    model = {"engine": "vllm", "name": told.model, "endpoints": [told.endpoint]}
    program = {"kind": "zero_shot", "answer_format": "guided"}
    spec.write_text(yaml.safe_dump({"name": "three", "dataset": dataset, "model": model, "program": program}))
    _medexam("run", spec, "--runs-dir", told.out / "runs")


def _ask_lm_eval(told: argparse.Namespace, rows: Path) -> None:
    shown = "{% for one in options %}{{'" + LETTERS + "'[loop.index0]}}. {{one}}\n{% endfor %}"
    task = {
        "task": TASK,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(rows.resolve())}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}\n" + shown + "Answer with the letter alone.\nAnswer:",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 16, "do_sample": False},
        "filter_list": [
            {
                "name": "letter",
                "filter": [{"function": "regex", "regex_pattern": r"\b([A-J])\b"}, {"function": "take_first"}],
            }
        ],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    tasks = told.out / "lm_eval_task"
    tasks.mkdir(exist_ok=True)
    (tasks / f"{TASK}.yaml").write_text(yaml.safe_dump(task, allow_unicode=True), encoding="utf-8")
    server = {
        "model": told.model,
        "base_url": f"{told.endpoint}/chat/completions",
        "num_concurrent": told.in_flight,
        "tokenized_requests": False,
    }
    python = find_python(LM_EVAL, told.lm_eval_python)
    arguments = ",".join(f"{name}={value}" for name, value in server.items())
    command = [
        *(str(python), "-m", "lm_eval", "--model", "local-chat-completions", "--model_args", arguments),
        *("--tasks", TASK, "--include_path", str(tasks), "--apply_chat_template", "--log_samples"),
        *("--output_path", str(told.out / "lm_eval")),
    ]
    _run(command, OPENAI_API_KEY=os.environ.get("VLLM_API_KEY", "EMPTY"))


def _ask_inspect(told: argparse.Namespace, rows: Path) -> None:
    python = find_python(INSPECT, told.inspect_python)
    command = [str(python), str(DRIVER), str(rows), told.endpoint, "--model", told.model]
    command += ["--log-dir", str(told.out / "inspect"), "--connections", str(told.in_flight)]
    _run(command, SERVER_API_KEY=os.environ.get("VLLM_API_KEY", "EMPTY"))


def _medexam(*arguments: object) -> None:
    _run([sys.executable, "-c", "from medexam.cli import run_command; run_command()", *map(str, arguments)])


def _run(command: list[str], **environment: str) -> None:
    print("+", " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, env={**os.environ, "HF_DATASETS_OFFLINE": "1", **environment})
    if done.returncode:
        sys.exit(f"that ended with {done.returncode}")


if __name__ == "__main__":
    main()
