"""What steps cost a client: programs alone and as a flow's only step, on a model that answers at once.

    python bench/flows.py [--rounds N]

Each round asks the 60 sample questions of both, in turn; printed is the median of the rounds, in questions a second of
the processor.
"""

import argparse
import asyncio
import statistics
import time

from medexam.datasets import load_exam_set
from medexam.programs import build_program
from medexam.programs.base import build_lm, in_bulk
from medexam.serve import ScriptedEngine
from medexam.specs import DatasetSpec, ModelSpec, build_cells
from medexam.specs.programs.programs import FlowSpec

SIGNATURE = "question, options -> answer: int"
REPLY = "[[ ## reasoning ## ]]\nBecause.\n\n[[ ## answer ## ]]\n2\n\n[[ ## completed ## ]]\n{Answer: 2}"
PAIRS = {
    "zero_shot": ({"kind": "zero_shot"}, {"use": "zero_shot"}),
    "chain_of_thought, 5 samples": (
        {"kind": "chain_of_thought", "samples": 5},
        {"use": "chain_of_thought", "samples": 5},
    ),
    "signature": ({"kind": "signature", "signature": SIGNATURE}, {"ask": SIGNATURE}),
    "signature, guided": (
        {"kind": "signature", "signature": SIGNATURE, "answer_format": "guided"},
        {"ask": SIGNATURE, "answer_format": "guided"},
    ),
}
"""Name -> the program alone, and the step that asks the same."""


def main() -> None:
    """Print a line for each pair."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    questions = load_exam_set(DatasetSpec()).questions
    model = ModelSpec(engine="scripted", path="none.yaml", temperature=0.7)
    for name, (alone, step) in PAIRS.items():
        document = {"name": "x", "dataset": {"name": "headqa_sample"}, "model": {"temperature": 0.7}, "program": alone}
        _, (cell,) = build_cells(document, {})
        # Made directly: a spec whose steps are a kind's becomes that kind.
        flow = FlowSpec.model_validate({"name": "flow", "steps": [step]})
        programs = [build_program(spec, "en") for spec in (cell.program, flow)]
        seconds: list[list[float]] = [[], []]
        for _ in range(rounds):
            for times, built in zip(seconds, programs, strict=True):
                start = time.process_time()
                asyncio.run(_ask(built, questions, model))
                times.append(time.process_time() - start)
        rates = [len(questions) / statistics.median(times) for times in seconds]
        print(f"{name}: alone {rates[0]:,.0f}, as a step {rates[1]:,.0f} ({rates[1] / rates[0] - 1:+.0%})")


async def _ask(program, questions, model) -> None:
    with in_bulk(build_lm(model, ScriptedEngine({"*": REPLY}))):
        await asyncio.gather(*(program.acall(question=question) for question in questions))


if __name__ == "__main__":
    main()
