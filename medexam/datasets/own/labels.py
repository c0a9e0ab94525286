"""Reads options that stand in one text behind letters or numbers, and what such labels are.

It knows no table: whether letters before options are labels is decided for all rows, see `options`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from medexam.errors import DatasetError

_END = r"[)\].:）．、：]"  # noqa: RUF001 - full-width marks of Chinese and Japanese
_MARK = rf"[(\[]?((?:[^\W\d_]|\d{{1,2}})(?={_END})|[①-⑳]){_END}?"
_SIGN = r"((?:[*✓✔√=+]|\[x\])?)"
_AT_LINES = re.compile(rf"(?m)^[ \t]*{_SIGN}[ \t]*{_MARK}[ \t]*")
_IN_LINES = re.compile(rf"(?:^|(?<=\s))(){_MARK}[ \t]+")
_BARE = re.compile(r"(?m)^[ \t]*()([A-Z]|[①-⑳])[ \t]+")
OWN_MARK = re.compile(rf"\s*{_SIGN}\s*{_MARK}\s+")
CLOSE_MARK = re.compile(rf"\s*{_SIGN}\s*(?:{_MARK}|([A-Za-z\d])\s[-–](?=\s))\s*")  # noqa: RUF001
CLOSE_LETTER = re.compile(rf"(\s*)[(\[]?([^\W\d_]){_END}\s*")
"""A label before an option; one that may stand close to it, as in `(A)text`."""
ALPHABETS = ("abcdefghijklmnopqrst", "αβγδεζ", "абвгдеж", "ابجدهو", "أبجدهو", "アイウエオカ", "甲乙丙丁戊己", "กขคงจ")
"""Letters that count."""
_FIRST = frozenset({"1", *(letters[0] for letters in ALPHABETS), *(letters[0].upper() for letters in ALPHABETS)})
_BREAK = re.compile(r"\s*<br ?/?>\s*", re.IGNORECASE)
CUE = re.compile(
    r"\s+[(\[]?(?:(?:the|correct|right)\s)*(?:answer|ans|key|respuesta|réponse|antwort|risposta|resposta|答案|正解|ответ)"
    r"(?:\s\w+)?\s?[:：]\s*(.*)\Z",  # noqa: RUF001 - a full-width colon
    re.IGNORECASE | re.DOTALL,
)
"""What asks for the answer, behind the last option."""


_LEAD = re.compile(
    r"\n\s*(?:\w+\s)?(?:options?|choices?|opciones|alternativas|opzioni|opções|antworten)\s*[:：]\s*\Z",  # noqa: RUF001
    re.IGNORECASE,
)
"""What stands before the first option, on a line of its own."""
Numbers = tuple[int, ...]
"""The numbers of right options, from 1, in ascending order; at least one."""


class OpenFieldError(DatasetError):
    """Rows that can be read in several ways, between which a field of `columns` decides."""

    def __init__(
        self,
        where: str,
        facts: str,
        field: str,
        values: str,
        readings: Mapping[str, Sequence[Numbers | None]] = MappingProxyType({}),
    ) -> None:
        super().__init__(f"{where}{facts}: say which with columns: {{{field}: {values}}}")
        self.field, self.detail = field, f"{values}: {facts}"
        """The field, and its values with what speaks for each."""
        self.readings = readings
        """Way to read answers -> the right options of each row in it."""


class CellError(ValueError):
    """What is wrong with a column of one row."""

    def __init__(self, column: str, detail: str) -> None:
        super().__init__(detail)
        self.column = column
        self.detail = detail


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a question, in the order shown."""

    stem: str
    """Without the options, if they stand in it."""
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    """What the source calls each, such as its letter; None if it only orders them."""
    column: str = ""
    """Where they stand, for messages; empty at the end of the stem."""
    right: tuple[bool, ...] | None = None
    """Which of them a sign marks as right; None if none is looked for."""


