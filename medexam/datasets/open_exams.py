"""Exams in their open setting: each question without its options, answered in words as its right options say."""

from medexam.datasets.rows import Reading, Row, TaskReading, TaskRow
from medexam.datasets.selection import split_of
from medexam.questions import Question, Task, TaskGold
from medexam.text import count_of


def drop_options(reading: Reading, exam: str) -> TaskReading:
    """Return the questions of the data set `exam` as tasks, under their keys, each in the group of its discipline.

    The texts of all right options are its right answers. Questions without an official answer are left out, and the
    notes count them.
    """
    rows = tuple(_open_row(row, row.gold, exam) for row in reading.rows if row.gold is not None)
    missing = len(reading.rows) - len(rows)
    notes = (f"left out: {count_of(missing, 'question')} without an official answer",) if missing else ()
    return TaskReading(source=reading.source, version=reading.version, rows=rows, notes=notes)


def _open_row(row: Row, gold: int, exam: str) -> TaskRow:
    question = row.question
    task = Task(
        key=question.key,
        group=str(question.exam.discipline),
        language=question.language,
        question=question.stem,
        context=question.context or "",
    )
    answers = tuple(_option_text(question, number) for number in (gold, *row.others))
    return TaskRow(task, TaskGold(answers=answers), split_of(question.exam, exam), question)


def _option_text(question: Question, number: int) -> str:
    return next(option.text for option in question.options if option.number == number)
