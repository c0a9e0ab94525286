r"""The lenient reader of replies: the option that a careful marker would read where the strict reader finds none.

lm-evaluation-harness prints `flexible-extract` beside `strict-match`; this is the like, except that it reads nothing
rather than a guess. It looks for statements ("The answer is (C)", "\boxed{3}", "Option 3 is the correct answer"), for
an option alone in a line, and for an option's own text. Everything here is a pure function of text.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from medexam.signatures.answer_format import is_stated, plain_forms
from medexam.signatures.answer_words import (
    AFTER_SIGN,
    ALTERNATIVE,
    BOXED,
    CONCLUSION,
    DOUBT,
    LABEL_LINE,
    LABELLED,
    LINK,
    NOUN,
    NOUN_STEMS,
    NUMBER_WORDS,
    OPENER,
    REASON,
    TAKEN_BACK,
    UNJOINED,
    VERB,
    VERB_STEMS,
    WRONG,
)
from medexam.signatures.capitals import capitals_of

_MARKUP = re.compile(
    r"\*+|`+|(?<!\w)_+|_+(?!\w)|\$+|\\[()\[\]]|</?(?:b|strong|i|em|p|br|span|u)\b[^>]*>|[\ufe0f\u20e3]"
)
"""Marks of Markdown, LaTeX and HTML, and the two that make a key cap of a digit."""
_MARKS = re.compile(r"[*`_$\\<\ufe0f\u20e3]")
"""What a text with such marks holds one of; the look costs less than the pattern."""
_LATEX_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathsf)\s*\{([^{}]*)\}")
"""A text within a formula of LaTeX."""
_NO_WORD = "(?!(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])\\w|'\\w)"
"""What may not follow a letter: a Latin one would make it a word, a Chinese sign does not."""
_SIGN = re.compile(
    rf"(?P<number>[0-9]{{1,3}})(?![0-9])|(?P<letter>[A-J]){_NO_WORD}|(?P<cyrillic>[АБГД]){_NO_WORD}"
    rf"|(?P<small>[a-j]){_NO_WORD}|(?P<word>[^\W\d_]+)"
)
"""What may name an option: a number, a letter by place, or a word for a number."""
_CLOSERS = re.compile(r"[\s)\]}>\"'\u2018\u2019\u201c\u201d\u00bb\u300d\u3011.,;:!\u3002\u2013\u2014-]*")
"""Brackets, quotation marks and points behind an option."""
_MARKED = re.compile(r"[)\]}.:,]|\s*[-\u2013\u2014]\s|\Z")
"""What follows a small letter that names an option; anything else makes it a word."""
_ANSWER_LINE = re.compile(r"\s*:\s*[(\[\"']*(?:[0-9]{1,2}|[A-J])(?!\w)")
"""What makes of an A the word for the answer."""
_LABELS = re.compile(r"(?:option|choice|answer|opción|alternativa|opzione|opção|вариант|番|号|项)\W*", re.IGNORECASE)
"""A label that follows its option, as in "3番"."""
_SIGNED = re.compile(r"\W*(?:[0-9]{1,2}|[A-J])\s*[.):]")
"""The beginning of a line that lists an option."""
_BULLET = re.compile(r"[\s>#\u2022\u2013\u2014-]*")
"""What may stand before an option that is alone in its line."""
_SENTENCE_END = re.compile(r"[.!?\n\u3002](?=\s|\Z)|\n|\u3002")
_QUOTING = " \"'()[]{}\u2018\u2019\u201c\u201d\u00ab\u00bb"
"""Quotation marks and brackets around a text."""
_CONTEXT = 160
"""Most characters before a statement that are looked at for a denial or a doubt."""
_CORRECT = re.compile(
    r"[)\]}\"'.:]*\s*(?:(?:is|es|est|è|é|ist|является)?\s*(?:therefore\s+)?"
    r"(?:the|la|el|quella|die|der|das|a|o)\s+(?:\w+\s+)?(?:correct\w*|right|best|bonne|juste|esatta|giusta|richtige|answer)"
    r"|(?:является\s+)?(?:правильн|верн)\w+|(?:是)?(?:正确|正確)|(?:が|は)(?:正解|正しい))",
    re.IGNORECASE,
)
"""What calls the option before it the correct one."""
_IS_CORRECT = re.compile(
    r"[)\]}\"'.:]*\s*(?:is|es|est|è|é|ist|está)\s+(?:correct[aeo]?|right|corretta|correta|richtig)\W*\Z", re.IGNORECASE
)
"""What does so as all that a reply says; in an argument "is correct" says what holds, not what the answer is."""
_LABELLED_SIGN = re.compile(
    r"(?:(?:\b(?:the|la|a|die)\s+|\bl')?\b(?:option|choice|alternative|opción|alternativa|opzione|opção|вариант)|选项|選択肢|(?:\A|\n|[.!?]\s)\W*)"
    r"\s*[(\[\"]?(?=[0-9A-J])",
    re.IGNORECASE,
)
"""What opens an option that is called correct behind: a label, or the beginning of a sentence."""


class _Statement(NamedTuple):
    """A place in a reply where it says what the answer is."""

    start: int
    """Of what introduces the option."""
    place: int
    """Of the option itself."""
    end: int
    number: int | None
    """The printed number of the option; None where it names several, or none of the question's."""


