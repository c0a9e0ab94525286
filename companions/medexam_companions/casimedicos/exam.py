"""CasiMedicos as an exam: each document a question with numbered options, like those of any other data set here."""

from collections.abc import Sequence
from pathlib import Path

from medexam import Question
from medexam.datasets import Reading, Row
from medexam.questions import Discipline, Exam, Language, Option
from medexam_companions.casimedicos.documents import read_casimedicos

VERSION = "CasiMedicos-Arg"


def read_casimedicos_exam(files: Sequence[Path], language: Language, explained: bool) -> Reading:
    """Read all 553 questions in `language`; with `explained` the physician's explanation stands before each.

    The files tell neither the year nor the number printed in the exam, so an exam is a split of theirs, without a year,
    and a number is the place in it, from 1. Raises `DatasetError` as `read_casimedicos` does.
    """
    rows = []
    for each in read_casimedicos(files[0], language):
        text = f"{each.case} {each.question}".strip()
        question = Question(
            key=each.key,
            exam=Exam(name=f"casimedicos-{each.split}", year=None, discipline=Discipline.MEDICINE, split=each.split),
            number=int(each.key.rsplit("/", 1)[-1]) + 1,
            language=each.language,
            stem=f"{each.explanation}\n\n{text}" if explained else text,
            options=tuple(Option(number=place, text=text) for place, text in enumerate(each.options, start=1)),
        )
        rows.append(Row(question, each.correct))
    return Reading(source=str(files[0]), version=VERSION, rows=tuple(rows))
