"""Run folders of real questions with predictions made by hand, for tests and benches: no model is asked."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.experiments import RunFolder, begin_run, current_run
from medexam.questions import AnswerKey, AnySet, ExamSet, Question
from medexam.specs import CellSpec, build_identity, digest
from predicted import predicted

Answer = Callable[[Any, Any], Mapping[str, Any] | None]
"""From a question or task and its gold to the fields of a prediction that say how it came out; None: not asked yet."""
TIMES = {"started_at": "2026-11-20T10:00:00+00:00", "ended_at": "2026-11-20T10:30:00+00:00"}


def without_times(prediction: Mapping[str, Any]) -> dict[str, Any]:
    """What a prediction says that is the same in two runs of a cell: all but the seconds that it took and waited."""
    return {name: value for name, value in prediction.items() if name not in {"latency_s"}}


def write_run(
    path: Path,
    exams: AnySet,
    program: Mapping[str, Any],
    answer: Answer,
    *,
    model: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    name: str = "demo",
    dataset: Mapping[str, Any] | None = None,
    warnings: tuple[str, ...] = (),
    scored: bool = True,
) -> RunFolder:
    """Write and score a run over all questions of `exams`; `dataset` adds to the spec's part of that name.

    A run that is there goes on with this selection. Not `scored`: its process was killed before it could score.
    """
    cell = CellSpec.model_validate(
        {
            "name": name,
            "dataset": {"name": exams.name, "language": exams.language, **(dataset or {})},
            "model": model or {},
            "program": program,
        }
    )
    known = build_identity(cell, fingerprint=exams.fingerprint, words={})
    folder = write_cell(path, cell, known, exams, answer, environment or {}, warnings=warnings)
    if scored:
        current_run(folder, str)
    return folder


def write_cell(
    path: Path,
    cell: CellSpec,
    known: dict[str, Any],
    exams: AnySet,
    answer: Answer,
    environment: Mapping[str, Any],
    **record: Any,
) -> RunFolder:
    """Write a run of this identity that is not scored; `record` replaces what its record says by default."""
    folder = RunFolder(path)
    folder.create()
    begin_run(folder, exams, **record, identity=known, cell=cell)
    folder.write_json("environment.json", {**TIMES, **environment})
    with folder.appending() as log:
        for question in exams.questions:
            gold = getattr(exams.golds[question.key], "number", exams.golds[question.key])
            fields = answer(question, gold)
            if fields is not None:
                same = {"question": question.key, "program": cell.program.kind, "spec_digest": digest(known)}
                log.append(predicted(**same, **fields))
    return folder


def made_up_exams(questions: Sequence[Question], key: AnswerKey) -> ExamSet:
    """Questions that were read from no file."""
    return ExamSet(
        name="headqa_sample",
        language="en",
        version="1.0",
        source="the package",
        fingerprint="ab" * 32,
        golds_fingerprint="cd" * 32,
        questions=tuple(questions),
        golds=key,
    )