def read_leniently(reply: str, options: Mapping[int, str], *, reasoned: bool = False, cut: bool = False) -> int | None:
    """Return the printed number of the option that a reply states, or None.

    `options`: printed number -> text. `reasoned`: the reply reasons first, and its last statement counts; otherwise all
    of them must agree. `cut`: the reply ended at its budget, so only an option that begins it counts, or one that a
    full stop follows at its end. Denied, doubted and taken back statements are none, and so are quantities.
    """
    text = _plain(reply)
    shown = tuple(options.items())
    reading = _Reader(text, dict(_normal_options(shown)), _capitals(shown))
    statements = sorted(reading.statements(), key=lambda one: one.place)
    lines = [*reading.lines(reasoned=reasoned, cut=cut)]
    if cut:
        ends = [one for one in statements if 0 < len(text[one.end :]) <= 3 and not text[one.end :].strip(" .\n)]}\"'")]
        begins = [] if reasoned else [one for one in statements if not text[: one.start].strip(" \n\"'([{")]
        statements = statements if ends or begins else []
    stated = {one.place: one for one in [*lines, *statements]}
    if not stated:
        return None
    last = stated[max(stated)]
    if TAKEN_BACK.search(text, last.end):
        return None
    if reasoned or len({one.number for one in stated.values()}) == 1:
        return last.number
    return None


