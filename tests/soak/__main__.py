"""Kills commands at random moments for a time, and reports what was lost, asked twice or came out otherwise.

    python -m soak --minutes 60 --seed 7

It is what `make soak` calls. What failed stays in its folder, which is named at the end, with the seed of each trial.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from soak.baselines import Baseline, find_baselines
from soak.children import fork
from soak.records import Step, Trial
from soak.server import ServerProcess
from soak.table import lines, summarize, write_page
from soak.trials import Soaker
from soak.works import make_works

WORKS = (
    *("run", "optimize", "translate", "index", "build", "finetune", "track"),
    *("pairs", "elsewhere", "names", "refusals"),
)
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
REPORT_S = 30.0


def main() -> None:
    """Soak, and exit with 1 if anything failed."""
    arguments = parse()
    scratch = Path(tempfile.mkdtemp(prefix="medexam-soak-"))
    prepare_environment(scratch)
    say(f"soak: SEED={arguments.seed}, in {scratch}; finding out what commands do undisturbed ...")
    (inputs := scratch / "inputs").mkdir()
    with serving(scratch, "baselines") as server:
        works = make_works(inputs, server.log.parent, server.address)
        works = {name: work for name, work in works.items() if name in arguments.works}
        baselines = find_baselines(works, server, inputs, scratch)
    for name, baseline in baselines.items():
        say(f"soak: {name}: {baseline.seconds:.1f} s undisturbed, {baseline.cold_s:.1f} s with its imports")
    begun = time.monotonic()
    trials = soak(arguments, baselines, inputs, scratch)
    found = summarize(trials, arguments.seed, (time.monotonic() - begun) / 60)
    if arguments.write:
        write_page(found)
    sys.stdout.write(json.dumps(found, indent=1) + "\n" if arguments.json else "\n".join(lines(found)) + "\n")
    if not found["failed"]:
        shutil.rmtree(scratch)
        return
    for trial in found["failed"]:
        say(f"soak: failed: {trial['work']}, trial {trial['seed']}")
    say(f"soak: {len(found['failed'])} trials failed; their folders are in {scratch}")
    sys.exit(1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="how long trials are begun")
    parser.add_argument("--kills", type=int, help="end after so many kills, too")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)), help="any text")
    parser.add_argument("--works", nargs="+", choices=WORKS, default=WORKS, metavar="WORK", help=", ".join(WORKS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trials at once")
    parser.add_argument("--json", action="store_true", help="print one document instead of tables")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/reliability.md")
    return parser.parse_args()


def prepare_environment(scratch: Path) -> None:
    """Have commands read nothing of this machine's user, and leave nothing outside."""
    folders = {"MEDEXAM_CACHE": str(scratch / "cache"), "XDG_STATE_HOME": str(scratch / "state")}
    os.environ.update(ENVIRONMENT, **folders, PYTHONPATH=os.pathsep.join(sys.path))
    for name in ("MEDEXAM_RUNS", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)


@contextmanager
def serving(scratch: Path, name: str) -> Iterator[ServerProcess]:
    """A server, with a folder for its log and for temporary files."""
    (folder := scratch / name).mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    server = ServerProcess(folder / "asked.log")
    server.start()
    try:
        yield server
    finally:
        server.kill()


def soak(arguments: argparse.Namespace, baselines: Mapping[str, Baseline], inputs: Path, scratch: Path) -> list[Trial]:
    """Have as many processes make trials as may at once; what they found."""
    until, files = time.monotonic() + 60 * arguments.minutes, []
    workers = set()
    for number in range(arguments.jobs):
        files.append(file := scratch / f"{number}.jsonl")
        work = partial(make_trials, baselines, inputs, scratch, f"{arguments.seed}-{number}", until, file)
        workers.add(fork(work))
    reported = time.monotonic()
    try:
        while workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            workers.discard(pid)
            assert status == 0, "the soak itself failed: see above"
            time.sleep(0.2)
            found = [trial for path in files for trial in read_trials(path)]
            kills = sum(step.kills for trial in found for step in trial.steps)
            if arguments.kills is not None and kills >= arguments.kills:
                break
            if time.monotonic() > reported + REPORT_S:
                reported = time.monotonic()
                say(f"soak: {len(found)} trials, {kills} kills, {sum(trial.failed for trial in found)} failed")
    except KeyboardInterrupt:
        say("soak: interrupted")
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
    return [trial for path in files for trial in read_trials(path)]


def make_trials(
    baselines: Mapping[str, Baseline], inputs: Path, scratch: Path, seed: str, until: float, file: Path
) -> int:
    """Make trials until it is late, or until SIGTERM, and write each as a line."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = random.Random(seed)
    with serving(scratch, f"worker-{seed}") as server, file.open("a", encoding="utf-8") as stream:
        folder = server.log.parent
        soaker = Soaker(make_works(inputs, folder, server.address), baselines, server, inputs, folder)
        number = 0
        while time.monotonic() < until:
            trial = soaker.try_once(order.choice([*baselines]), f"{seed}-{number}")
            stream.write(json.dumps(asdict(trial)) + "\n")
            stream.flush()
            number += 1
    return 0


def read_trials(path: Path) -> Iterator[Trial]:
    """The trials that are written so far."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            yield Trial(**{**document, "steps": [Step(**step) for step in document["steps"]]})


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
