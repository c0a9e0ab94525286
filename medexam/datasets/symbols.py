"""Private-use characters in published exams, read as the signs that they stand for.

Word writes signs of the fonts Symbol and Wingdings as U+F000 plus their code in that font. Without the font they show
as boxes, and models see them as such. Only codes that have one sign in these exams are read; others stay as they are.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from medexam.datasets.rows import Reading
from medexam.questions import Question

_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
_LATIN = "ABCDEFGHIKLMNOPQRSTUWXYZabcdefghiklmnopqrstuwxyz"
_GREEK = "ΑΒΧΔΕΦΓΗΙΚΛΜΝΟΠΘΡΣΤΥΩΞΨΖαβχδεφγηικλμνοπθρστυωξψζ"
_OTHERS = {
    0x2D: "−",  # noqa: RUF001
    0xA3: "≤",
    0xA5: "∞",
    0xAB: "↔",
    0xAC: "←",
    0xAD: "↑",
    0xAE: "→",
    0xAF: "↓",
    0xB0: "°",
    0xB1: "±",
    0xB3: "≥",
    0xB4: "×",  # noqa: RUF001
    0xB7: "•",
    0xB9: "≠",
    0xBA: "≡",
    0xBB: "≈",
    0xDB: "⇔",
    0xDE: "⇒",
    0xE0: "→",
}
"""Code -> sign. Of Symbol but for 0xE0, the arrow of Wingdings that Word makes of `-->`."""
SIGNS = {chr(0xF000 + ord(latin)): greek for latin, greek in zip(_LATIN, _GREEK, strict=True)}
SIGNS |= {chr(0xF000 + code): sign for code, sign in _OTHERS.items()}
"""Private-use character -> what it stands for. The letters are Symbol's, whose Greek ones lie on Latin keys."""
_TABLE = str.maketrans(SIGNS)


def find_private(question: Question) -> Iterator[str]:
    """Describe each private-use character of a question, with the sign that it stands for if it is known."""
    texts = [("the stem", question.stem), *((f"option {option.number}", option.text) for option in question.options)]
    for place, text in texts:
        for character in _PRIVATE.findall(text):
            sign = f"for {SIGNS[character]!r}" if character in SIGNS else "of no known sign"
            yield f"U+{ord(character):04X} in {place}, {sign}"


def read_signs(reading: Reading) -> Reading:
    """Write every known private-use character of `reading` as its sign, with the questions as published beside it."""
    rows, published = [], {}
    for row in reading.rows:
        question = _read(row.question)
        if question is not row.question:
            published[question.key] = row.question
            row = replace(row, question=question)
        rows.append(row)
    return replace(reading, rows=tuple(rows), published=published) if published else reading


def _read(question: Question) -> Question:
    if not any(_PRIVATE.search(text) for text in (question.stem, *(option.text for option in question.options))):
        return question
    options = tuple(option.model_copy(update={"text": option.text.translate(_TABLE)}) for option in question.options)
    read = question.model_copy(update={"stem": question.stem.translate(_TABLE), "options": options})
    return question if read == question else read