class _Reader:
    """A reply's text, and the options that it may state."""

    def __init__(self, text: str, options: Mapping[int, str], capitals: Mapping[str, int]) -> None:
        """`capitals`: see `capitals_of`."""
        self.text = text
        self.options = options
        self.capitals = capitals
        self.numbers = tuple(options)
        self.longest = max(map(len, options.values()), default=0)

    def statements(self) -> Iterator[_Statement]:
        """Every statement that introduces its option, such as "The answer is", or calls it the correct one."""
        text, lower = self.text, " ".join(self.text.lower().split())
        # The long patterns take a hundred times as long as a look for their stems.
        nouns = NOUN.finditer(text) if any(stem in lower for stem in NOUN_STEMS) else ()
        verbs = VERB.finditer(text) if any(stem in lower for stem in VERB_STEMS) else ()
        for noun in nouns:
            link = LINK.match(text, noun.end())
            if link is None or not UNJOINED.search(link["between"]):
                at = link.end() if link else noun.end()
                yield from self._introduced(noun.start(), at, joined=link is not None)
        for match in CONCLUSION.finditer(text):
            yield from self._introduced(match.start(), match.end(), joined=False)
        for match in chain(verbs, BOXED.finditer(text), LABEL_LINE.finditer(text)):
            yield from self._introduced(match.start(), match.end())
        for label in _LABELLED_SIGN.finditer(text):
            sign = _SIGN.match(text, label.end())
            called = sign is not None and (
                _CORRECT.match(text, sign.end())
                or (not text[: label.start()].strip() and _IS_CORRECT.match(text, sign.end()))
            )
            if called:
                yield from self._introduced(label.start(), label.end(), followed=True)

    def lines(self, *, reasoned: bool, cut: bool) -> Iterator[_Statement]:
        """The last line, and of a reply that does not reason the first, where an option is all of it or begins it."""
        shown = [match for match in re.finditer(r"[^\n]+", self.text) if match[0].strip(" \t*-#>.")]
        if not shown:
            return
        first, last = shown[0], shown[-1]
        signed = [line for line in shown if _SIGNED.match(line[0])]
        listed = len(signed) > 1
        if not cut and not (listed and signed[-1] is last) and (found := self._alone(last, exact=True)):
            yield found
        if not (reasoned or listed) and (found := self._alone(first, exact=cut and first is last, cut=cut)):
            yield found

    def _introduced(self, start: int, at: int, *, joined: bool = True, followed: bool = False) -> Iterator[_Statement]:
        """The statement whose option stands at `at`, unless it is denied, doubted or asked."""
        at += len(self.text[at : at + 3]) - len(self.text[at : at + 3].lstrip(" "))
        found = self._option_at(at, followed=followed)
        if found is None or WRONG.search(self.text, max(start - 20, 0), start):
            return
        place, end, number = found
        if not joined and self.text[end:].split("\n", 1)[0].strip(" .)]}\"'"):
            return
        sentence = max((m.end() for m in _SENTENCE_END.finditer(self.text, max(start - _CONTEXT, 0), start)), default=0)
        before = self.text[max(sentence, start - _CONTEXT) : start]
        if DOUBT.search(before) or self.text[end : end + 2].strip(" )\"'")[:1] == "?":
            return
        opened = start - len(before) + len(before.rstrip(" \"'([{<*"))
        if is_stated(self.text, opened, end):
            yield _Statement(start, place, end, number)

    def _option_at(self, at: int, *, followed: bool = False) -> tuple[int, int, int | None] | None:
        """What is stated at `at`, as (start, end, number): by its sign, its text or both; None where nothing is."""
        opener = OPENER.match(self.text, at)
        place = opener.end() if opener else at
        by_text = self._text_at(place)
        if place > at and (longer := self._text_at(at)) is not None and longer[0] > 2:
            by_text = max(longer, by_text or (0, None))
        sign = _SIGN.match(self.text, place)
        labelled = bool(LABELLED.search(self.text[at:place]))
        number = None if sign is None else self._signed(sign, labelled=labelled)
        if sign is None or number is None or not (followed or self._ends_sign(sign.end(), number)):
            # A text of a letter or two may be an article.
            return (at, self._end_of_text(at), by_text[1]) if by_text and by_text[0] > 2 else None
        if by_text is not None and by_text[0] > len(sign[0]) and by_text[1] != number:
            return place, place + by_text[0], by_text[1]
        labelled = labelled or self.text[sign.end() : sign.end() + 1] in (")", "]")
        own = by_text[1] if by_text else self.capitals.get(sign[0].upper(), number)
        doubtful = own != number
        if by_text and not labelled and not (sign["number"] and number in self.options):
            number, doubtful = own, False
        rest = _CLOSERS.match(self.text, sign.end())
        after = self._text_at(rest.end()) if rest and rest[0] else None
        confirmed = labelled and sign["number"] is None and after is not None
        known = number in self.options and (after is None or after[1] == number) and (confirmed or not doubtful)
        if not known or self._has_alternative(sign.end(), number):
            number = None
        return place, sign.end(), number

    def _ends_sign(self, end: int, number: int) -> bool:
        """Whether what follows a sign makes it one: a mark, a reason, or the option's own text."""
        if AFTER_SIGN.match(self.text, end):
            return True
        text = self._text_at(end + 1) if self.text[end : end + 1] == " " else None
        return text is not None and text[1] == number

    def _has_alternative(self, end: int, number: int | None) -> bool:
        """Whether another option is named beside the one whose sign ends there."""
        joint = ALTERNATIVE.match(self.text, end)
        sign = _SIGN.match(self.text, joint.end()) if joint else None
        return sign is not None and self._signed(sign, labelled=True) != number

    def _signed(self, sign: re.Match[str], *, labelled: bool) -> int | None:
        """The number that a sign means, which may be none of the options; None where it is no sign."""
        if sign["number"]:
            return int(sign["number"])
        if sign[0] == "A" and _ANSWER_LINE.match(self.text, sign.end()):
            return None
        if sign["letter"] or (sign["small"] and (labelled or _MARKED.match(self.text, sign.end()))):
            place = ord(sign[0].upper()) - ord("A")
            return self.numbers[place] if place < len(self.numbers) else None
        if sign["cyrillic"]:
            place = "АБВГД".index(sign[0])
            return self.numbers[place] if place < len(self.numbers) else None
        return NUMBER_WORDS.get(sign[0].casefold())

    def _text_at(self, at: int) -> tuple[int, int | None] | None:
        """The longest option whose text stands at `at`, as (characters, number); its number is None if two share it."""
        tail = _normal(self.text[at : at + 2 * self.longest + 20], whole=False)
        matching = [
            (len(text), number)
            for number, text in self.options.items()
            if text and tail.startswith(text) and not tail[len(text) :][:1].isalnum()
        ]
        if not matching:
            return None
        length = max(matching)[0]
        numbers = [number for size, number in matching if size == length]
        return length, numbers[0] if len(numbers) == 1 else None

    def _end_of_text(self, at: int) -> int:
        end = _SENTENCE_END.search(self.text, at)
        return end.start() if end else len(self.text)

    def _alone(self, line: re.Match[str], *, exact: bool, cut: bool = False) -> _Statement | None:
        """An option that is all of a line, or that begins one if not `exact`."""
        bullet = _BULLET.match(line[0])
        start = line.start() + (bullet.end() if bullet else 0)
        written = _normal(line[0])
        same = [number for number, text in self.options.items() if text == written]
        found = self._option_at(start)
        is_sign = len(written) == 1 or written.isdigit()
        if same and (found is None or not is_sign):
            return _Statement(start, start, line.end(), same[0] if len(same) == 1 else None)
        if found is None:
            return None
        place, end, number = found
        if not is_stated(self.text, start, end):
            return None
        closers = _CLOSERS.match(self.text, end)
        rest = self.text[closers.end() if closers else end : line.end()].strip()
        if not rest or _LABELS.fullmatch(rest):
            return _Statement(start, place, end, number)
        statement, behind = _Statement(start, place, end, number), _normal(rest)
        own = "" if number is None else self.options[number]
        if own and (own == behind or (not exact and (behind.startswith(own) or own.startswith(behind)))):
            return statement
        if exact or _SIGNED.match(rest):
            return None
        if number is None or not _MARKED.match(self.text, end):
            return statement if REASON.match(self.text, end) else None
        begins_list = number == self.numbers[0] and self.text[place:end].isdigit() and self.text[end] == "."
        return None if cut or begins_list else statement