def split_marked(text: str, *, bare: bool = False) -> ReadOptions | None:
    """Split a text that ends in options behind letters or numbers, `A) ... B) ...` or `1. ...`; None if it does not.

    Marks at the beginning of lines come first. Of a list of numbers and a later one of letters the letters are meant:
    the numbers are statements. `bare` also takes letters at the beginning of lines without a mark. Raises `CellError`
    if the letters have gaps.
    """
    text = _BREAK.sub("\n", text) if "<" in text else text
    for pattern in (_AT_LINES, _IN_LINES, *([_BARE] if bare else [])):
        marks, at_lines = list(pattern.finditer(text)), pattern is not _IN_LINES
        chains = list(_chains(marks))
        if chains:
            best = max(chains, key=lambda chain: (not plain_label(chain[0][2]).isdigit(), len(chain), chain[0].start()))
            best = _with_stray(marks, best, at_lines=at_lines)
            ends = [after.start() for _, after in pairwise(best)] + [len(text)]
            texts = [mark[1] + text[mark.end() : end].strip() for mark, end in zip(best, ends, strict=True)]
            cue = CUE.search(texts[-1])
            if cue is not None and cue[1]:
                raise CellError("", f"holds the answer after its options, {cue[0].strip()!r:.40}")
            texts[-1] = texts[-1] if cue is None else texts[-1][: cue.start()]
            labels = tuple(plain_label(mark[2]) for mark in best)
            stem = _LEAD.sub("", text[: best[0].start()]).strip()
            return ReadOptions(stem, tuple(_without_separators(texts)), labels)
    return None


def _without_separators(texts: list[str]) -> list[str]:
    """Strip the options of the sign that stands behind each but the last."""
    ends = {text[-1:] for text in texts[:-1]}
    return [text.rstrip(" ,;|/") for text in texts] if len(ends) == 1 and ends <= {*",;|/"} else texts


def _with_stray(marks: Sequence[re.Match[str]], chain: list[re.Match[str]], *, at_lines: bool) -> list[re.Match[str]]:
    """Add to the marks of a chain those of the next letters that stand out of order; raise `CellError` for gaps."""
    style, labels = _style(chain[0]), [plain_label(mark[2]) for mark in chain]
    # Within a line, a letter or a number before a full stop is often the end of a sentence.
    if not at_lines and (style.startswith(".") or labels[0].isdigit()):
        return chain
    following = [shift(labels[0], len(labels)), shift(labels[0], len(labels) + 1)]
    style_marks = [mark for mark in marks if _style(mark) == style and (at_lines or mark.start() >= chain[0].start())]
    stray_marks = [mark for mark in style_marks if plain_label(mark[2]) in following]
    if not stray_marks:
        return chain
    all_marks = sorted({*chain, *stray_marks}, key=lambda mark: mark.start())
    if not at_lines or not is_run([plain_label(mark[2]) for mark in all_marks]):
        letters = ", ".join(mark[2] for mark in all_marks)
        raise CellError("", f"holds options with the letters {letters}, which are not in order")
    return all_marks


def _style(mark: re.Match[str]) -> str:
    """Return what marks of one list have in common: the sign behind, and small letters, capitals or numbers."""
    label, end = plain_label(mark[2]), mark[0].strip()[-1]
    kind = "1" if label.isdigit() else "A" if label.isupper() else "a"
    return kind if end.isalnum() else end + kind


def shift(label: str, distance: int) -> str:
    """Return the label that stands `distance` places behind another; empty if there is none."""
    if label.isdigit():
        return str(int(label) + distance)
    letters = next((letters for letters in ALPHABETS if label.lower() in letters), "")
    letter = letters[letters.find(label.lower()) + distance :][:1]
    return letter.upper() if label.isupper() else letter


def _chains(marks: Sequence[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Find from each A, a or 1 the marks that count on from it; those of two marks or more."""
    for place, first in enumerate(marks):
        chain = [first] if plain_label(first[2]) in _FIRST else []
        for mark in marks[place + 1 :] if chain else ():
            if plain_label(mark[2]) == shift(plain_label(chain[-1][2]), 1):
                chain.append(mark)
        if len(chain) > 1:
            yield chain


def plain_label(label: str) -> str:
    """Write a label as plain letter or number: `①` is 1."""
    return label if label.isascii() else unicodedata.normalize("NFKC", label)


def is_run(labels: Sequence[str]) -> bool:
    """Return whether the labels are the first letters or numbers, each once, in any order."""
    first = next((label for label in labels if label in _FIRST), None)
    return (
        first is not None
        and len(labels) > 1
        and {*labels} == {shift(first, distance) for distance in range(len(labels))}
    )


def in_order(labels: Iterable[str]) -> list[str]:
    """List letters or numbers in the order in which they count."""
    return sorted(labels, key=lambda label: (len(label), label))
