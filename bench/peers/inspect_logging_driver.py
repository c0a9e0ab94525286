"""Answers questions with inspect-ai's `multiple_choice` and logs its samples; run by the interpreter that has it.

    SERVER_API_KEY=EMPTY python inspect_logging_driver.py ROWS ENDPOINT --model NAME --log-dir LOGS --connections 16

`ROWS` holds one JSON object a line with `key`, `question`, `options` and `answer`, the right option's letter.
"""

import argparse
import json
from pathlib import Path

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice


def read_samples(file: Path) -> list[Sample]:
    """The questions as samples, under their keys."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [Sample(id=row["key"], input=row["question"], choices=row["options"], target=row["answer"]) for row in rows]


def main() -> None:
    """Ask, and write the log."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("endpoint")
    parser.add_argument("--model", required=True)
    parser.add_argument("--log-dir", required=True)
    parser.add_argument("--connections", type=int, required=True)
    arguments = parser.parse_args()
    task = inspect_ai.Task(
        name="medexam_letters",
        dataset=MemoryDataset(read_samples(arguments.rows), name=arguments.rows.stem),
        solver=multiple_choice(),
        scorer=choice(),
    )
    (log,) = inspect_ai.eval(
        task,
        model=f"openai-api/server/{arguments.model}",
        model_base_url=arguments.endpoint,
        max_connections=arguments.connections,
        max_tokens=64,
        temperature=0.0,
        display="plain",
        log_dir=arguments.log_dir,
    )
    if log.status != "success":
        raise SystemExit(f"inspect-ai ended with status {log.status}: {log.error}")


if __name__ == "__main__":
    main()