def _plain(reply: str) -> str:
    """Return the text with plain digits and without marks of Markdown, LaTeX and HTML."""
    text = plain_forms(reply)
    if not text.isascii():
        text = "".join(_digit(sign) if sign > "\x7f" else sign for sign in text)
    if _MARKS.search(text) is None:
        return text
    return _MARKUP.sub("", _LATEX_TEXT.sub(r"\1", text))


def _digit(sign: str) -> str:
    """Return a digit of any script, or one in a circle, as 0 to 9; anything else as it is."""
    value = unicodedata.digit(sign, None) if unicodedata.category(sign) in ("Nd", "No") else None
    return sign if value is None or sign in "\u00b2\u00b3\u00b9" else str(value)


@lru_cache(maxsize=4096)
def _normal_options(options: tuple[tuple[int, str], ...]) -> tuple[tuple[int, str], ...]:
    return tuple((number, _normal(_plain(text))) for number, text in options)


@lru_cache(maxsize=4096)
def _capitals(options: tuple[tuple[int, str], ...]) -> Mapping[str, int]:
    return capitals_of(dict(options))


def _normal(text: str, *, whole: bool = True) -> str:
    """Return a text for comparison: case, spacing, and if `whole` the marks around it do not count."""
    plain = " ".join(_MARKUP.sub("", text).split()).casefold()
    return plain.strip(_QUOTING + " .,;:!\u3002") if whole else plain.lstrip(_QUOTING)
