"""Stored runs made by hand: real folders, real metrics, no model. A folder imports them in its `conftest.py`."""

import pytest

from medexam.experiments import current_run
from medexam.predictions import Failure, Reason, Status
from medexam.questions import AnswerKey, Discipline, Exam, Gold, Option, Question
from medexam.specs import CellSpec, build_identity, digest
from stored_runs import made_up_exams, write_cell

REPLIES = {
    "r": {"status": Status.ANSWERED, "answer": 1, "reply": "{Answer: 1}"},
    "w": {"status": Status.ANSWERED, "answer": 2, "reply": "{Answer: 2}"},
    "u": {"status": Status.UNANSWERED, "reason": Reason.UNPARSED, "reply": "I would say | ```\nthe first"},
    "f": {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="connection refused")},
}
"""What a letter of `outcomes` stands for; `m` is a question without a prediction. The gold is always 1."""
RAN = {
    "ended_at": "2026-11-20T10:05:00+00:00",
    "medexam": "0.1.0",
    "git_commit": "c0ffee" + "+changes",
    "engine": {"engine": "embedded", "revision": "main", "guided_by": "next_token"},
}


@pytest.fixture
def no_collection(monkeypatch):
    """Each training ends without accelerate's collection of garbage, which takes half a second, and a training less."""
    monkeypatch.setattr("accelerate.utils.memory.clear_device_cache", lambda garbage_collection=False: None)


@pytest.fixture
def exam_questions() -> list[Question]:
    """Two disciplines in two years, five questions each: five options in 2013, four in 2015."""
    return [
        Question(
            key=f"headqa-v1/{year}/{discipline}/{number}",
            exam=Exam(name=f"Cuaderno_{year}_1_{discipline[0].upper()}", year=year, discipline=Discipline(discipline)),
            number=number,
            language="en",
            stem="Which?",
            options=tuple(Option(number=n, text="x" * n) for n in range(1, options + 1)),
        )
        for discipline in ("biology", "medicine")
        for year, options in ((2013, 5), (2015, 4))
        for number in range(1, 6)
    ]


@pytest.fixture
def answer_key(exam_questions) -> AnswerKey:
    return AnswerKey({question.key: Gold(number=1) for question in exam_questions})


@pytest.fixture
def make_run(tmp_path, exam_questions, answer_key):
    """`make_run({"kind": "zero_shot"}, "rrw")` -> StoredRun; outcomes are repeated over the twenty questions.

    `extra` maps a question to more fields of its prediction.
    """

    def make(program, outcomes, *, run_id=None, model=None, language="en", name="demo", extra=None):
        cell = CellSpec.model_validate(
            {"name": name, "dataset": {"language": language}, "model": model or {}, "program": program}
        )
        known = build_identity(
            cell,
            fingerprint="0" * 64,
            words={"prompt": "Answer."},
            model={"engine": cell.model.engine, "name": cell.model.name},
        )
        exams = made_up_exams(exam_questions, answer_key)
        outcome_of = {question.key: outcome for question, outcome in zip(exam_questions, outcomes * 20, strict=False)}

        def answer(question, gold):
            if (outcome := outcome_of[question.key]) == "m":
                return None
            fields = {"prompt_tokens": 90, "completion_tokens": 5, "latency_s": 0.25} if model else {}
            return {**REPLIES[outcome], **fields, **(extra(question) if extra else {})}

        path = tmp_path / "runs" / (run_id or f"{name}-{cell.program.label}-{language}-{digest(known)}")
        return current_run(write_cell(path, cell, known, exams, answer, RAN, description="Made by hand."), str)

    return make
