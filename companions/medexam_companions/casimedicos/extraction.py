"""CasiMedicos as extraction: where in the text does the physician argue for the right option?

The archive holds no such spans, so its tasks have no right answer and say so. Their argument components are kept, to be
scored as what they are. Files in the form of SQuAD, such as the hub's, hold the spans.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, cast

from medexam.datasets import TaskReading, TaskRow, read_squad
from medexam.questions import Component, Task, TaskGold
from medexam.specs import DatasetSpec
from medexam_companions.casimedicos.documents import CaseDocument, CaseLanguage, read_casimedicos, shared_options
from medexam_companions.casimedicos.exam import VERSION, casimedicos_place

SPANS = frozenset({".json", ".jsonl", ".parquet"})
"""Files in the form of SQuAD, by their ending."""
GIVEN = "given"
"""The group of tasks whose file does not tell the variant."""
NO_SPANS = (
    "CasiMedicos-Arg does not mark which part of an explanation argues for the right option, so F1 and exact match "
    "are not scored: for them, set dataset.path to a SQuAD-form file of HiTZ/casimedicos-squad or "
    "HiTZ/casimedicos-exp; here the argument components are scored instead"
)


class ExplanationVariant(NamedTuple):
    """One way to pose the question whose answer is the part of the explanation that argues for the right option."""

    name: str
    """What the question holds, `#`, and what the context holds: Case, Question, Possible answers, Explanation."""
    question: str
    context: str


def explanation_variants(document: CaseDocument) -> tuple[ExplanationVariant, ...]:
    """Make CQ#E, CQP#E, Q#CE and QP#CE of `document`, in this order; parts are joined by a space, options by " @@ ".

    Goenaga et al. (2023), "Explanatory argument extraction of correct answers in resident medical exams".
    """
    case, question, explanation = document.case, document.question, document.explanation
    options = " @@ ".join(document.options)
    return (
        ExplanationVariant("CQ#E", _join(case, question), explanation),
        ExplanationVariant("CQP#E", _join(case, question, options), explanation),
        ExplanationVariant("Q#CE", question, _join(case, explanation)),
        ExplanationVariant("QP#CE", _join(question, options), _join(case, explanation)),
    )


def _join(*parts: str) -> str:
    return " ".join(filter(None, parts))


def read_casimedicos_tasks(path: Path, spec: DatasetSpec) -> TaskReading:
    """Read the tasks at `path`: the archive, the folder that it was unpacked to, or a file in the form of SQuAD.

    Raises `DatasetError` if it cannot be read.
    """
    return _read_spans(path, spec) if path.suffix in SPANS else _read_archive(casimedicos_place(path), spec)


def _read_spans(path: Path, spec: DatasetSpec) -> TaskReading:
    items = read_squad(path)
    misplaced = sum(bool(item.anomalies) for item in items)
    notes = [f"{misplaced} of {len(items)} answers are not where the file says"] if misplaced else []
    return TaskReading(
        source=str(path),
        version="SQuAD form",
        rows=tuple(
            TaskRow(
                Task(item.key, item.variant or GIVEN, spec.language, item.question, context=item.context),
                TaskGold(answers=item.references),
                split=None,
            )
            for item in items
        ),
        notes=tuple(notes),
    )


def _read_archive(path: Path, spec: DatasetSpec) -> TaskReading:
    language = cast(CaseLanguage, spec.language)
    documents = read_casimedicos(path, language)
    repeated = frozenset(shared_options(documents))
    rows = tuple(row for document in documents for row in _rows(document, repeats_training=document.key in repeated))
    return TaskReading(source=str(path), version=VERSION, rows=rows, notes=(NO_SPANS,))


def _rows(document: CaseDocument, *, repeats_training: bool) -> Iterator[TaskRow]:
    for variant in explanation_variants(document):
        task = Task(
            key=f"{document.key}/{variant.name}",
            group=variant.name,
            language=document.language,
            question=variant.question,
            context=variant.context,
        )
        gold = TaskGold(components=_components(document, variant), repeats_training=repeats_training)
        yield TaskRow(task, gold, split=document.split)


def _components(document: CaseDocument, variant: ExplanationVariant) -> tuple[Component, ...]:
    """List the components of the explanation, which ends the context of every variant."""
    begins = len(variant.context) - len(document.explanation)
    return tuple(
        Component(component.kind, begins + component.start, begins + component.end)
        for component in document.components
        if component.part == "explanation"
    )
