"""What Ray costs beside the same clients started by hand, and how busy one client keeps eight servers.

    python bench/distributed.py ray --rounds 3
    python bench/distributed.py servers --rate 19 --rate 180

`ray` asks the same questions twice: by `medexam run --executor ray` with two workers, and by two `medexam run` that are
started side by side, each with one half. All ask one server of `instant_server.py`, which takes its time and serves so
many questions a second, so that neither side is bound by this machine's processors. Times are those of the asking
alone, from the first question begun to the last answer, and those of the whole commands.

`servers` starts eight such servers and one `medexam run` that asks them all; the share is what was answered a second of
what they could have served. `--rate` is questions a second of one server. The defaults stand for Llama-3.1-8B on one
H200 each: 19 where a reply has 300 tokens, of 5,777 tokens a second on an H100 (Red Hat's MLPerf Inference 5.1 result
with vLLM 0.10, FP8), and 180 where a guided answer is one token behind a prompt of 170, of 989 TFLOP/s in bfloat16 half
used at 16 GFLOP a token; an H200 is taken to be no slower than an H100. Where a client cannot keep them busy,
`--clients` starts more, each with its share of the questions. Prints one JSON document; run it on an idle machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client_capacity import Server, read_source, say, write_workload

SERVER = Path(__file__).with_name("instant_server.py")
MEDEXAM = str(Path(sys.executable).with_name("medexam"))
SERVERS = 8
DELAY_MS = 50.0
"""What a request takes beside its turn."""


@dataclass(frozen=True)
class Took:
    """What one side took for all questions."""

    whole_s: float
    """From the start of the commands to their end."""
    asking_s: float
    """From the first question begun to the last answer on the disk."""
    questions: int


@contextmanager
def serving(rate: float | None) -> Iterator[Server]:
    """A server in a process of its own that serves `rate` questions a second; None: as many as it can."""
    limit = [f"--rate={rate}"] if rate else []
    command = [sys.executable, str(SERVER), "--port=0", f"--delay-ms={DELAY_MS}", *limit]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Server(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()


def run_side(specs: Sequence[dict[str, Any]], scratch: Path, extra: Sequence[str] = ()) -> Took:
    """Run each spec in a process and folder of its own, all at once."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folders = [Path(name) / str(number) for number in range(len(specs))]
        running = []
        begun = time.time()
        for folder, spec in zip(folders, specs, strict=True):
            folder.mkdir()
            (folder / "spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
            command = [MEDEXAM, "run", "--json", "--runs-dir", str(folder / "runs"), *extra, str(folder / "spec.yaml")]
            with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
                running.append(subprocess.Popen(command, stdout=out, stderr=err, cwd=folder))
        for folder, process in zip(folders, running, strict=True):
            if process.wait():
                raise RuntimeError((folder / "stderr").read_text(encoding="utf-8")[-2000:])
        whole_s = time.time() - begun
        spans, questions = [], 0
        for folder in folders:
            (run,) = json.loads((folder / "stdout").read_text(encoding="utf-8"))
            questions += run["metrics"]["n"]
            environment = json.loads((Path(run["run_dir"]) / "environment.json").read_text(encoding="utf-8"))
            end = (Path(run["run_dir"]) / "predictions.jsonl").stat().st_mtime
            spans.append((end - environment["asked_s"], end))
    return Took(whole_s, max(end for _, end in spans) - min(start for start, _ in spans), questions)


def make_spec(exams: Path, endpoints: Sequence[str]) -> dict[str, Any]:
    """Zero-shot questions with guided answers."""
    return {
        "name": "distributed",
        "dataset": {"name": "headqa_v1", "language": "en", "path": str(exams)},
        "model": {"engine": "vllm", "endpoints": list(endpoints)},
        "program": {"kind": "zero_shot", "answer_format": "guided"},
    }


def write_parts(data: Path, number: int, parts: int, scratch: Path) -> list[Path]:
    """Files of exams that share `number` questions."""
    whole = json.loads(write_workload(read_source(data), number, scratch).exams.read_text(encoding="utf-8"))
    files = []
    for part in range(parts):
        exams = {
            name: {**exam, "data": exam["data"][part::parts]} for name, exam in whole["exams"].items() if exam["data"]
        }
        filled = {name: exam for name, exam in exams.items() if exam["data"]}
        files.append(scratch / f"part-{part}-of-{parts}-of-{number}.json")
        files[-1].write_text(json.dumps({**whole, "exams": filled}), encoding="utf-8")
    return files


def compare_ray(arguments: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """The document of `ray`."""
    number = arguments.questions
    (whole,) = write_parts(arguments.data, number, 1, scratch)
    halves = write_parts(arguments.data, number, 2, scratch)
    sides: dict[str, list[Took]] = {"ray": [], "by_hand": []}
    with serving(arguments.rate[0] if arguments.rate else 200.0) as server:
        for turn in range(arguments.rounds):
            for side in ("ray", "by_hand") if turn % 2 == 0 else ("by_hand", "ray"):
                if side == "ray":
                    extra = ["--executor", "ray", "--workers", "2"]
                    took = run_side([make_spec(whole, [server.endpoint])], scratch, extra)
                else:
                    took = run_side([make_spec(half, [server.endpoint]) for half in halves], scratch)
                if took.questions != number:
                    raise RuntimeError(f"{side} answered {took.questions} of {number} questions")
                say(f"round {turn + 1}, {side}: asking {took.asking_s:.1f} s, in all {took.whole_s:.1f} s")
                sides[side].append(took)
    medians = {
        side: {
            "asking_s": round(statistics.median(one.asking_s for one in rounds), 2),
            "whole_s": round(statistics.median(one.whole_s for one in rounds), 2),
        }
        for side, rounds in sides.items()
    }
    ratios = {what: round(medians["ray"][what] / medians["by_hand"][what], 3) for what in ("asking_s", "whole_s")}
    return {"questions": number, "rounds": arguments.rounds, "medians": medians, "ray_to_by_hand": ratios}


def keep_busy(arguments: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """The document of `servers`."""
    found = []
    for rate in arguments.rate or [19.0, 180.0]:
        for clients in arguments.clients:
            with ExitStack() as stack:
                servers = [stack.enter_context(serving(rate)) for _ in range(SERVERS)]
                endpoints = [server.endpoint for server in servers]
                number = round(min(arguments.questions, SERVERS * rate * arguments.seconds))
                files = write_parts(arguments.data, number, clients, scratch)
                took = run_side([make_spec(file, endpoints) for file in files], scratch)
                cpu_s = sum(server.cpu_s() for server in servers)
            served = took.questions / took.asking_s
            row = {
                "questions_per_s_of_a_server": rate,
                "clients": clients,
                "questions": took.questions,
                "questions_per_s": round(served, 1),
                "busy": round(served / (SERVERS * rate), 3),
                "cores_of_all_servers": round(cpu_s / took.whole_s, 2),
            }
            say(json.dumps(row))
            found.append(row)
    return {"servers": SERVERS, "delay_ms": DELAY_MS, "found": found}


def main() -> None:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data", type=Path, default=Path(os.environ.get("MEDEXAM_DATA", ".")))
    shared.add_argument("--rate", type=float, action="append", help="questions a second of one server")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    ray = parts.add_parser("ray", parents=[shared])
    ray.add_argument("--questions", type=int, default=2000)
    ray.add_argument("--rounds", type=int, default=3)
    servers = parts.add_parser("servers", parents=[shared])
    servers.add_argument("--questions", type=int, default=12_000, help="at most")
    servers.add_argument("--seconds", type=float, default=30.0, help="how long the servers would take at least")
    servers.add_argument("--clients", type=int, nargs="+", default=[1])
    arguments = parser.parse_args()
    load_average = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory(prefix="medexam-distributed-") as scratch:
        report = {"ray": compare_ray, "servers": keep_busy}[arguments.part](arguments, Path(scratch))
    print(json.dumps({"part": arguments.part, "load_average": load_average, **report}, indent=1))


if __name__ == "__main__":
    main()
