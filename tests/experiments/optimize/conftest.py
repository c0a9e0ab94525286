"""Optimizations of the packaged sample, over the scripted engine, read from their folders."""

import json
import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

import medexam as package
from command_line import _untracked, medexam
from medexam.datasets import load_exam_set
from medexam.serve import ScriptedEngine
from medexam.specs import DatasetSpec
from scripted_engines import LAST_MADE, MADE

__all__ = ["_untracked", "medexam"]


@dataclass
class Done:
    """An optimization as its folder tells it."""

    folder: Path
    record: dict[str, Any] = field(init=False)
    trials: list[dict[str, Any]] = field(init=False)
    best: dict[str, Any] | None = field(init=False)

    def __post_init__(self) -> None:
        self.record = json.loads((self.folder / "optimization.json").read_text())
        self.trials = self.record["trials"]
        self.best = max(self.trials, key=lambda trial: (trial["score"], -trial["number"]), default=None)

    def place(self, number: int) -> Path:
        """The folder of a trial."""
        return self.folder / "trials" / self.trials[number]["digest"]

    def program(self, number: int) -> dict[str, Any]:
        """The state of a trial's program, as DSPy saves it."""
        return json.loads((self.place(number) / "program.json").read_text())

    def predictions(self, number: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.place(number) / "predictions.jsonl").read_text().splitlines()]


@pytest.fixture(scope="session")
def sample():
    return load_exam_set(DatasetSpec(name="headqa_sample"))


@pytest.fixture
def document(sample, tmp_path):
    """A spec over the sample; the script answers every other question right, and the others with another option."""
    replies = {}
    for position, question in enumerate(sample.questions):
        gold = sample.golds[question.key].number
        wrong = next(number for number in question.option_numbers if number != gold)
        replies[question.stem] = f"{{Answer: {wrong if position % 2 else gold}}}"
    path = tmp_path / "replies.yaml"
    path.write_text(yaml.safe_dump({**replies, "*": "{Answer: 1}"}, allow_unicode=True, width=10**6, sort_keys=False))
    return {
        "name": "scripted",
        "dataset": {"name": "headqa_sample", "split": "test"},
        "model": {"engine": "scripted", "path": str(path)},
        "program": {"kind": "zero_shot"},
        "optimizer": {"kind": "random_search", "candidates": 4, "attempts": 8},
    }


@pytest.fixture
def listening():
    """`listening(spec)` has the spec's script answer through an engine that keeps what it is asked."""

    def listen(spec) -> ScriptedEngine:
        MADE.append(engine := ScriptedEngine(yaml.safe_load(Path(spec["model"]["path"]).read_text())))
        spec["model"] = {"engine": LAST_MADE}
        return engine

    return listen


def carry_out(spec, runs_dir, overrides=None, *, fresh=False) -> Done:
    overrides = {name.replace(".", "__"): value for name, value in (overrides or {}).items()}
    return Done(package.optimize(spec, runs_dir=runs_dir, fresh=fresh, progress=False, track=False, **overrides).folder)


@pytest.fixture
def optimize(document, tmp_path):
    """`optimize({"optimizer.kind": "labeled"})` -> the optimization of `document`, or of another `spec`."""

    def call(overrides=None, spec=None, *, fresh=False):
        return carry_out(spec or document, tmp_path / "runs", overrides, fresh=fresh)

    return call


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """Kind of optimizer -> the folder of its optimization, for `finished`."""
    return defaultdict(lambda: tmp_path_factory.mktemp("optimized") / "runs")


@pytest.fixture
def finished(document, tmp_path, originals):
    """`finished("labeled")` -> a copy, in the test's runs, of an optimization that is made once."""

    def copy(kind):
        done = carry_out(document, originals[kind], {"optimizer.kind": kind})
        return Done(shutil.copytree(done.folder, tmp_path / "runs" / done.folder.name))

    return copy
