"""Which exams teach, choose and are tested: none does two of these, and no question is shown again in other words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from medexam.datasets import load_exam_set
from medexam.errors import SpecError
from medexam.experiments.plan.leakage import near_duplicates
from medexam.items import ExamSet
from medexam.questions import Exam
from medexam.specs import DatasetSpec, OptimizerSpec
from medexam.specs.identity import digest


@dataclass(frozen=True)
class ExamSplit:
    """The questions of an optimization."""

    train: ExamSet
    """Those that may be shown."""
    validation: ExamSet
    """Those that candidates are chosen by."""
    tested: int
    """The number of questions that the program is for; none of them is asked or shown."""
    dropped: tuple[str, ...]
    """Keys of training questions that are nearly tested or validation questions; never shown."""


def load_exam_split(dataset: DatasetSpec, optimizer: OptimizerSpec) -> ExamSplit:
    """Read the questions; raises `SpecError` if two parts share an exam, or none is left to teach."""
    tested = load_exam_set(dataset)
    train = load_exam_set(optimizer.train.of(dataset))
    validation = load_exam_set(optimizer.validation.of(dataset))
    _check_apart({"optimizer.train": train, "optimizer.validation": validation, "dataset": tested})
    near = near_duplicates(train.questions, [*validation.questions, *tested.questions])
    dropped = {question.key for question in near}
    kept = tuple(question for question in train.questions if question.key not in dropped)
    if not kept:
        raise SpecError("optimizer.train: every question is nearly one that is tested; choose other exams")
    return ExamSplit(
        replace(train, questions=kept), validation, tested=len(tested.questions), dropped=tuple(sorted(dropped))
    )


def digest_golds(exam_set: ExamSet) -> str:
    """A digest of the questions and of the golds that teach or choose."""
    return digest({"golds": [[question.key, exam_set.golds[question.key].number] for question in exam_set.questions]})


def _check_apart(sets: Mapping[str, ExamSet]) -> None:
    seen: dict[Exam, str] = {}
    for name, exam_set in sets.items():
        for exam in {question.exam for question in exam_set.questions}:
            other = seen.setdefault(exam, name)
            if other != name:
                held = exam.name if exam.year is None else f"{exam.discipline} {exam.year}"
                raise SpecError(
                    f"{other} and {name} both hold questions of {held}: an exam teaches, "
                    "chooses or is tested; give each its own years or split, such as train, dev and test"
                )
