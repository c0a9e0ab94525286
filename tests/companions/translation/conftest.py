"""A translation by the scripted engine: real folders, real checks, replies from a function of the prompt."""

from pathlib import Path

import pytest
import yaml

from data_folders import full_data
from medexam.companions.translation.plan import build_spec, plan_translation
from medexam.companions.translation.runner import run_tasks

__all__ = ["full_data"]
GOOD = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."


class Watching:
    """A `TranslationObserver` that counts."""

    def __init__(self) -> None:
        self.tasks: list[str] = []
        self.asked_for = 0

    def engine_starts(self, model) -> None:
        pass

    def task_starts(self, task) -> None:
        self.tasks.append(task.words.setup)

    def asked(self) -> None:
        self.asked_for += 1

    def answered(self, prediction) -> None:
        pass

    def stopping(self, in_flight) -> None:
        pass


@pytest.fixture
def script(tmp_path: Path):
    """Write a table of replies; gives `--set` settings for it."""

    def write(replies, name="replies.yaml"):
        path = tmp_path / name
        path.write_text(yaml.safe_dump(replies, allow_unicode=True), encoding="utf-8")
        return {"model.engine": "scripted", "model.path": path}

    return write


@pytest.fixture
def translate(tmp_path: Path):
    """Plan and carry out a translation of sample questions with four options; gives the plan after it."""

    def run(settings, *, limit=4, target="en", setups=("zero_shot", "one_shot", "expert"), words=None, out=None):
        about = {"name": "headqa_sample", "language": "es", "limit": limit, "option_counts": (4,)}
        spec = build_spec(settings, dataset=about, target=target, setups=setups, words=words)
        plan = plan_translation(spec, runs_dir=tmp_path, out=out)
        plan.folder.create()
        plan.folder.write_json("translation.json", plan.record())
        watching = Watching()
        stop = run_tasks(plan.tasks, plan.folder, watching)
        return plan_translation(spec, runs_dir=tmp_path, out=out), watching, stop

    return run
