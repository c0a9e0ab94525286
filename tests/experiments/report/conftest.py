"""Stored runs over four small exams, and the command line."""

import sys

import pytest

from command_line import _untracked, medexam
from small_exams import exam_files, make_run

__all__ = ["_untracked", "exam_files", "make_run", "medexam"]


@pytest.fixture
def without_plots(monkeypatch) -> None:
    """As if matplotlib were not installed: drawing takes longer than all else."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def label_scores():
    """`extra` of a run that reads labels: the right option leads by more the later it stands; every third is tied."""

    def fields(question) -> dict:
        tied = question.number % 3 == 0
        lead = 0.0 if tied else 0.4 * question.number
        return {
            "option_scores": {
                n: (lead if n == question.number % 4 + 1 else 0.0) - 2.0 for n in question.option_numbers
            },
            "score_unit": "nats",
            "score_norm": "sum",
            "tied": len(question.options) if tied else 1,
            "label_mass": 0.8,
            "read_by": "label",
        }

    return fields


@pytest.fixture
def cyclic_scores(label_scores):
    """The same of a run that was shown every order of the options: the place that is shown first leads in each."""

    def fields(question) -> dict:
        count = len(question.options)
        return label_scores(question) | {"order_scores": ((1.0,) + (0.0,) * (count - 1),) * count}

    return fields


@pytest.fixture
def passages():
    """`extra` of a run with two passages a question: the later it stands, the more relevant; the fifth finds none."""
    from medexam.predictions import RetrievedPassage

    def fields(question) -> dict:
        if question.number == 5:
            return {"passages": (), "passages_cut": 0}
        source = "books" if question.number % 2 else "wiki"
        score = question.number + (0.5 if question.exam.year == 2015 else 0.0)
        first = RetrievedPassage(id=f"{source}/{question.number}", source=source, score=score)
        second = RetrievedPassage(id="wiki/0", source="wiki", score=0.25)
        return {"passages": (first, second), "passages_cut": 40 if question.number == 4 else 0}

    return fields
