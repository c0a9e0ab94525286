"""Guided answers from a live vLLM server: medexam's engine beside other ways to ask the same of the same server.

    python bench/vllm_speed.py http://127.0.0.1:8000/v1 --questions 240 --rounds 3

- `engine`: medexam's engine through `dspy.LM`, as the programs call it;
- `plain`: an aiohttp loop that sends the same requests, rendered before the clock starts, as many at once;
- `grammar`: an aiohttp loop that asks the chat endpoint, a question a request and all at once, held to the answer's
  form by a regular expression, which is what a client without the template's text can do;
- `dspy`: stock DSPy, `dspy.Evaluate` with 16 threads, its own adapter and client.

Rounds alternate, and each round's questions open with words of their own, so that no side profits from what another
left in the server's prefix cache. Prints one JSON document: questions a second of each side (the median round) and the
ratios of the engine's to each.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import aiohttp
import dspy
from dspy.lm15 import Config, Message, Request

from medexam.datasets import load_exam_set
from medexam.dspy_requests import CHOICE
from medexam.model_calls import Dialogue
from medexam.programs import EngineLM
from medexam.serve import Engine, build_engine
from medexam.specs import DatasetSpec, EngineNeeds, ModelSpec

SYSTEM = "You are an expert in the Spanish residency exams. Answer as {Answer: n}, with the number of one option."
KEY = os.environ.get("VLLM_API_KEY", "EMPTY")
HEADERS = {"Authorization": f"Bearer {KEY}"}
PROMPTS = 32
THREADS = 16
PEERS = ["plain", "grammar", "dspy"]


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
        text = question.printed if place < len(questions) else f"({place}) {question.printed}"
        config = Config(temperature=0.0, max_tokens=8, extensions={CHOICE: list(choices)})
        messages = (Message.user(text), Message.assistant("{Answer: "))
        asked.append(Asked(Request(model="served", system=SYSTEM, messages=messages, config=config), choices))
    return asked


def marked(asked: list[Asked], mark: str) -> list[Asked]:
    """The same questions, each with a system turn of this round."""
    return [replace(one, request=replace(one.request, system=f"[{mark}] {SYSTEM}")) for one in asked]


async def run_engine(engine: Engine, asked: list[Asked]) -> tuple[float, int]:
    lm = EngineLM(engine, "served", temperature=None, max_tokens=None)
    places = asyncio.Semaphore(engine.concurrency)

    async def one(question: Asked) -> bool:
        async with places:
            text = question.request.messages[0].text
            turns = [{"role": "system", "content": question.request.system}, {"role": "user", "content": text}]
            sampling = {"temperature": 0.0, "max_tokens": 8}
            reply = await lm.ask(Dialogue(turns, "{Answer: ", sampling, choices=question.choices))
            return reply.text in question.choices

    started = time.perf_counter()
    legal = await asyncio.gather(*(one(question) for question in asked))
    return len(asked) / (time.perf_counter() - started), sum(legal)


Bodies = list[tuple[dict[str, Any], tuple[str, ...]]]
"""Completions requests of `PROMPTS` prompts at most, each with the answers that are legal."""


async def make_bodies(engine: Engine, asked: list[Asked]) -> Bodies:
    """The requests that the engine would send."""
    remote: Any = engine
    groups: dict[tuple[str, ...], list[tuple[str, Asked]]] = {}
    for question in asked:
        turns = [
            {"role": "system", "content": question.request.system},
            {"role": "user", "content": question.request.messages[0].text},
        ]
        prompt = await remote.renderer.render(turns) + "{Answer: "
        groups.setdefault(question.choices, []).append((prompt, question))
    bodies: Bodies = []
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
    return bodies


async def run_plain(engine: Engine, asked: list[Asked], endpoint: str) -> tuple[float, int]:
    """The same bodies, rendered before the clock starts."""
    bodies = await make_bodies(engine, asked)
    places = asyncio.Semaphore(max(engine.concurrency // PROMPTS, 1))

    async def send(session: aiohttp.ClientSession, body: dict[str, Any], choices: tuple[str, ...]) -> int:
        async with places, session.post(f"{endpoint}/completions", json=body) as reply:
            return sum(choice["text"].strip() in choices for choice in (await reply.json())["choices"])

    async with aiohttp.ClientSession(headers=HEADERS, timeout=aiohttp.ClientTimeout(total=600)) as session:
        started = time.perf_counter()
        legal = await asyncio.gather(*(send(session, *body) for body in bodies))
        return len(asked) / (time.perf_counter() - started), sum(legal)


async def run_grammar(endpoint: str, model: str, asked: list[Asked]) -> tuple[float, int]:
    """One chat request a question; the server's queue holds them all."""

    async def send(session: aiohttp.ClientSession, question: Asked) -> bool:
        body = {
            "model": model,
            "messages": [
                {"role": "system", "content": question.request.system},
                {"role": "user", "content": question.request.messages[0].text},
            ],
            "temperature": 0.0,
            "max_tokens": 16,
            "structured_outputs": {"regex": f"\\{{Answer: ({'|'.join(question.choices)})\\}}"},
        }
        async with session.post(f"{endpoint}/chat/completions", json=body) as reply:
            text = (await reply.json())["choices"][0]["message"]["content"]
            return text.removeprefix("{Answer: ").removesuffix("}") in question.choices

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, headers=HEADERS, timeout=aiohttp.ClientTimeout(total=600)
    ) as session:
        started = time.perf_counter()
        legal = await asyncio.gather(*(send(session, question) for question in asked))
        return len(asked) / (time.perf_counter() - started), sum(legal)


