"""A question as the text that a translator sees, and that text as a question again.

The layout is the exams' own: the stem, then each option on a line of its own behind its printed number. A prompt
for a translation shows it, and a reply is read by it. It knows nothing of languages and of models.
"""

import re
from dataclasses import dataclass

from medexam import Question
from medexam.questions import Task

_MARK = re.compile(r"(?P<number>\d{1,2})\. (?P<text>.*)|(?P<bare>\d{1,2})\.")


@dataclass(frozen=True, slots=True)
class QuestionText:
    """The words of a question in some language, which need not be one that exams are published in."""

    key: str
    """The question's key, the same in every language."""
    stem: str
    options: tuple[tuple[int, str], ...]
    """Printed number and text of each option, in order."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The printed numbers of the options."""
        return tuple(number for number, _ in self.options)


def text_of(question: Question) -> QuestionText:
    """Return the words of `question`."""
    return QuestionText(question.key, question.stem, tuple((option.number, option.text) for option in question.options))


def text_of_task(task: Task) -> QuestionText:
    """Return the text that a task asks for in another language."""
    options = (line.partition(". ") for line in task.options)
    return QuestionText(source_key(task.key), task.question, tuple((int(number), text) for number, _, text in options))


def source_key(key: str) -> str:
    """Return the question's key of an item's."""
    return key.rsplit("/", 2)[0]


def render_layout(text: QuestionText) -> str:
    """Render the stem and the options as lines; white space within an option becomes single blanks.

    Which vitamin is soluble in water?
    1. Vitamin A.
    2. Vitamin C.
    """
    return "\n".join([text.stem.strip(), *(f"{number}. {' '.join(words.split())}" for number, words in text.options)])


def parse_layout(key: str, text: str) -> QuestionText:
    """Read the question that a text in this layout holds, whatever is wrong with it: see
    `medexam_companions.translation.Fault`.

    The options begin at the first line behind the first that carries the mark 1, or at the first line where that is
    the only one so marked. A line without a mark belongs to what stands before it.
    """
    lines = text.strip().split("\n")
    marks = [_MARK.fullmatch(line.strip()) for line in lines]
    begins = find_first_option([_number(mark) for mark in marks])
    stem: list[str] = lines[:begins]
    options: list[tuple[int, str]] = []
    for line, mark in zip(lines[begins:], marks[begins:], strict=True):
        if mark is not None:
            options.append((_number(mark) or 0, (mark["text"] or "").strip()))
        elif options:
            number, words = options[-1]
            options[-1] = (number, f"{words} {line.strip()}".strip())
        else:
            stem.append(line)
    return QuestionText(key, "\n".join(stem).strip(), tuple(options))


def find_first_option(numbers: list[int | None]) -> int:
    """Find where the options begin in lines that carry these marks, None being no mark; their number if there are none.

    Without a mark 1, at the first line behind the first that carries any mark.
    """
    ones = [place for place, number in enumerate(numbers) if number == 1]
    if ones:
        return next((place for place in ones if place > 0), 0)
    return next((place for place, number in enumerate(numbers) if number is not None and place > 0), len(numbers))


def _number(mark: re.Match[str] | None) -> int | None:
    return None if mark is None else int(mark["number"] or mark["bare"])
