"""The option that a program's answer means, whichever way the program writes it."""

import re
from collections import Counter
from collections.abc import Mapping
from enum import Enum

from medexam.questions import Question
from medexam.signatures.answer_format import parse_answer

_LABEL = re.compile(r"\(?\s*(?:(?P<number>[0-9]{1,3})|(?P<letter>[A-Za-z]))\s*[).:]?")
_OPENED = re.compile(r"(?P<label>\(?\s*(?:[0-9]{1,3}|[A-Za-z])\s*[).:])\s+(?P<text>.+)", re.DOTALL)
_CAPITAL = re.compile(r"(?<![\w'-])[A-Z](?![\w'-])")
_SHORT = 3
"""Most words of an option that a capital among them may stand for: "Vitamin D", "B lymphocytes"."""


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
    label, matches = _by_label(text, question), _by_text(text, question)
    if matches and (label is None or (len(text) == 1 and text.isalpha())):
        return _only(matches)
    if label is not None:
        bare_text = text.strip("().: ")
        capital = capitals_of({one.number: one.text for one in question.options}).get(bare_text.upper(), label)
        return _only({label, capital, *matches, *_by_text(bare_text, question)})
    # "1. Vitamin C" beside an option 3 of that text is none.
    if (match := _OPENED.fullmatch(text)) is None:
        return None
    number = _only(_by_text(match["text"], question)) or read_choice(match["text"], question)
    return number if number == _by_label(match["label"], question) else None


def capitals_of(options: Mapping[int, str]) -> Mapping[str, int]:
    """Return the option that a capital alone tells from the others, by that capital: a reply of it may mean that one.

    `options`: printed number -> text. "Vitamin A" and "Vitamin C" give A and C. Empty if one option alone has such a
    letter, for that may be an article or a name.
    """
    pairs = [
        (letter, number)
        for number, text in options.items()
        if len(text.split()) <= _SHORT
        for letter in {*_CAPITAL.findall(text)}
    ]
    count = Counter(letter for letter, _ in pairs)
    capitals = {letter: number for letter, number in pairs if count[letter] == 1}
    return capitals if len(set(capitals.values())) > 1 else {}


def _by_label(text: str, question: Question) -> int | None:
    """Return the option that a number or a letter alone stands for, whatever the options' texts are."""
    match, numbers = _LABEL.fullmatch(text), question.option_numbers
    if match is None:
        return None
    by_place = dict(enumerate(numbers, start=ord("A")))
    number = int(match["number"]) if match["number"] else by_place.get(ord(match["letter"].upper()))
    return number if number in numbers else None


def _by_text(text: str, question: Question) -> set[int]:
    """Return the options of this text; those of the same case alone if there are any."""
    plain = {option.number: " ".join(option.text.split()).rstrip(".") for option in question.options}
    text = " ".join(text.split()).rstrip(".")
    exact = {number for number, one in plain.items() if one == text}
    return exact or {number for number, one in plain.items() if one.casefold() == text.casefold()}


def _only(numbers: set[int]) -> int | None:
    return next(iter(numbers)) if len(numbers) == 1 else None
