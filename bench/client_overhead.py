"""How busy the vLLM engine keeps a live server, beside a plain aiohttp loop that sends the same requests.

    python bench/client_overhead.py http://127.0.0.1:8000/v1 --questions 240 --rounds 3

Both ask the same guided questions with the same body, the same prompts a request and the same number of questions in
flight; rounds alternate, and each round's questions open with words of their own, so that neither side profits from
what the other left in the server's prefix cache. The engine is called through `dspy.LM`, as the programs call it.
Prints one JSON document: questions per second of each side (the median round) and their ratio.
"""

import argparse
import asyncio
import json
import statistics
import time
from dataclasses import dataclass, replace

import aiohttp
import dspy
from dspy.lm15 import Config, Message, Request

from medexam.datasets import load_exam_set
from medexam.serve.contract import CHOICE, Engine
from medexam.serve.hosted import build_hosted_engine
from medexam.signatures import render_question
from medexam.specs.dataset import DatasetSpec
from medexam.specs.model import ModelSpec

SYSTEM = "You are an expert in the Spanish residency exams. Answer as {Answer: n}, with the number of one option."
PROMPTS = 32


@dataclass(frozen=True)
class Asked:
    request: Request
    choices: tuple[str, ...]


def make_questions(number: int) -> list[Asked]:
    questions = load_exam_set(DatasetSpec(name="headqa_sample", language="en")).questions
    asked = []
    for place in range(number):
        question = questions[place % len(questions)]
        choices = tuple(str(option.number) for option in question.options)
        text = render_question(question) if place < len(questions) else f"({place}) {render_question(question)}"
        config = Config(temperature=0.0, max_tokens=8, extensions={CHOICE: list(choices)})
        messages = (Message.user(text), Message.assistant("{Answer: "))
        asked.append(Asked(Request(model="served", system=SYSTEM, messages=messages, config=config), choices))
    return asked


def marked(asked: list[Asked], mark: str) -> list[Asked]:
    """The same questions, each with a system turn of this round."""
    return [replace(one, request=replace(one.request, system=f"[{mark}] {SYSTEM}")) for one in asked]


async def run_engine(engine: Engine, asked: list[Asked]) -> tuple[float, int]:
    lm = dspy.LM("served", engine=engine.sync, async_engine=engine, cache=False, num_retries=0)
    places = asyncio.Semaphore(engine.concurrency)

    async def one(question: Asked) -> bool:
        async with places:
            reply = await lm.acall(request=question.request)
            return reply.text in question.choices

    started = time.perf_counter()
    legal = await asyncio.gather(*(one(question) for question in asked))
    return len(asked) / (time.perf_counter() - started), sum(legal)


async def run_plain(engine: Engine, asked: list[Asked], endpoint: str) -> tuple[float, int]:
    """The same bodies, rendered before the clock starts, `PROMPTS` at a time."""
    remote = engine._remote  # type: ignore[attr-defined]
    groups: dict[tuple[str, ...], list[tuple[str, Asked]]] = {}
    for question in asked:
        turns = [
            {"role": "system", "content": question.request.system},
            {"role": "user", "content": question.request.messages[0].text},
        ]
        prompt = await remote.renderer.render(turns) + "{Answer: "
        groups.setdefault(question.choices, []).append((prompt, question))
    bodies = []
    for choices, group in groups.items():
        ids = await remote._tokens.find(group[0][0], "{Answer: ", choices)
        for start in range(0, len(group), PROMPTS):
            prompts = [prompt for prompt, _ in group[start : start + PROMPTS]]
            body = {
                "model": remote.model,
                "prompt": prompts,
                "temperature": 0.0,
                "max_tokens": 1,
                "allowed_token_ids": list(ids),
                "add_special_tokens": False,
                "return_token_ids": True,
            }
            bodies.append((body, choices))
    places = asyncio.Semaphore(max(engine.concurrency // PROMPTS, 1))

    async def send(session: aiohttp.ClientSession, body: dict[str, object], choices: tuple[str, ...]) -> int:
        async with places, session.post(f"{endpoint}/completions", json=body) as reply:
            return sum(choice["text"].strip() in choices for choice in (await reply.json())["choices"])

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=600)) as session:
        started = time.perf_counter()
        legal = await asyncio.gather(*(send(session, *body) for body in bodies))
        return len(asked) / (time.perf_counter() - started), sum(legal)


async def main(endpoint: str, number: int, rounds: int) -> None:
    engine = await build_hosted_engine(ModelSpec(engine="vllm", endpoints=(endpoint,)), guided=True)
    address = engine.info().endpoints[0]
    asked = make_questions(number)
    dspy.configure(disable_history=True)
    await run_engine(engine, marked(asked[:PROMPTS], "warm-up"))
    speeds: dict[str, list[float]] = {"engine": [], "plain": []}
    legal = 0
    for turn in range(rounds):
        for side in ("engine", "plain") if turn % 2 == 0 else ("plain", "engine"):
            questions = marked(asked, f"{side} {turn} {time.time_ns()}")
            if side == "engine":
                speed, good = await run_engine(engine, questions)
            else:
                speed, good = await run_plain(engine, questions, address)
            speeds[side].append(speed)
            legal += good
    await engine.aclose()
    engine_speed, plain_speed = statistics.median(speeds["engine"]), statistics.median(speeds["plain"])
    document = {
        "questions": number,
        "rounds": rounds,
        "engine_questions_per_s": round(engine_speed, 2),
        "plain_aiohttp_questions_per_s": round(plain_speed, 2),
        "ratio": round(engine_speed / plain_speed, 3),
        "each_round": {side: [round(speed, 2) for speed in values] for side, values in speeds.items()},
        "legal_answers": legal,
        "asked": number * rounds * 2,
        "server": engine.info().server_version,
        "guided_by": engine.info().guided_by,
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("endpoint")
    parser.add_argument("--questions", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.endpoint, arguments.questions, arguments.rounds))
