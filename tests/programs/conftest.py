"""Fixtures of programs that are asked one question."""

import pytest
from command_line import medexam
from one_question import ask, ask_task, finder

from medexam.datasets import load_task_set
from medexam.specs import DatasetSpec
from task_data import write_cliniqlink

__all__ = ["ask", "ask_task", "finder", "medexam"]


@pytest.fixture
def tasks(tmp_path):
    """Format of ClinIQLink -> a question of it."""
    data = load_task_set(DatasetSpec(name="cliniqlink", path=write_cliniqlink(tmp_path / "cliniqlink")))
    return {task.group: task for task in reversed(data.questions)}
