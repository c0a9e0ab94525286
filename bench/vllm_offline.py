"""What HTTP costs: the same guided requests to vLLM's server and to its engine behind one pipe, alternately.

    python bench/vllm_offline.py http://127.0.0.1:8000/v1 --pid PID_OF_SERVE --options "--model FOLDER ..."

`http` sends ready requests of 32 prompts to the server. `pipe` writes all of them as one line to a child that runs
vLLM's engine under `MEDEXAM_VLLM_PYTHON` with the options of the server, which `medexam serve MODEL --print` shows.
Whoever does not answer is idle. Prints one JSON document: questions a second of each side (the median round), the
milliseconds that processors worked for one question (the server's processes and those of the child; `--pid` is that of
`medexam serve`), and the ratio of both, pipe to HTTP, which other work on the machine disturbs less in the latter.
"""

import argparse
import asyncio
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from self_consistency import worked
from vllm_speed import Asked, make_bodies, make_questions, marked, run_plain

from medexam.serve import build_engine
from medexam.specs import EngineNeeds, ModelSpec

DRIVER = Path(__file__).parent / "peers" / "offline_driver.py"


@contextmanager
def offline_engine(options: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """The child, once it can answer."""
    command = [os.environ["MEDEXAM_VLLM_PYTHON"], str(DRIVER), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if child.stdout.readline() != "ready\n":
            raise RuntimeError(f"{' '.join(command)} ended with status {child.wait()}")
        yield child
        child.stdin.close()


async def run_pipe(engine: Any, asked: list[Asked], child: Any) -> tuple[float, int]:
    bodies = await make_bodies(engine, asked)

    def exchange() -> tuple[float, list[list[str]]]:
        started = time.perf_counter()
        child.stdin.write(json.dumps([body for body, _ in bodies]) + "\n")
        child.stdin.flush()
        texts = json.loads(child.stdout.readline())
        return time.perf_counter() - started, texts

    seconds, texts = await asyncio.to_thread(exchange)
    legal = sum(text.strip() in choices for (_, choices), of in zip(bodies, texts, strict=True) for text in of)
    return len(asked) / seconds, legal


def ratio(found: dict[str, list[float]]) -> float:
    """Pipe to HTTP, the median round."""
    return round(statistics.median(pipe / http for pipe, http in zip(found["pipe"], found["http"], strict=True)), 3)


async def main(endpoint: str, number: int, rounds: int, options: list[str], server: int) -> None:
    engine = await build_engine(ModelSpec(engine="vllm", endpoints=(endpoint,)), EngineNeeds(guided=True))
    address, asked = engine.info().endpoints[0], make_questions(number)
    speeds: dict[str, list[float]] = {"http": [], "pipe": []}
    worked_ms: dict[str, list[float]] = {"http": [], "pipe": []}
    legal = {"http": 0, "pipe": 0}
    with offline_engine(options) as child:
        for turn in range(-1, rounds):
            for name in ("http", "pipe") if turn % 2 == 0 else ("pipe", "http"):
                pid = server if name == "http" else child.pid
                questions, before = marked(asked, f"{name} {turn} {time.time_ns()}"), worked(pid)
                if name == "http":
                    speed, good = await run_plain(engine, questions, address)
                else:
                    speed, good = await run_pipe(engine, questions, child)
                if turn >= 0:  # the round before warms both up
                    speeds[name].append(speed)
                    worked_ms[name].append(1000 * (worked(pid) - before) / number)
                    legal[name] += good
                    print(f"round {turn + 1}: {name} {speed:.2f} questions/s", file=sys.stderr)
    await engine.aclose()
    document = {
        "questions": number,
        "rounds": rounds,
        "questions_per_s": {name: round(statistics.median(found), 2) for name, found in speeds.items()},
        "each_round": {name: [round(speed, 2) for speed in found] for name, found in speeds.items()},
        "processor_ms_a_question": {name: [round(ms, 1) for ms in found] for name, found in worked_ms.items()},
        "ratio": ratio(speeds),
        "ratio_of_processor_ms": ratio(worked_ms),
        "legal_answers": legal,
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("endpoint")
    parser.add_argument("--questions", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--options", type=shlex.split, required=True, help="of vLLM, as one word")
    parser.add_argument("--pid", type=int, required=True, help="process of `medexam serve`")
    given = parser.parse_args()
    asyncio.run(main(given.endpoint, given.questions, given.rounds, given.options, given.pid))
