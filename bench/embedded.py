"""The embedded engine on SmolLM2 beside plain transformers, one prompt at a time. Prints one JSON document.

    python bench/embedded.py --questions 48 --rounds 3

The requests are those of the real programs on the shipped sample, recorded by the scripted engine. Both sides answer
the same requests in alternating rounds in one process; the best round of each counts, since whatever else runs on the
machine can only slow a round. `agree` is the share of replies that are the same word for word.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dspy
import torch

from medexam.datasets import load_exam_set
from medexam.model_calls import Dialogue
from medexam.programs import EngineLM, build_program
from medexam.serve import EmbeddedEngine, LocalModel, ScriptedEngine
from medexam.specs import DatasetSpec, ModelSpec, build_cells

PROGRAMS = {
    "zero_shot_guided": {"kind": "zero_shot", "answer_format": "guided"},
    "few_shot_guided": {"kind": "few_shot", "answer_format": "guided"},
    "zero_shot_free": {"kind": "zero_shot", "max_tokens": 24},
}


def record_requests(program: Mapping[str, Any], number: int) -> list[Dialogue]:
    """What a program asks of the first questions of the sample."""
    script = ScriptedEngine({"*": "{Answer: 1}"})
    lm = EngineLM(script, "medexam/scripted", temperature=0.0, max_tokens=None)
    (cell,) = build_cells({"name": "bench", "dataset": "headqa_sample", "program": program}, {})[1]
    asking = build_program(cell.program, "en")
    with dspy.context(lm=lm):
        for question in load_exam_set(DatasetSpec(name="headqa_sample", language="en")).questions[:number]:
            asking(question=question)
    return script.dialogues


def ask_engine(engine: EmbeddedEngine, dialogues: Sequence[Dialogue]) -> tuple[float, list[str]]:
    async def ask_all() -> list[str]:
        replies = await asyncio.gather(*(engine.reply(dialogue) for dialogue in dialogues))
        return [generation.words for generation in replies]

    begun = time.perf_counter()
    replies = asyncio.run(ask_all())
    return time.perf_counter() - begun, replies


def ask_plainly(local: LocalModel, dialogues: Sequence[Dialogue]) -> tuple[float, list[str]]:
    """transformers as its manual shows it: render, tokenise, run, for each prompt by itself."""
    begun = time.perf_counter()
    replies = []
    for dialogue in dialogues:
        turns = dialogue.messages
        text = local.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        text += dialogue.opening
        inputs = local.tokenizer(text, return_tensors="pt", add_special_tokens=False)
        choices = dialogue.choices
        with torch.inference_mode():
            if choices:
                logits = local.model(**inputs).logits[0, -1]
                tokens = [local.tokenizer.convert_tokens_to_ids(choice.strip()) for choice in choices]
                replies.append(choices[int(logits[tokens].argmax())])
            else:
                options = {"max_new_tokens": dialogue.sampling["max_tokens"], "eos_token_id": 2, "pad_token_id": 2}
                written = local.model.generate(**inputs, **options)[0, inputs["input_ids"].shape[1] :]
                replies.append(local.tokenizer.decode(written, skip_special_tokens=True))
    return time.perf_counter() - begun, replies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    asked = parser.parse_args()
    spec = ModelSpec()
    engine = EmbeddedEngine(spec)
    local = LocalModel(spec)
    report: dict[str, object] = {"threads": torch.get_num_threads(), **engine.info().details}
    for name in asked.programs:
        requests = record_requests(PROGRAMS[name], asked.questions)
        best = {"engine": float("inf"), "plain": float("inf")}
        for _ in range(asked.rounds):
            engine_s, replies = ask_engine(engine, requests)
            plain_s, expected = ask_plainly(local, requests)
            for side, spent in zip(best, (engine_s, plain_s), strict=True):
                best[side] = min(best[side], spent)
        report[name] = {
            **{f"{side}_per_s": round(len(requests) / spent, 2) for side, spent in best.items()},
            "ratio": round(best["plain"] / best["engine"], 2),
            "agree": sum(a == b for a, b in zip(replies, expected, strict=True)) / len(requests),
            "questions": len(requests),
        }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
