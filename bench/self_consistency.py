"""What several replies to a question cost beside one, on a live vLLM server with a prefix cache.

    VLLM_SERVER_DEV_MODE=1 VLLM_API_KEY=KEY medexam serve smollm2-cpu --port 8000 -- --dtype float32
    VLLM_API_KEY=KEY python bench/self_consistency.py http://127.0.0.1:8000/v1 --samples 8

Asks 200 questions with `few_shot`, guided and free, once with one reply and once with several. Before
each run the server's prefix cache is emptied, which it allows in its development mode alone. Prints one JSON document:
for each format the seconds of asking (the median round) and their ratio.
With the process of `medexam serve` on the same machine (`--pid`), seconds are those that processors worked for the
server, which other work on the machine changes less.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import psutil

import medexam


def empty_cache(endpoint: str) -> None:
    """Have the server forget every prompt."""
    address = endpoint.removesuffix("/v1") + "/reset_prefix_cache"
    headers = {"Authorization": f"Bearer {os.environ.get('VLLM_API_KEY', 'EMPTY')}"}
    with urllib.request.urlopen(urllib.request.Request(address, method="POST", headers=headers)) as reply:
        if reply.status != 200:
            raise SystemExit(f"{address} answers {reply.status}: start the server with VLLM_SERVER_DEV_MODE=1")


def worked(pid: int | None) -> float:
    """Seconds that the processors worked for a process and all below it so far; 0 without one."""
    if pid is None:
        return 0.0
    top = psutil.Process(pid)
    times = [process.cpu_times() for process in (top, *top.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def ask(asked: argparse.Namespace, form: str, samples: int, runs: Path) -> dict[str, Any]:
    """One run; its seconds of asking and its tokens."""
    spec = {
        "name": "self-consistency",
        "dataset": {"name": asked.dataset, "language": "en", "limit": asked.questions},
        "model": {"engine": "vllm", "endpoints": [asked.endpoint], "temperature": asked.temperature},
        "program": {"kind": "few_shot", "answer_format": form, "samples": samples},
    }
    empty_cache(asked.endpoint)
    before = worked(asked.pid)
    (run,) = medexam.run(spec, runs_dir=runs, progress=False, track=False)
    environment = json.loads((run.folder / "environment.json").read_text())
    return {
        "seconds": environment["asked_s"] if asked.pid is None else round(worked(asked.pid) - before, 2),
        "asked_s": environment["asked_s"],
        "prompt_tokens": run.metrics.prompt_tokens,
        "completion_tokens": run.metrics.completion_tokens,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("endpoint")
    parser.add_argument("--samples", type=int, default=8, help="replies to a question")
    parser.add_argument("--dataset", default="headqa_v1")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--pid", type=int, help="process of `medexam serve`")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.7)
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for form in ("guided", "free"):
            rounds: dict[int, list[dict[str, Any]]] = {1: [], asked.samples: []}
            for number in range(asked.rounds):
                for samples, runs in rounds.items():
                    where = Path(folder) / f"{form}-{samples}-{number}"
                    runs.append(ask(asked, form, samples, where))
                    print(form, samples, runs[-1], file=sys.stderr)
            seconds = {samples: statistics.median(run["seconds"] for run in runs) for samples, runs in rounds.items()}
            found[form] = {
                "seconds": {str(samples): round(took, 2) for samples, took in seconds.items()},
                "ratio": round(seconds[asked.samples] / seconds[1], 2),
                "last_round": {str(samples): runs[-1] for samples, runs in rounds.items()},
            }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
