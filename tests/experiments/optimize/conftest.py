"""Optimizations of the bundled sample, over the scripted engine."""

import shutil
from collections import defaultdict

import pytest
import yaml

from medexam.datasets import load_exam_set
from medexam.experiments import plan_optimization
from medexam.experiments.optimize.folder import find_optimization
from medexam.experiments.optimize.optimization import load_optimization
from medexam.experiments.optimize.optimizer import optimize
from medexam.questions import AnswerKey
from medexam.specs import DatasetSpec
from watching import Trials


@pytest.fixture(scope="module", autouse=True)
def _undrawn():
    """The curve of an optimization is a picture in name alone: drawing it takes longer than the trials."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("medexam.experiments.optimize.outcome.render_png", lambda draw, inches: b"undrawn")
        yield


@pytest.fixture(scope="session")
def sample():
    return load_exam_set(DatasetSpec(name="headqa_sample"))


@pytest.fixture
def key(sample) -> AnswerKey:
    return sample.golds


@pytest.fixture
def document(sample, tmp_path):
    """A spec over the sample; the script answers every other question right, and the others with the option after."""
    replies = {}
    for position, question in enumerate(sample.questions):
        gold = sample.golds[question.key].number
        wrong = next(number for number in question.option_numbers if number != gold)
        replies[question.stem] = f"{{Answer: {wrong if position % 2 else gold}}}"
    path = tmp_path / "replies.yaml"
    path.write_text(yaml.safe_dump({**replies, "*": "{Answer: 1}"}, allow_unicode=True, width=10**6))
    return {
        "name": "scripted",
        "dataset": {"name": "headqa_sample", "split": "test"},
        "model": {"engine": "scripted", "path": str(path)},
        "program": {"kind": "zero_shot"},
        "optimizer": {"kind": "random_search", "candidates": 4, "attempts": 8},
    }


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """Kind of optimizer -> the folder of its optimization, for `finished`."""
    return defaultdict(lambda: tmp_path_factory.mktemp("optimized") / "runs")


@pytest.fixture
def finished(document, tmp_path, originals):
    """`finished("labeled")` -> a copy, in the test's runs, of an optimization that is made once."""

    def copy(kind):
        plan = plan_optimization(document, {"optimizer.kind": kind}, runs_dir=originals[kind])
        done = load_optimization(plan.folder) if plan.folder.exists() else optimize(plan, Trials())
        folder = shutil.copytree(done.folder.path, tmp_path / "runs" / done.folder.name)
        return load_optimization(find_optimization(str(folder), tmp_path))

    return copy


@pytest.fixture
def run_optimizer(document, tmp_path):
    """`run_optimizer({"optimizer.kind": "labeled"})` -> the optimization and its observer."""

    def carry_out(overrides=None, spec=None, **options):
        plan = plan_optimization(spec or document, overrides or {}, runs_dir=tmp_path / "runs", **options)
        watcher = Trials()
        return optimize(plan, watcher), watcher

    return carry_out
