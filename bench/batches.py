"""What a batch costs the client: a whole data set written, submitted, merged and scored.

    python bench/batches.py [--dataset headqa_v1] [--rounds 3]

The batch API is the tests' own, in a process beside this one (`--serve`). Its batches have ended when they are first
looked at, so what is measured is the client: wall time from the plan to the scored run, without the time in which the
batch API makes its replies, and this process's own processor time. Prints one JSON document.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parents[1] / "tests" / "serve")]
MODEL = "gpt-4o-mini"


def serve() -> None:
    """A batch API until the input closes; its address is printed."""
    from batch_server import BatchProvider, serving_batches
    from wire_server import Wire

    class Timed(BatchProvider):
        """Counts the seconds in which it makes replies."""

        spent_s = 0.0

        def _end(self, batch: dict[str, object]) -> None:
            begun = time.perf_counter()
            super()._end(batch)
            self.spent_s += time.perf_counter() - begun

    with serving_batches(Timed(Wire(models=(MODEL,)), polls=0)) as provider:
        print(provider.address, flush=True)
        for _ in sys.stdin:
            print(provider.spent_s, flush=True)
            provider.spent_s = 0.0


def measure(dataset: str, folder: Path) -> tuple[float, float, int, int]:
    """Seconds, seconds of this process's processor time, questions and batches of one run."""
    from medexam.experiments import Runner, plan_experiment
    from watching import Silent

    document = {
        "name": "bench",
        "dataset": {"name": dataset},
        "model": {"engine": "batch", "name": f"openai/{MODEL}"},
        "program": {"kind": "zero_shot", "answer_format": "guided"},
    }
    wall, own = time.perf_counter(), time.process_time()
    (run,), stop = Runner(plan_experiment(document, {}, runs_dir=folder), Silent()).run()
    wall, own = time.perf_counter() - wall, time.process_time() - own
    assert stop is None
    assert run.complete
    batches = len(list((run.folder.path / "batches").glob("*.results.jsonl")))
    return wall, own, run.metrics.n, batches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="headqa_v1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    command = [sys.executable, __file__, "--serve"]
    rounds = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        os.environ |= {"OPENAI_BASE_URL": address, "OPENAI_API_BASE": address, "OPENAI_API_KEY": "sk-bench"}
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                wall, own, questions, batches = measure(options.dataset, Path(folder))
            server.stdin.write("\n")
            server.stdin.flush()
            theirs = float(server.stdout.readline())
            rounds.append(
                {
                    "questions": questions,
                    "batches": batches,
                    "seconds_without_the_api": round(wall - theirs, 2),
                    "own_processor_s": round(own, 2),
                    "api_s": round(theirs, 2),
                }
            )
        server.stdin.close()
    median = statistics.median(float(one["seconds_without_the_api"]) for one in rounds)
    print(json.dumps({"median_s": median, "rounds": rounds}, indent=2))


if __name__ == "__main__":
    main()
