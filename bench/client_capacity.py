"""How many questions a second each client carries against a server that answers at once.

    python bench/client_capacity.py compare --rounds 3
    python bench/client_capacity.py scale
    python bench/client_capacity.py pair

`compare` measures whole paths, from the questions on disk to the scores, each pass in a fresh process, beside
`instant_server.py` in another: `medexam run` with guided answers, with free ones and with a module of the user's own
(through litellm and by `engine: vllm`), stock DSPy, inspect-ai and lm-evaluation-harness. A side's rate is the marginal
one of two passes, the difference of their questions by that of their times, so that no start-up is in it. Sides
alternate in rounds; the first round tries each side's settings and the others keep the fastest; the rate is the median
round. Peers leave out what they can be told to leave out; medexam writes each prediction, its report and an MLflow run.
`scale` runs medexam on two sizes, guided, and runs the first of them again when there is nothing left to ask. `pair`
runs medexam alone and two of it at once, in processes and folders of their own, against a server that serves fewer
questions a second than one of them could ask: what two get together, from the first question of either to the last, is
compared with what one gets.
Prints one JSON document.

All sides get the same questions of HEAD-QA v1, read from `$MEDEXAM_DATA`; more than there are repeat them under other
numbers and with other stems. `server_cpu_share` is the server's processor time by the wall clock: near 1, the server
was what the client waited for. Memory is the most that a side's process held; the bench's own is its floor
(`floor_mb`), since a process begins as a copy of it. Run it on an idle machine.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.capacity_sides import (
    INSTRUCTIONS,
    DSPySide,
    InspectSide,
    LMEvalSide,
    MedexamSide,
    ModuleSide,
    Settings,
    Side,
    Workload,
    find_tokenizer,
    read_report,
)
from peers.environments import INSPECT, LM_EVAL, find_python

SERVER = Path(__file__).with_name("instant_server.py")
STRIDE = 1000
"""What a repeated question's number grows by; no exam has as many questions."""


@dataclass(frozen=True)
class Pass:
    """One process from its start to its end."""

    questions: int
    wall_s: float
    client_cpu_s: float
    server_cpu_s: float
    peak_mb: float


@dataclass(frozen=True)
class Server:
    """A live instant server."""

    endpoint: str

    def cpu_s(self) -> float:
        """Seconds of processor time so far."""
        with urllib.request.urlopen(f"{self.endpoint.removesuffix('/v1')}/cpu") as reply:
            return float(json.loads(reply.read())["cpu_s"])


@contextmanager
def instant_server(rate: float | None) -> Iterator[Server]:
    """A server in a process of its own, on a free port, of `rate` questions a second; stopped at the end."""
    limit = [f"--rate={rate}"] if rate else []
    process = subprocess.Popen([sys.executable, str(SERVER), "--port=0", *limit], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"the instant server ended with status {process.wait()}")
        yield Server(address)
    finally:
        process.terminate()
        process.wait()


