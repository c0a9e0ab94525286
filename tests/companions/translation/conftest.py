"""A translation by the scripted engine: real folders, real checks, replies from a function of the prompt."""

from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest
import yaml

from data_folders import full_data
from medexam.companions.translation.actions import ask_pending
from medexam.companions.translation.plan import build_spec, plan_translation
from medexam.toolkit.progress import TerminalProgress

__all__ = ["full_data"]
GOOD = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."


class Watching(TerminalProgress):
    """A `RunObserver` that counts."""

    tasks: ClassVar[list[str]] = []
    count = 0

    def cell_starts(self, planned) -> None:
        self.tasks.append(planned.cell.program.args["setup"])
        super().cell_starts(planned)

    def asked(self) -> None:
        type(self).count += 1
        super().asked()


class Watched(NamedTuple):
    """What a translation asked."""

    tasks: list[str]
    asked_for: int


@pytest.fixture
def script(tmp_path: Path):
    """Write a table of replies; gives `--set` settings for it."""

    def write(replies, name="replies.yaml"):
        path = tmp_path / name
        path.write_text(yaml.safe_dump(replies, allow_unicode=True), encoding="utf-8")
        return {"model.engine": "scripted", "model.path": path}

    return write


@pytest.fixture
def translate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Plan and carry out a translation of sample questions with four options; gives the plan after it."""

    def run(settings, *, limit=4, target="en", setups=("zero_shot", "one_shot", "expert"), words=None, out=None):
        about = {"name": "headqa_sample", "language": "es", "limit": limit, "option_counts": (4,)}
        spec = build_spec(settings, dataset=about, target=target, setups=setups, words=words)
        plan = plan_translation(spec, runs_dir=tmp_path, out=out)
        Watching.tasks, Watching.count = [], 0
        monkeypatch.setattr("medexam.companions.translation.actions.TerminalProgress", Watching)
        stop = ask_pending(plan, plan.runs, plan.setups, None)
        watched = Watched(Watching.tasks, Watching.count)
        return plan_translation(spec, runs_dir=tmp_path, out=out), watched, stop

    return run
