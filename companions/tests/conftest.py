"""What the tests of several companions share: specs over scripted replies, and ClinIQLink's questions."""

import pytest
from task_data import write_cliniqlink

from command_line import _untracked, medexam, refused, run, spec
from data_folders import full_data, only_what_a_test_brings
from medexam.datasets import load_task_set
from medexam.specs import DatasetSpec
from one_question import ask, ask_task, finder

__all__ = [
    "_untracked",
    "ask",
    "ask_task",
    "finder",
    "full_data",
    "medexam",
    "only_what_a_test_brings",
    "refused",
    "run",
    "spec",
]


@pytest.fixture
def tasks(tmp_path):
    """Format of ClinIQLink -> a question of it."""
    data = load_task_set(DatasetSpec(name="cliniqlink", path=write_cliniqlink(tmp_path / "cliniqlink")))
    return {task.group: task for task in reversed(data.questions)}