def write_workload(source: Mapping[str, Any], number: int, folder: Path) -> Workload:
    """`number` questions, spread evenly over the exams, or all of them and their repetitions."""
    places = [(name, at) for name, exam in source["exams"].items() for at in range(len(exam["data"]))]
    if number <= len(places):
        places = [places[at * len(places) // number] for at in range(number)]
    exams: dict[str, Any] = {name: {**exam, "data": []} for name, exam in source["exams"].items()}
    work = Workload(number, folder / f"exams-{number}.json", folder / f"rows-{number}.jsonl")
    with work.rows.open("w", encoding="utf-8") as rows:
        for at in range(number):
            copy, place = divmod(at, len(places))
            name, index = places[place]
            record = repeat(source["exams"][name]["data"][index], copy)
            exams[name]["data"].append(record)
            rows.write(json.dumps(make_row(f"{name}/{record['qid']}", record)) + "\n")
    filled = {name: exam for name, exam in exams.items() if exam["data"]}
    with work.exams.open("w", encoding="utf-8") as file:
        json.dump({**source, "exams": filled}, file)
    return work


def repeat(record: Mapping[str, Any], copy: int) -> Mapping[str, Any]:
    """The question under another number and with another stem; the first copy is itself."""
    if not copy:
        return record
    return {**record, "qid": str(int(record["qid"]) + STRIDE * copy), "qtext": f"({copy}) {record['qtext']}"}


def make_row(key: str, record: Mapping[str, Any]) -> dict[str, Any]:
    numbers = [int(answer["aid"]) for answer in record["answers"]]
    options = [answer["atext"] for answer in record["answers"]]
    lines = [record["qtext"], *(f"{number}. {option}" for number, option in zip(numbers, options, strict=True))]
    gold = int(record["ra"])
    return {
        "key": key,
        "instructions": INSTRUCTIONS,
        "question": "\n".join(lines),
        "stem": record["qtext"],
        "options": options,
        "gold": gold,
        "place": numbers.index(gold),
    }


def measure(command: Sequence[str], environment: Mapping[str, str], server: Server, folder: Path, number: int) -> Pass:
    """Run one process to its end; its output goes to files in `folder`.

    Raises `RuntimeError` with the end of its log where it fails.
    """
    before = server.cpu_s()
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=folder, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        end = (folder / "stderr").read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RuntimeError(f"{' '.join(command)} ended with status {process.returncode}:\n{end}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Pass(number, wall_s, cpu_s, server.cpu_s() - before, usage.ru_maxrss / 1024)


def run_side(side: Side, settings: Settings, work: Workload, server: Server, scratch: Path) -> Pass:
    """One pass; raises `RuntimeError` where not every question was answered."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folder = Path(name)
        command = side.command(work, folder, server.endpoint, settings)
        done = measure(command, side.environment(folder), server, folder, work.number)
        if side.answered(folder) != work.number:
            raise RuntimeError(f"{side.name} answered {side.answered(folder)} of {work.number} questions")
    return done


@dataclass(frozen=True)
class Pair:
    """A small and a large pass with the same settings."""

    small: Pass
    large: Pass

    @property
    def rate(self) -> float:
        """Questions a second, start-up apart."""
        return (self.large.questions - self.small.questions) / (self.large.wall_s - self.small.wall_s)

    @property
    def client_cpu_ms(self) -> float:
        """The client's processor time of one question, start-up apart."""
        spent_s = self.large.client_cpu_s - self.small.client_cpu_s
        return 1000 * spent_s / (self.large.questions - self.small.questions)

    @property
    def server_cpu_share(self) -> float:
        """The server's processor time by the wall clock, the client's start-up apart."""
        return (self.large.server_cpu_s - self.small.server_cpu_s) / (self.large.wall_s - self.small.wall_s)


def race(
    sides: Sequence[Side],
    workloads: Mapping[int, Workload],
    arguments: argparse.Namespace,
    server: Server,
    scratch: Path,
) -> dict[str, dict[str, Any]]:
    """Each side's passes, in rounds; the side that begins changes from round to round."""
    tried: dict[str, list[tuple[Settings, Pair]]] = {side.name: [] for side in sides}
    rounds: dict[str, list[Pair]] = {side.name: [] for side in sides}
    for side in sides:
        # The first process of a kind reads its code from the disk.
        run_side(side, side.variants[0], workloads[pick_sizes(side, arguments.sizes)[0]], server, scratch)
    for turn in range(arguments.rounds):
        first = turn % len(sides)
        for side in [*sides[first:], *sides[:first]]:
            found = []
            for settings in [best(tried[side.name])[0]] if tried[side.name] else side.variants:
                sizes = pick_sizes(side, arguments.sizes)
                passes = [run_side(side, settings, workloads[size], server, scratch) for size in sizes]
                found.append((settings, Pair(*passes)))
                say(f"round {turn + 1}: {side.name} {dict(settings)}: {found[-1][1].rate:.1f} questions/s")
            tried[side.name] = tried[side.name] or found
            rounds[side.name].append(best(found)[1])
    return {side.name: describe(side, tried[side.name], rounds[side.name]) for side in sides}


def pick_sizes(side: Side, sizes: Sequence[int]) -> list[int]:
    """The numbers of questions that a side is given."""
    return [round(size * side.scale) for size in sizes]


def best(tried: Sequence[tuple[Settings, Pair]]) -> tuple[Settings, Pair]:
    return max(tried, key=lambda one: one[1].rate)


def describe(side: Side, tried: Sequence[tuple[Settings, Pair]], rounds: Sequence[Pair]) -> dict[str, Any]:
    numbers = [rounds[0].small.questions, rounds[0].large.questions]
    return {
        "versions": side.versions(),
        "settings": dict(best(tried)[0]),
        "settings_tried": [{**settings, "questions_per_s": round(pair.rate, 1)} for settings, pair in tried],
        "questions": numbers,
        "wall_s": [[round(one.wall_s, 2) for one in (pair.small, pair.large)] for pair in rounds],
        "each_round": [round(pair.rate, 1) for pair in rounds],
        "questions_per_s": round(statistics.median(pair.rate for pair in rounds), 1),
        "client_cpu_ms_a_question": round(statistics.median(pair.client_cpu_ms for pair in rounds), 2),
        "server_cpu_share": round(statistics.median(pair.server_cpu_share for pair in rounds), 2),
        "peak_mb": round(max(pair.large.peak_mb for pair in rounds)),
    }


def compare(arguments: argparse.Namespace, server: Server, scratch: Path) -> dict[str, Any]:
    """The document of `compare`."""
    sides = [side for side in make_sides(arguments) if side.name in arguments.sides]
    sizes = {size for side in sides for size in pick_sizes(side, arguments.sizes)}
    source = read_source(arguments.data)
    workloads = {size: write_workload(source, size, scratch) for size in sizes}
    found = race(sides, workloads, arguments, server, scratch)
    ours = [name for name in found if name.startswith("medexam")]
    ratios = {
        name: {
            peer: round(found[name]["questions_per_s"] / found[peer]["questions_per_s"], 2)
            for peer in found
            if peer not in ours
        }
        for name in ours
    }
    return {"rounds": arguments.rounds, "sides": found, "ratio_to_peer": ratios}


def scale(arguments: argparse.Namespace, server: Server, scratch: Path) -> dict[str, Any]:
    """The document of `scale`."""
    side = MedexamSide("guided")
    source = read_source(arguments.data)
    runs, asking, again = {}, {}, {}
    for number in arguments.sizes:
        work = write_workload(source, number, scratch)
        with tempfile.TemporaryDirectory(dir=scratch) as name:
            folder = Path(name)
            command = side.command(work, folder, server.endpoint, {})
            done = measure(command, {}, server, folder, number)
            (run,) = json.loads((folder / "stdout").read_text(encoding="utf-8"))
            say(f"{number} questions in {done.wall_s:.1f} s, {done.peak_mb:.0f} MB")
            if run["metrics"]["n"] != number:
                raise RuntimeError(f"medexam answered {run['metrics']['n']} of {number} questions")
            runs[number] = done
            asking[number] = round(number / run["costs"]["seconds"]["total"], 1)
            if number == arguments.sizes[0]:
                for what, same in {"run": command, "resume": [*side.run(folder), "--resume", run["run_dir"]]}.items():
                    again[what] = measure(same, {}, server, folder, number)
    first, last = (runs[number] for number in arguments.sizes)
    return {
        "versions": side.versions(),
        "runs": [
            {
                "questions": done.questions,
                "wall_s": round(done.wall_s, 1),
                "questions_per_s": round(asking[done.questions], 1),
                "server_cpu_share": round(done.server_cpu_s / done.wall_s, 2),
                "peak_mb": round(done.peak_mb),
            }
            for done in runs.values()
        ],
        "marginal_questions_per_s": round(Pair(first, last).rate, 1),
        "rate_ratio": round(asking[last.questions] / asking[first.questions], 3),
        "peak_ratio": round(last.peak_mb / first.peak_mb, 2),
        "again_of": first.questions,
        "again_s": {what: round(done.wall_s, 2) for what, done in again.items()},
    }


def pair(arguments: argparse.Namespace, server: Server, scratch: Path) -> dict[str, Any]:
    """The document of `pair`."""
    side = MedexamSide("guided")
    work = write_workload(read_source(arguments.data), arguments.questions, scratch)
    run_at_once(1, side, write_workload(read_source(arguments.data), 100, scratch), server, scratch)
    rounds = []
    for turn in range(arguments.rounds):
        found = {many: run_at_once(many, side, work, server, scratch) for many in ((1, 2) if turn % 2 == 0 else (2, 1))}
        rounds.append((found[1], found[2]))
        say(f"round {turn + 1}: alone {found[1]:.1f} questions/s, two together {found[2]:.1f}")
    alone, together = (statistics.median(rates) for rates in zip(*rounds, strict=True))
    return {
        "versions": side.versions(),
        "server_questions_per_s": arguments.rate,
        "questions": arguments.questions,
        "rounds": arguments.rounds,
        "each_round": [[round(rate, 1) for rate in rates] for rates in rounds],
        "alone_questions_per_s": round(alone, 1),
        "together_questions_per_s": round(together, 1),
        "ratio": round(statistics.median(two / one for one, two in rounds), 3),
    }


def run_at_once(many: int, side: MedexamSide, work: Workload, server: Server, scratch: Path) -> float:
    """Questions a second of `many` runs together, from when the first begins to ask until the last is answered."""
    with tempfile.TemporaryDirectory(dir=scratch) as name, ThreadPoolExecutor(many) as pool:
        folders = [Path(name) / str(number) for number in range(many)]
        for folder in folders:
            folder.mkdir()
        commands = [side.command(work, folder, server.endpoint, {}) for folder in folders]
        running = [
            pool.submit(measure, command, {}, server, folder, work.number)
            for command, folder in zip(commands, folders, strict=True)
        ]
        for each in running:
            each.result()
        spans = [asking_span(folder, work.number) for folder in folders]
    return many * work.number / (max(end for _, end in spans) - min(begin for begin, _ in spans))


def asking_span(folder: Path, number: int) -> tuple[float, float]:
    """When a run began to ask and when its last answer was on the disk, seconds since 1970."""
    (run,) = read_report(folder)
    if run["metrics"]["n"] != number:
        raise RuntimeError(f"medexam answered {run['metrics']['n']} of {number} questions")
    end = (Path(run["run_dir"]) / "predictions.jsonl").stat().st_mtime
    return end - run["costs"]["seconds"]["total"], end


def make_sides(arguments: argparse.Namespace) -> list[Side]:
    """All sides, those of other interpreters only where they are wanted."""
    modules = [ModuleSide(), ModuleSide(engine="vllm")]
    sides: list[Side] = [MedexamSide("guided"), MedexamSide("free"), *modules, DSPySide()]
    if "inspect_ai" in arguments.sides:
        sides.append(InspectSide(find_python(INSPECT, arguments.inspect_python, constrained=False)))
    if any(name.startswith("lm_eval") for name in arguments.sides):
        python, tokenizer = find_python(LM_EVAL, arguments.lm_eval_python), find_tokenizer()
        sides += [LMEvalSide(python, tokenizer, generates=generates) for generates in (True, False)]
    return sides


def read_source(data: Path) -> Mapping[str, Any]:
    source: Mapping[str, Any] = json.loads((data / "headqa_v1" / "HEAD_EN.json").read_text(encoding="utf-8"))
    return source


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


NAMES = (
    "medexam_guided",
    "medexam_free",
    "medexam_module",
    "medexam_module_vllm",
    "dspy",
    "inspect_ai",
    "lm_eval_generate",
    "lm_eval_loglikelihood",
)
PARTS = {"compare": compare, "scale": scale, "pair": pair}


def read_arguments() -> argparse.Namespace:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data", type=Path, default=Path(os.environ.get("MEDEXAM_DATA", ".")))
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    comparing = parts.add_parser("compare", parents=[shared])
    comparing.add_argument("--sides", nargs="+", choices=NAMES, default=NAMES)
    comparing.add_argument("--sizes", type=int, nargs=2, default=[2000, 12000], help="questions of the two passes")
    comparing.add_argument("--rounds", type=int, default=3)
    comparing.add_argument("--inspect-python", type=Path, help="it has inspect-ai; made in the cache by default")
    comparing.add_argument("--lm-eval-python", type=Path, help="it has lm-eval; made in the cache by default")
    scaling = parts.add_parser("scale", parents=[shared])
    scaling.add_argument("--sizes", type=int, nargs=2, default=[12751, 127510], help="questions of the two runs")
    pairing = parts.add_parser("pair", parents=[shared])
    pairing.add_argument("--questions", type=int, default=4000, help="questions of each run")
    pairing.add_argument("--rate", type=float, default=150.0, help="questions a second that the server serves")
    pairing.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    load_average = round(os.getloadavg()[0], 2)
    start = instant_server(getattr(arguments, "rate", None))
    with tempfile.TemporaryDirectory(prefix="medexam-capacity-") as scratch, start as server:
        report = PARTS[arguments.part](arguments, server, Path(scratch))
    floor_mb = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps({"part": arguments.part, "load_average": load_average, "floor_mb": floor_mb, **report}, indent=1))


if __name__ == "__main__":
    main()
