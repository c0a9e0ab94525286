"""Kills commands at random moments, starts them again, and compares what comes out with an undisturbed run.

    PYTHONPATH=tests python -m soak --minutes 60 --seed 7

Every command is a process of its own. A trial disturbs it up to four times (SIGKILL, SIGTERM, Ctrl-C, a disk that is
full), lets it end, and counts what was lost, asked twice, a traceback, too late, or came out otherwise. The folder of a
trial that failed stays, and is named at the end.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MEDEXAM = (str(Path(sys.executable).with_name("medexam")),)
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
EXITS = {0, 2, 3, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM}
"""Exit codes of a disturbed command: 2 and 3 say why in a line."""
FULL_DISK_SHARE = 0.15
"""Of disturbances; the others are signals."""
LATE_S = 120.0
"""Seconds beyond twice the undisturbed time after which a command counts as one that hangs."""
REPLY_S = 0.04
"""Longest time that a reply takes, so that a run of thirty questions takes about a second."""
UNLIKE = {
    *("seconds", "started_at", "ended_at", "created", "when", "environment", "latency_s"),
    *("latency_p50_s", "latency_p95_s"),
}
"""Names of what differs between two undisturbed runs."""


@dataclass(frozen=True)
class Command:
    """One command that is killed, in a folder of its own."""

    words: str
    """What follows `medexam`; `{inputs}` and `{server}` are filled in."""
    result: Callable[[Path], Any]
    """What came out, without times."""
    replies: str = ""
    """Pattern of the files whose whole lines are safe: none may be gone later, none may be asked again."""
    before: str = ""
    """The command that is carried out in the folder first."""


def runs(folder: Path) -> Any:
    """Each run's answers, its metrics, and the questions that stand there twice."""
    documents = []
    for path in sorted(folder.glob("runs/*/predictions.jsonl")):
        lines = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
        answers = sorted([line["question"], line["status"], line.get("answer"), line.get("reply")] for line in lines)
        counts = Counter(line["question"] for line in lines if line["status"] != "failed")
        twice = [key for key, count in counts.items() if count > 1]
        documents.append([path.parent.name, answers, read(path.with_name("metrics.json")), twice])
    return documents


def runs_and_copies(folder: Path) -> Any:
    """The runs, and for each what MLflow has of it: status, numbers of metrics and parameters."""
    with closing(sqlite3.connect(folder / "runs" / "mlflow.db")) as database:
        copies = database.execute(
            "select tags.value, runs.status, (select count(*) from latest_metrics where run_uuid = runs.run_uuid), "
            "(select count(*) from params where run_uuid = runs.run_uuid) from runs join tags using (run_uuid) "
            "where tags.key = 'medexam.run_id' and lifecycle_stage = 'active' order by 1"
        ).fetchall()
    return [runs(folder), copies]


def optimizations(folder: Path) -> Any:
    """The trials and the best program."""
    records = [json.loads(path.read_bytes()) for path in folder.glob("runs/*/optimization.json")]
    return [record["trials"] for record in records] + [read(path) for path in folder.glob("runs/*/program.json")]


def files(*patterns: str) -> Callable[[Path], Any]:
    """SHA-256 of the files that fit, by their place in the folder."""

    def read_files(folder: Path) -> Any:
        paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
        return [[str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()] for path in paths]

    return read_files


COMMANDS: dict[str, Command] = {
    "run": Command("run {inputs}/run.json --runs-dir runs", runs_and_copies, "runs/*/predictions.jsonl"),
    "track": Command(
        "track runs", runs_and_copies, "runs/*/predictions.jsonl", before="run {inputs}/run.json --runs-dir runs"
    ),
    "optimize": Command(
        "optimize {inputs}/optimize.json --runs-dir runs", optimizations, "runs/*/trials/*/predictions.jsonl"
    ),
    "index": Command(
        "index build --corpus {inputs}/corpus.jsonl --encoder {inputs}/encoder --out index",
        files("index/*.npy", "index/*.jsonl"),
    ),
}


