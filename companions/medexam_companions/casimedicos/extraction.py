"""CasiMedicos as extraction: where in the text does the physician argue for the right option?

The archive holds no such spans, so its tasks have no right answer and say so. Their argument components are kept, to be
scored as what they are. Files in the form of SQuAD, such as the hub's, hold the spans.

A document is posed in four ways (Goenaga et al. 2023, "Explanatory argument extraction of correct answers in resident
medical exams").
"""

from collections.abc import Iterator
from pathlib import Path

from medexam.datasets import TaskReading, TaskRow
from medexam.questions import Component, Task, TaskGold
from medexam.specs import DatasetSpec
from medexam_companions.casimedicos.documents import CaseDocument, read_casimedicos
from medexam_companions.casimedicos.exam import VERSION
from medexam_companions.casimedicos.squad import read_squad

SPANS = frozenset({".json", ".jsonl", ".parquet"})
"""Files in the form of SQuAD, by their ending."""
VARIANTS = ("CQ#E", "CQP#E", "Q#CE", "QP#CE")
"""What the question holds, `#`, and what the context holds: Case, Question, Possible answers, Explanation."""
GIVEN = "given"
"""The group of tasks whose file does not tell the variant."""
NO_SPANS = (
    "CasiMedicos-Arg does not mark which part of an explanation argues for the right option, so F1 and exact match "
    "are not scored: for them, set dataset.path to a SQuAD-form file of HiTZ/casimedicos-squad or "
    "HiTZ/casimedicos-exp; here the argument components are scored instead"
)


def read_casimedicos_tasks(path: Path, spec: DatasetSpec) -> TaskReading:
    """Read the tasks at `path`: the archive, the folder that it was unpacked to, or a file in the form of SQuAD.

    Raises `DatasetError` if it cannot be read.
    """
    if path.suffix in SPANS:
        return _read_spans(path, spec)
    documents = read_casimedicos(path, spec.language)
    # A question that two physicians commented stands in the data twice, with its options in any order and case.
    options = [frozenset(map(str.casefold, each.options)) for each in documents]
    learnt = {own for own, each in zip(options, documents, strict=True) if each.split == "train"}
    rows = tuple(
        row
        for own, document in zip(options, documents, strict=True)
        for row in _rows(document, repeats_training=document.split != "train" and own in learnt)
    )
    return TaskReading(source=str(path), version=VERSION, rows=rows, notes=(NO_SPANS,))


def _read_spans(path: Path, spec: DatasetSpec) -> TaskReading:
    items = read_squad(path)
    misplaced = sum(item.is_misplaced for item in items)
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


def _rows(document: CaseDocument, *, repeats_training: bool) -> Iterator[TaskRow]:
    """Yield a task for each variant. Parts are joined by a space, options by " @@ "; the explanation ends each."""
    parts = {"C": document.case, "Q": document.question, "P": " @@ ".join(document.options), "E": document.explanation}
    for name in VARIANTS:
        question, context = (
            " ".join(filter(None, (parts[letter] for letter in letters))) for letters in name.split("#")
        )
        begins = len(context) - len(document.explanation)
        components = (Component(each.label, begins + each.start, begins + each.end) for each in document.components)
        yield TaskRow(
            Task(f"{document.key}/{name}", name, document.language, question, context=context),
            TaskGold(components=tuple(components), repeats_training=repeats_training),
            split=document.split,
        )
