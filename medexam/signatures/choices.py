"""The option that a program's answer means, whichever way the program writes it."""

import re
from enum import Enum

from medexam.questions import Question
from medexam.signatures.answer_format import parse_answer
from medexam.signatures.capitals import capitals_of

_NUMBER = re.compile(r"\(?\s*([0-9]{1,3})\s*[).:]?")
_LETTER = re.compile(r"\(?\s*([A-Za-z])\s*[).:]?")
_OPENED = re.compile(r"(?P<label>\(?\s*(?:[0-9]{1,3}|[A-Za-z])\s*[).:])\s+(?P<text>.+)", re.DOTALL)


def read_choice(answer: object, question: Question) -> int | None:
    """Return the printed number of the option that `answer` means, or None.

    An answer is a printed number (3, 3.0, "3", "3."), a letter by place ("C" is the third), the option's text, either
    before its text ("C) Vitamin C"), or a reply that holds the format (`{Answer: 3}`; the last one counts). Spacing,
    case and a full stop at the end do not count in a text, unless two texts differ in case alone. An int or a float is
    a printed number.

    Where the text of an option is a letter, a letter alone is that text: "D" among A, C, D and E is the third. None if
    an answer can mean two options: the text "3" of the first beside the number 3, "(D)" among those letters, "D" where
    "Vitamin D" is another option than the fourth, or a text that several options share.
    """
    if isinstance(answer, Enum):
        answer = answer.value
    if isinstance(answer, bool) or answer is None:
        return None
    if isinstance(answer, (int, float)):
        return int(answer) if answer in question.option_numbers else None
    text = str(answer).strip()
    if (number := parse_answer(text, question.option_numbers, reasoned=True)) is not None:
        return number
    label = _by_label(text, question)
    matches = _by_text(text, question)
    if label is None or (matches and len(text) == 1 and text.isalpha()):
        return _only(matches) if matches else _labelled_text(text, question)
    bare_text = text.strip("().: ")
    capital = capitals_of({option.number: option.text for option in question.options}).get(bare_text.upper(), label)
    return _only({label, capital, *matches, *_by_text(bare_text, question)})


def _labelled_text(text: str, question: Question) -> int | None:
    """Return the option whose label stands before its text; "1. Vitamin C" beside an option 3 of that text is none."""
    match = _OPENED.fullmatch(text)
    if match is None:
        return None
    label = _by_label(match["label"], question)
    number = _only(_by_text(match["text"], question)) or read_choice(match["text"], question)
    return number if number == label else None


def _by_label(text: str, question: Question) -> int | None:
    """Return the option that a number or a letter alone stands for, whatever the options' texts are."""
    numbers = question.option_numbers
    if (number := _NUMBER.fullmatch(text)) is not None:
        return int(number[1]) if int(number[1]) in numbers else None
    if (letter := _LETTER.fullmatch(text)) is not None:
        place = ord(letter[1].upper()) - ord("A")
        return numbers[place] if place < len(numbers) else None
    return None


def _by_text(text: str, question: Question) -> set[int]:
    """Return the options of this text; those of the same case alone if there are any."""
    matches = [option for option in question.options if _plain(option.text).casefold() == _plain(text).casefold()]
    exact_matches = [option for option in matches if _plain(option.text) == _plain(text)]
    return {option.number for option in exact_matches or matches}


def _only(numbers: set[int]) -> int | None:
    return next(iter(numbers)) if len(numbers) == 1 else None


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