class Replies(BaseHTTPRequestHandler):
    """A server of OpenAI's wire: each reply ends in a stamp of the prompt, which is logged before the reply leaves."""

    log: Path
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "tiny", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = json.dumps(body.get("messages"), sort_keys=True)
        stamp = "stamp" + hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
        with self.log.open("a", encoding="ascii") as stream:
            stream.write(stamp + "\n")
        answer = (
            f"{{Answer: {1 + int(stamp[-1], 16) % 2}}}" if "{Answer" in prompt else "Which?\n1. A.\n2. B.\n3. C.\n4. D."
        )
        time.sleep(random.uniform(0, REPLY_S))
        message = {"role": "assistant", "content": f"{answer}\n\n{stamp}"}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send(
            {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice], "usage": usage}
        )

    def _send(self, document: Any) -> None:
        content = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving(log: Path) -> Iterator[str]:
    """The address of a server in a process of its own, which the commands do not share a processor's lock with."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Logged", (Replies,), {"log": log}))
    if (process := os.fork()) == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        server.serve_forever()
    server.server_close()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


@dataclass
class Trial:
    """What happened to one command."""

    command: str
    seed: str
    kills: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Soaker:
    """Carries commands out in new folders below `scratch`."""

    scratch: Path
    server: str
    seconds: dict[str, float] = field(default_factory=dict)
    """Command -> how long it takes undisturbed."""
    results: dict[str, Any] = field(default_factory=dict)
    """Command -> what comes out undisturbed."""

    def try_once(self, name: str, seed: str) -> Trial:
        """Disturb a command, let it end, and judge it; without a result of its own yet, let it end alone."""
        command, chance, trial = COMMANDS[name], random.Random(seed), Trial(name, seed)
        folder = self.scratch / seed
        folder.mkdir()
        if command.before:
            self._wait(self._start(command.before, folder), LATE_S)
        for _ in range(chance.randint(1, 4) if name in self.results else 0):
            self._disturb(command, folder, trial, chance)
        begun = time.monotonic()
        with self._judged(command, folder, trial):
            status = self._wait(self._start(command.words, folder), LATE_S + 2 * self.seconds.get(name, 0))
            if status != 0:
                trial.faults.append(f"ended with {status}")
        if not trial.faults:
            result = command.result(folder)
            self.seconds.setdefault(name, time.monotonic() - begun)
            if result != self.results.setdefault(name, result):
                trial.faults.append("another result")
        if not trial.faults:
            shutil.rmtree(folder)
        return trial

    def _disturb(self, command: Command, folder: Path, trial: Trial, chance: random.Random) -> None:
        """Send it a signal at a random moment, or give it too little disk."""
        full = chance.random() < FULL_DISK_SHARE
        size = chance.randrange(16_000, 1_000_000)
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size)) if full else None
        with self._judged(command, folder, trial):
            process = self._start(command.words, folder, limit)
            if not full:
                try:
                    process.wait(chance.uniform(0, self.seconds[trial.command]))
                except subprocess.TimeoutExpired:
                    process.send_signal(chance.choice(SIGNALS))
                    trial.kills += 1
            status = self._wait(process, LATE_S)
            if status not in EXITS:
                trial.faults.append(f"ended with {status} when disturbed")

    @contextmanager
    def _judged(self, command: Command, folder: Path, trial: Trial) -> Iterator[None]:
        """Note replies that are gone afterwards, and those that were on the disk and are asked for again."""
        lines, log = whole_lines(folder, command.replies), self.scratch / "asked.log"
        size = log.stat().st_size
        yield
        text = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")
        trial.faults += ["a traceback"] if "Traceback (most recent call last)" in text else []
        trial.faults += ["a reply is gone"] if lines - whole_lines(folder, command.replies) else []
        stored = b"\n".join(line for _, line in lines)
        asked = log.read_bytes()[size:].split()
        trial.faults += [f"{stamp.decode()} was asked twice" for stamp in asked if stamp in stored]

    def _start(self, words: str, folder: Path, before: Callable[[], object] | None = None) -> subprocess.Popen[bytes]:
        filled = words.format(inputs=self.scratch / "inputs", server=self.server).split()
        with (folder / "stderr.txt").open("wb") as stderr:
            return subprocess.Popen(
                [*MEDEXAM, *filled], cwd=folder, stdout=subprocess.DEVNULL, stderr=stderr, preexec_fn=before
            )

    def _wait(self, process: subprocess.Popen[bytes], seconds: float) -> int | str:
        """Its exit code; a text for one that hangs."""
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return "nothing: it hung"


def whole_lines(folder: Path, pattern: str) -> set[tuple[str, bytes]]:
    """The whole lines of all files that fit, each with its file."""
    paths = filter(Path.is_file, folder.glob(pattern)) if pattern else ()
    return {
        (str(path), line)
        for path in paths
        for line in path.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")
    }


def read(path: Path) -> Any:
    """A JSON document without what differs from one time to the next."""
    return timeless(json.loads(path.read_text(encoding="utf-8")))


def timeless(value: Any) -> Any:
    """Leave out what differs from one time to the next."""
    if isinstance(value, dict):
        return {name: timeless(part) for name, part in value.items() if name not in UNLIKE}
    return list(map(timeless, value)) if isinstance(value, list) else value


def write_inputs(inputs: Path, server: str) -> None:
    """What the commands read."""
    from retrievers.tiny_models import WORDS, save_bert

    inputs.mkdir()
    dataset = {"name": "headqa_sample", "language": "en"}
    model = {"engine": "litellm", "name": "openai/tiny", "endpoints": [server], "timeout_s": 10}
    spec = {
        "name": "soak",
        "dataset": dataset,
        "model": model,
        "program": {"kind": "zero_shot", "answer_format": "free"},
    }
    kinds = {"matrix": {"program.kind": ["zero_shot", "chain_of_thought"]}}
    search = {"optimizer": {"kind": "random_search", "candidates": 3, "attempts": 6}}
    (inputs / "run.json").write_text(json.dumps({**spec, "dataset": {**dataset, "limit": 30}, **kinds}))
    (inputs / "optimize.json").write_text(json.dumps({**spec, "dataset": {**dataset, "split": "test"}, **search}))
    save_bert(inputs / "encoder", 1)
    with (inputs / "corpus.jsonl").open("w", encoding="utf-8") as stream:
        for number in range(1_500):
            words = " ".join(WORDS[(number * 7 + place * place) % len(WORDS)] for place in range(12))
            stream.write(json.dumps({"id": str(number), "title": f"Passage {number}", "content": words}) + "\n")


def main() -> None:
    """Soak, print one JSON document, and exit with 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="soak", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="how long trials are begun")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)), help="any text")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=[*COMMANDS], help="which are killed")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="medexam-soak-"))
    folders = {"MEDEXAM_CACHE": str(scratch / "cache"), "XDG_STATE_HOME": str(scratch / "state")}
    os.environ.update({"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "OPENAI_API_KEY": "none", **folders})
    os.environ.pop("MEDEXAM_RUNS", None)
    (scratch / "asked.log").touch()
    with serving(scratch / "asked.log") as server:
        write_inputs(scratch / "inputs", server)
        soaker = Soaker(scratch, server)
        trials = [soaker.try_once(name, f"alone-{name}") for name in options.commands]
        names, end = random.Random(options.seed), time.monotonic() + 60 * options.minutes
        while time.monotonic() < end and all(name in soaker.results for name in options.commands):
            name = names.choice(options.commands)
            trials.append(soaker.try_once(name, f"{options.seed}-{len(trials)}-{name}"))
            sys.stderr.write(f"{trials[-1].seed}: {trials[-1].kills} kills {trials[-1].faults or ''}\n")
    failed = {trial.seed: trial.faults for trial in trials if trial.faults}
    kills = {name: sum(trial.kills for trial in trials if trial.command == name) for name in options.commands}
    document = {"seed": options.seed, "trials": len(trials), "kills": kills, "failed": failed, "folder": str(scratch)}
    sys.stdout.write(json.dumps(document, indent=1) + "\n")
    if failed:
        sys.exit(1)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
