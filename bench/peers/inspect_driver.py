"""Answers questions with inspect-ai's `multiple_choice`; run by the interpreter that has it. A process for one pass.

    INSTANT_API_KEY=EMPTY python inspect_driver.py ROWS ENDPOINT --log-dir LOGS --connections 64

`ROWS` holds one JSON object a line with `key`, `stem`, `options` and `place`, the right option's. Samples and live logs
are not written and nothing is drawn, which is the least that it can be told to do. Prints one JSON object.
"""

import argparse
import json
from pathlib import Path

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice


def read_samples(file: Path) -> list[Sample]:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        Sample(id=row["key"], input=row["stem"], choices=row["options"], target=chr(ord("A") + row["place"]))
        for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("endpoint")
    parser.add_argument("--log-dir", required=True)
    parser.add_argument("--connections", type=int, required=True)
    arguments = parser.parse_args()
    task = inspect_ai.Task(
        dataset=MemoryDataset(read_samples(arguments.rows)), solver=multiple_choice(), scorer=choice()
    )
    (log,) = inspect_ai.eval(
        task,
        model="openai-api/instant/smollm2",
        model_base_url=arguments.endpoint,
        max_connections=arguments.connections,
        max_samples=arguments.connections,
        max_tokens=64,
        temperature=0.0,
        display="none",
        log_dir=arguments.log_dir,
        log_level="error",
        log_samples=False,
        log_realtime=False,
        score_display=False,
    )
    if log.results is None:
        raise SystemExit(f"inspect-ai ended with status {log.status}: {log.error}")
    print(json.dumps({"answered": log.results.completed_samples}))


if __name__ == "__main__":
    main()
