"""CasiMedicos as an exam: each document a question with numbered options, like those of any other data set here."""

from collections.abc import Sequence
from pathlib import Path

from medexam import Question
from medexam.datasets import Reading, Row
from medexam.questions import Discipline, Exam, Language, Option
from medexam_companions.casimedicos.documents import CaseDocument, read_casimedicos

VERSION = "CasiMedicos-Arg"


def read_casimedicos_exam(files: Sequence[Path], language: Language, explained: bool) -> Reading:
    """Read all 553 questions in `language`; with `explained` the physician's explanation stands before each.

    The files tell neither the year nor the number printed in the exam, so an exam is a split of theirs, without a year,
    and a number is the place in it, from 1. Raises `DatasetError` as `read_casimedicos` does.
    """
    documents = read_casimedicos(files[0], language)
    return Reading(
        source=str(files[0]),
        folder=files[0].parent,
        version=VERSION,
        rows=tuple(Row(_question(document, explained=explained), document.correct) for document in documents),
        faults=(),
    )


def _question(document: CaseDocument, *, explained: bool) -> Question:
    question_text = f"{document.case} {document.question}".strip()
    number = int(document.key.rsplit("/", 1)[-1]) + 1
    return Question(
        key=document.key,
        exam=Exam(
            name=f"casimedicos-{document.split}", year=None, discipline=Discipline.MEDICINE, split=document.split
        ),
        number=number,
        language=document.language,
        stem=f"{document.explanation}\n\n{question_text}" if explained else question_text,
        options=tuple(Option(number=place, text=text) for place, text in enumerate(document.options, start=1)),
    )