def run_dspy(endpoint: str, model: str, asked: list[Asked]) -> tuple[float, int]:
    lm = dspy.LM(f"openai/{model}", api_base=endpoint, api_key=KEY, temperature=0.0, max_tokens=64, cache=False)
    program = dspy.Predict(dspy.Signature("question: str -> answer: int", str(asked[0].request.system)))
    examples = [
        dspy.Example(question=one.request.messages[0].text, choices=one.choices).with_inputs("question")
        for one in asked
    ]

    def is_legal(example: Any, prediction: Any, _: Any = None) -> bool:
        return str(prediction.answer) in example.choices

    evaluate = dspy.Evaluate(devset=examples, metric=is_legal, num_threads=THREADS, max_errors=len(examples) + 1)
    with dspy.context(lm=lm, disable_history=True):
        started = time.perf_counter()
        result = evaluate(program)
        seconds = time.perf_counter() - started
    return len(asked) / seconds, sum(bool(legal) for *_, legal in result.results)


async def main(endpoint: str, number: int, rounds: int, names: list[str]) -> None:
    engine = await build_engine(ModelSpec(engine="vllm", endpoints=(endpoint,)), EngineNeeds(guided=True))
    address = engine.info().endpoints[0]
    asked = make_questions(number)
    model = engine.info().model
    dspy.configure(disable_history=True)
    await run_engine(engine, marked(asked[:PROMPTS], "warm-up"))
    sides: dict[str, Callable[[list[Asked]], Awaitable[tuple[float, int]]]] = {
        "engine": partial(run_engine, engine),
        "plain": partial(run_plain, engine, endpoint=address),
        "grammar": partial(run_grammar, address, model),
        "dspy": partial(asyncio.to_thread, run_dspy, address, model),
    }
    speeds: dict[str, list[float]] = {name: [] for name in names}
    legal = dict.fromkeys(names, 0)
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else names[::-1]:
            speed, good = await sides[name](marked(asked, f"{name} {turn} {time.time_ns()}"))
            speeds[name].append(speed)
            legal[name] += good
    info = engine.info()
    await engine.aclose()
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    document = {
        "questions": number,
        "rounds": rounds,
        "questions_per_s": {name: round(speed, 2) for name, speed in medians.items()},
        "ratio_to": {name: round(medians["engine"] / speed, 3) for name, speed in medians.items() if name != "engine"},
        "each_round": {name: [round(speed, 2) for speed in values] for name, values in speeds.items()},
        "legal_answers": legal,
        "asked_each": number * rounds,
        "server": info.server_version,
        "guided_by": info.guided_by,
        "dspy": version("dspy"),
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("endpoint")
    parser.add_argument("--questions", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.endpoint, arguments.questions, arguments.rounds, ["engine", *arguments.peers]))
