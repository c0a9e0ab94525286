"""Answers questions with stock DSPy: its own adapter, its own client, `dspy.Evaluate`. A process for one pass.

    python dspy_driver.py ROWS ENDPOINT --mode evaluate --engine auto --in-flight 16

`ROWS` holds one JSON object a line with `instructions`, `question` and `gold`. DSPy's caches and history are off, as
bulk runs want them. `evaluate` runs `dspy.Evaluate` with so many threads; `gather` awaits `acall`, so many at a time,
which is what DSPy's documentation names for high throughput. Prints one JSON object.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy


def read_examples(file: Path) -> tuple[str, list[Any]]:
    """The instructions and the questions."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    examples = [dspy.Example(question=row["question"], gold=row["gold"]).with_inputs("question") for row in rows]
    return rows[0]["instructions"], examples


def is_right(example: Any, prediction: Any) -> bool:
    return bool(prediction.answer == example.gold)


async def gather(program: Any, examples: Sequence[Any], in_flight: int) -> list[tuple[Any, Any, bool]]:
    places = asyncio.Semaphore(in_flight)

    async def one(example: Any) -> tuple[Any, Any, bool]:
        async with places:
            prediction = await program.acall(**example.inputs())
        return example, prediction, is_right(example, prediction)

    return await asyncio.gather(*(one(example) for example in examples))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("endpoint")
    parser.add_argument("--mode", choices=["evaluate", "gather"], required=True)
    parser.add_argument("--engine", choices=["auto", "lm15", "litellm"], required=True)
    parser.add_argument("--in-flight", type=int, required=True)
    arguments = parser.parse_args()
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    lm = dspy.LM(
        "openai/smollm2",
        api_base=arguments.endpoint,
        api_key="EMPTY",
        engine=arguments.engine,
        temperature=0.0,
        max_tokens=64,
        cache=False,
    )
    dspy.configure(lm=lm, disable_history=True, async_max_workers=arguments.in_flight)
    instructions, examples = read_examples(arguments.rows)
    program = dspy.Predict(dspy.Signature("question: str -> answer: int", instructions))
    if arguments.mode == "gather":
        results = asyncio.run(gather(program, examples, arguments.in_flight))
    else:
        evaluate = dspy.Evaluate(devset=examples, metric=is_right, num_threads=arguments.in_flight, max_errors=1)
        results = evaluate(program).results
    answered = sum(isinstance(prediction.answer, int) for _, prediction, _ in results)
    print(json.dumps({"answered": answered, "right": sum(right for *_, right in results)}))


if __name__ == "__main__":
    main()
