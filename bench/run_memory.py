"""Memory that a whole likelihood run takes beside its engine. Prints one JSON document.

    python bench/run_memory.py

All questions of HEAD-QA v1, read from `$MEDEXAM_DATA`, are planned, asked, kept, scored and tracked in MLflow.
The engine is a source of random log-probabilities and weighs nothing, so the process grows by the run's own memory.
"""

import asyncio
import json
import random
import resource
import tempfile
import time
from pathlib import Path

from medexam.experiments import plan_spec
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.run import runner
from medexam.experiments.track import track_runs
from medexam.model_calls import Dialogue, Generation
from medexam.model_identity import ModelIdentity
from medexam.serve import EngineInfo
from medexam.serve.logprobs import Candidates, build_logprobs


class RandomScores:
    """An engine that answers at once, with a token for each word."""

    concurrency = 256

    def __init__(self) -> None:
        self._random = random.Random(17)

    async def reply(self, dialogue: Dialogue) -> Generation:
        await asyncio.sleep(0)
        asked = dialogue.continuations
        assert asked is not None
        paths = tuple(tuple(range(1, 1 + len(text.split()))) or (1,) for text in asked.texts)
        values = [[-self._random.expovariate(0.3) for _ in path] for path in paths]
        return build_logprobs(Candidates((0,), paths), values, "echo", "random", asked.texts, "random")

    def info(self) -> EngineInfo:
        return EngineInfo(engine="embedded", model="random", identity=ModelIdentity(engine="embedded", name="random"))

    async def aclose(self) -> None:
        return None


def used_mb() -> float:
    """The most memory that this process has held so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def build(*_: object, **__: object) -> RandomScores:
    return RandomScores()


def main() -> None:
    runner.build_engine = build  # type: ignore[attr-defined,assignment]
    document = {
        "name": "memory",
        "dataset": {"name": "headqa_v1", "language": "en"},
        "model": {"engine": "embedded"},
        "program": {"kind": "likelihood"},
    }
    before = used_mb()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, RunProgress() as progress:
        plan = plan_spec(document, {}, runs_dir=Path(folder))
        (run,), _ = runner.Runner(plan, progress).run()
        asked = used_mb()
        track_runs([run], tracking_uri=f"sqlite:///{folder}/mlflow.db")
    seconds = time.perf_counter() - begun
    figures = {
        "questions": run.metrics.n,
        "imports_mb": round(before),
        "asked_and_scored_mb": round(asked - before),
        "tracked_mb": round(used_mb() - before),
        "seconds": round(seconds, 1),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
