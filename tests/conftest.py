"""Fixtures that every wing's tests share: a real question, and an environment that reaches nothing by accident."""

import signal

import pytest

from medexam.questions import Discipline, Exam, Option, Question


def pytest_configure() -> None:
    """Hear Ctrl-C, which some tests send: a shell makes what it starts in the background ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def question() -> Question:
    """HEAD-QA v1, biology 2013, question 1, in English."""
    texts = [
        "Are all-or-none.",
        "Are hyperpolarizing.",
        "They can be added.",
        "They spread long distances.",
        "They present a refractory period.",
    ]
    return Question(
        key="headqa-v1/2013/biology/1",
        exam=Exam(name="Cuaderno_2013_1_B", year=2013, discipline=Discipline.BIOLOGY),
        number=1,
        language="en",
        stem="Excitatory postsynaptic potentials:",
        options=tuple(Option(number=n, text=text) for n, text in enumerate(texts, start=1)),
    )
