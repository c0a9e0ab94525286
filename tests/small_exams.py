"""Four small exams in HEAD-QA v1's form, on the disk, and stored runs over them whose outcomes are letters."""

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from medexam.datasets import load_exam_set
from medexam.predictions import Failure, Reason, Status
from medexam.specs import DatasetSpec
from stored_runs import write_run

FILES = {"en": "HEAD_EN.json", "es": "HEAD.json"}
WORDS = {"en": "Which is it", "es": "Cuál es"}
RAN = {
    "ended_at": "2026-11-20T10:05:00+00:00",
    "medexam": "0.1.0",
    "git_commit": "c0ffee+changes",
    "engine": {"engine": "embedded", "revision": "main", "guided_by": "next_token"},
}


def gold_of(number: int) -> int:
    """The right option of an exam's question of this number."""
    return number % 4 + 1


def write_exams(folder: Path, **changed: Any) -> Path:
    """Write two disciplines in two years, five questions each: five options in 2013, four in 2015.

    `changed` are fields of the first question of biology 2013.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for language, file in FILES.items():
        exams = {}
        for category in ("biology", "medicine"):
            for year, options in ((2013, 5), (2015, 4)):
                name = f"Cuaderno_{year}_1_{category[0].upper()}"
                data = [
                    {
                        "qid": str(number),
                        "qtext": f"{WORDS[language]}, {category} {year} number {number}?",
                        "ra": str(gold_of(number)),
                        "image": None,
                        "answers": [{"aid": n, "atext": f"{'x' * n} {number}"} for n in range(1, options + 1)],
                    }
                    for number in range(1, 6)
                ]
                exams[name] = {"name": name, "year": str(year), "category": category, "data": data}
        exams["Cuaderno_2013_1_B"]["data"][0] |= changed
        document = {"version": "1.0", "language": language, "exams": exams}
        (folder / file).write_text(json.dumps(document), encoding="utf-8")
    return folder


def _reply(letter: str, question: Any, gold: int) -> dict[str, Any] | None:
    """What a letter says: right, wrong, another wrong option, unanswered, failed, or missing."""
    if letter in "rwo":
        answer = gold if letter == "r" else [n for n in question.option_numbers if n != gold]["wo".index(letter)]
        return {"status": Status.ANSWERED, "answer": answer, "reply": f"{{Answer: {answer}}}"}
    return {
        "u": {"status": Status.UNANSWERED, "reason": Reason.UNPARSED, "reply": "I would say | ```\nthe first"},
        "f": {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="connection refused")},
        "m": None,
    }[letter]


@pytest.fixture
def exam_files(tmp_path) -> Path:
    return write_exams(tmp_path / "data")


@pytest.fixture
def make_run(tmp_path, exam_files) -> Callable[..., Path]:
    """`make_run({"kind": "zero_shot"}, "rrw")` -> the folder of a stored run; its outcomes are repeated.

    `extra` maps a question to more fields of its prediction; `dataset` adds to the spec, such as a selection.
    """

    def make(
        program,
        outcomes,
        *,
        run_id=None,
        model=None,
        language="en",
        extra=None,
        name="demo",
        environment=None,
        warnings=(),
        **dataset,
    ):
        dataset = {"path": exam_files, **dataset}
        exams = load_exam_set(DatasetSpec(name="headqa_v1", language=language, **dataset))
        letters = cycle(outcomes)

        def answer(question, gold):
            fields = _reply(next(letters), question, gold)
            if fields is None:
                return None
            costs = {"prompt_tokens": 90, "completion_tokens": 5, "latency_s": 0.25} if model else {}
            return {**fields, **costs, **(extra(question) if extra else {})}

        kind = program["kind"]
        path = tmp_path / "runs" / (run_id or f"{kind}-{language}")
        number = 1
        while path.exists():
            number += 1
            path = path.with_name(f"{kind}-{language}-{number}")
        environment = {**RAN, **(environment or {})}
        folder = write_run(
            path,
            exams,
            program,
            answer,
            model=model,
            environment=environment,
            name=name,
            dataset=dataset,
            warnings=warnings,
        )
        return folder.path

    return make
