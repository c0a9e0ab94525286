"""Several replicas of one model on one machine: what they bring together, and what the death of one costs.

    python bench/replicas.py --python PATH_OF_VLLM [--questions 400] [--rounds 3]

Starts two vLLM servers of SmolLM2 on the CPU, each on a core of its own, and answers guided questions with medexam's
engine over one of them and over both, in turns; each round's questions open with words of their own, so that nothing
is left in a prefix cache. Then one of the two is killed halfway through a round. Prints one JSON document: questions a
second of each side (the median round), their ratio, and the seconds that the death cost beyond the work that was left
for one server.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from vllm_speed import make_questions, marked, run_engine

from medexam.serve import ClientAccess, ServerSettings, VLLMServer, build_engine, make_key, plan_server
from medexam.specs import EngineNeeds, ModelSpec

LOAD_S = 900.0


async def rate(addresses: tuple[str, ...], questions: int, mark: str) -> float:
    """Questions a second over these servers."""
    engine = await build_engine(ModelSpec(engine="vllm", endpoints=addresses), EngineNeeds(guided=True))
    try:
        await run_engine(engine, marked(make_questions(16), f"warm {mark}"))
        asked = marked(make_questions(questions), mark)
        speed, legal = await run_engine(engine, asked)
        assert legal == len(asked), f"{len(asked) - legal} questions have no answer"
        return speed
    finally:
        await engine.aclose()


async def rate_of_a_death(addresses: tuple[str, ...], victim: int, questions: int, after_s: float) -> float:
    """Seconds of a round in which one server is killed after so many of them."""

    async def kill() -> None:
        await asyncio.sleep(after_s)
        os.killpg(victim, signal.SIGKILL)

    engine = await build_engine(ModelSpec(engine="vllm", endpoints=addresses), EngineNeeds(guided=True))
    try:
        await run_engine(engine, marked(make_questions(16), "warm death"))
        started = time.perf_counter()
        killing = asyncio.create_task(kill())
        _, legal = await run_engine(engine, marked(make_questions(questions), "death"))
        assert legal == questions, f"{questions - legal} questions have no answer"
        await killing
        return time.perf_counter() - started
    finally:
        await engine.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="the Python that has vLLM")
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ["VLLM_API_KEY"] = key = make_key()
    launches = [plan_server("smollm2-cpu", ServerSettings(python=options.python)) for _ in range(2)]
    logs = Path(tempfile.mkdtemp(prefix="medexam-replicas-"))
    with ExitStack() as stack:
        servers = []
        for launch, core in zip(launches, sorted(os.sched_getaffinity(0)), strict=False):
            bound = replace(launch, environment={**launch.environment, "VLLM_CPU_OMP_THREADS_BIND": str(core)})
            servers.append(stack.enter_context(VLLMServer(bound, logs=logs, access=ClientAccess(key), restarts=0)))
        for server in servers:
            server.wait_healthy()
        addresses = tuple(server.address for server in servers)
        one, both = [], []
        for number in range(options.rounds):
            one.append(asyncio.run(rate(addresses[:1], options.questions, f"one {number}")))
            both.append(asyncio.run(rate(addresses, options.questions, f"both {number}")))
        alone, together = statistics.median(one), statistics.median(both)
        after_s = options.questions / 2 / together
        victim = servers[1].pid
        seconds = asyncio.run(rate_of_a_death(addresses, victim, options.questions, after_s))
        expected = after_s + options.questions / 2 / alone
    death = {"seconds": round(seconds, 1), "without_loss": round(expected, 1), "cost": round(seconds - expected, 1)}
    document = {
        "questions": options.questions,
        "one_replica_per_s": [round(value, 1) for value in one],
        "two_replicas_per_s": [round(value, 1) for value in both],
        "ratio": round(together / alone, 2),
        "death": death,
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
