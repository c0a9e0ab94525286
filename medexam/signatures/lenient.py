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
    option_items = tuple(options.items())
    reading = _Reader(text, dict(_normal_options(option_items)), _capitals(option_items))
    statements = sorted(reading.statements(), key=lambda statement: statement.place)
    lines = [*reading.lines(reasoned=reasoned, cut=cut)]
    if cut:
        tail_statements = [
            statement
            for statement in statements
            if 0 < len(text[statement.end :]) <= 3 and not text[statement.end :].strip(" .\n)]}\"'")
        ]
        head_statements = (
            []
            if reasoned
            else [statement for statement in statements if not text[: statement.start].strip(" \n\"'([{")]
        )
        statements = statements if tail_statements or head_statements else []
    statement_by_place = {statement.place: statement for statement in [*lines, *statements]}
    if not statement_by_place:
        return None
    last_statement = statement_by_place[max(statement_by_place)]
    if TAKEN_BACK.search(text, last_statement.end):
        return None
    if reasoned or len({statement.number for statement in statement_by_place.values()}) == 1:
        return last_statement.number
    return None


class _Reader:
    """A reply's text, and the options that it may state."""

    def __init__(self, text: str, options: Mapping[int, str], capitals: Mapping[str, int]) -> None:
        """Take the text, the options and their `capitals`; see `capitals_of`."""
        self.text = text
        self.options = options
        self.capitals = capitals
        self.numbers = tuple(options)
        self.longest = max(map(len, options.values()), default=0)

    def statements(self) -> Iterator[_Statement]:
        """Yield each statement that introduces its option, such as "The answer is", or calls it the correct one."""
        text, lower = self.text, " ".join(self.text.lower().split())
        # The long patterns take a hundred times as long as a look for their stems.
        nouns = NOUN.finditer(text) if any(stem in lower for stem in NOUN_STEMS) else ()
        verbs = VERB.finditer(text) if any(stem in lower for stem in VERB_STEMS) else ()
        for noun in nouns:
            link = LINK.match(text, noun.end())
            if link is None or not UNJOINED.search(link["between"]):
                offset = link.end() if link else noun.end()
                yield from self._introduced(noun.start(), offset, joined=link is not None)
        for match in CONCLUSION.finditer(text):
            yield from self._introduced(match.start(), match.end(), joined=False)
        for match in chain(verbs, BOXED.finditer(text), LABEL_LINE.finditer(text)):
            yield from self._introduced(match.start(), match.end())
        for label in _LABELLED_SIGN.finditer(text):
            sign = _SIGN.match(text, label.end())
            is_correct = sign is not None and (
                _CORRECT.match(text, sign.end())
                or (not text[: label.start()].strip() and _IS_CORRECT.match(text, sign.end()))
            )
            if is_correct:
                yield from self._introduced(label.start(), label.end(), followed=True)

    def lines(self, *, reasoned: bool, cut: bool) -> Iterator[_Statement]:
        """Yield the last line, and the first of a reply that does not reason, where an option fills or begins it."""
        text_lines = [match for match in re.finditer(r"[^\n]+", self.text) if match[0].strip(" \t*-#>.")]
        if not text_lines:
            return
        first, last = text_lines[0], text_lines[-1]
        option_lines = [line for line in text_lines if _SIGNED.match(line[0])]
        is_list = len(option_lines) > 1
        if not cut and not (is_list and option_lines[-1] is last) and (statement := self._alone(last, exact=True)):
            yield statement
        if not (reasoned or is_list) and (statement := self._alone(first, exact=cut and first is last, cut=cut)):
            yield statement

    def _introduced(
        self, start: int, offset: int, *, joined: bool = True, followed: bool = False
    ) -> Iterator[_Statement]:
        """Yield the statement whose option stands at `offset`, unless it is denied, doubted or asked."""
        offset += len(self.text[offset : offset + 3]) - len(self.text[offset : offset + 3].lstrip(" "))
        option = self._option_at(offset, followed=followed)
        if option is None or WRONG.search(self.text, max(start - 20, 0), start):
            return
        place, end, number = option
        if not joined and self.text[end:].split("\n", 1)[0].strip(" .)]}\"'"):
            return
        sentence = max((m.end() for m in _SENTENCE_END.finditer(self.text, max(start - _CONTEXT, 0), start)), default=0)
        context = self.text[max(sentence, start - _CONTEXT) : start]
        if DOUBT.search(context) or self.text[end : end + 2].strip(" )\"'")[:1] == "?":
            return
        opening = start - len(context) + len(context.rstrip(" \"'([{<*"))
        if is_stated(self.text, opening, end):
            yield _Statement(start, place, end, number)

    def _option_at(self, offset: int, *, followed: bool = False) -> tuple[int, int, int | None] | None:
        """Return what is stated at `offset` as (start, end, number), by its sign, its text or both; None if nothing."""
        opener = OPENER.match(self.text, offset)
        place = opener.end() if opener else offset
        text_match = self._text_at(place)
        if place > offset and (longer_match := self._text_at(offset)) is not None and longer_match[0] > 2:
            text_match = max(longer_match, text_match or (0, None))
        sign = _SIGN.match(self.text, place)
        labelled = bool(LABELLED.search(self.text[offset:place]))
        number = None if sign is None else self._signed(sign, labelled=labelled)
        if sign is None or number is None or not (followed or self._ends_sign(sign.end(), number)):
            # A text of a letter or two may be an article.
            return (offset, self._end_of_text(offset), text_match[1]) if text_match and text_match[0] > 2 else None
        if text_match is not None and text_match[0] > len(sign[0]) and text_match[1] != number:
            return place, place + text_match[0], text_match[1]
        labelled = labelled or self.text[sign.end() : sign.end() + 1] in (")", "]")
        text_number = text_match[1] if text_match else self.capitals.get(sign[0].upper(), number)
        is_doubtful = text_number != number
        if text_match and not labelled and not (sign["number"] and number in self.options):
            number, is_doubtful = text_number, False
        closers = _CLOSERS.match(self.text, sign.end())
        match_after = self._text_at(closers.end()) if closers and closers[0] else None
        is_confirmed = labelled and sign["number"] is None and match_after is not None
        is_option = (
            number in self.options
            and (match_after is None or match_after[1] == number)
            and (is_confirmed or not is_doubtful)
        )
        if not is_option or self._has_alternative(sign.end(), number):
            number = None
        return place, sign.end(), number

    def _ends_sign(self, end: int, number: int) -> bool:
        """Return whether what follows a sign makes it one: a mark, a reason, or the option's own text."""
        if AFTER_SIGN.match(self.text, end):
            return True
        text_match = self._text_at(end + 1) if self.text[end : end + 1] == " " else None
        return text_match is not None and text_match[1] == number

    def _has_alternative(self, end: int, number: int | None) -> bool:
        """Return whether another option is named beside the one whose sign ends there."""
        joint = ALTERNATIVE.match(self.text, end)
        sign = _SIGN.match(self.text, joint.end()) if joint else None
        return sign is not None and self._signed(sign, labelled=True) != number

    def _signed(self, sign: re.Match[str], *, labelled: bool) -> int | None:
        """Return the number that a sign means, which may be none of the options; None where it is no sign."""
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

    def _text_at(self, offset: int) -> tuple[int, int | None] | None:
        """Find the longest option text at `offset`, as (characters, number); the number is None if two share it."""
        tail = _normal(self.text[offset : offset + 2 * self.longest + 20], both_ends=False)
        matches = [
            (len(text), number)
            for number, text in self.options.items()
            if text and tail.startswith(text) and not tail[len(text) :][:1].isalnum()
        ]
        if not matches:
            return None
        length = max(matches)[0]
        numbers = [number for size, number in matches if size == length]
        return length, numbers[0] if len(numbers) == 1 else None

    def _end_of_text(self, offset: int) -> int:
        end = _SENTENCE_END.search(self.text, offset)
        return end.start() if end else len(self.text)

    def _alone(self, line: re.Match[str], *, exact: bool, cut: bool = False) -> _Statement | None:
        """Read an option that is all of a line, or that begins one if not `exact`."""
        bullet = _BULLET.match(line[0])
        start = line.start() + (bullet.end() if bullet else 0)
        line_text = _normal(line[0])
        numbers = [number for number, text in self.options.items() if text == line_text]
        option = self._option_at(start)
        is_sign = len(line_text) == 1 or line_text.isdigit()
        if numbers and (option is None or not is_sign):
            return _Statement(start, start, line.end(), numbers[0] if len(numbers) == 1 else None)
        if option is None:
            return None
        place, end, number = option
        if not is_stated(self.text, start, end):
            return None
        closers = _CLOSERS.match(self.text, end)
        remainder = self.text[closers.end() if closers else end : line.end()].strip()
        if not remainder or _LABELS.fullmatch(remainder):
            return _Statement(start, place, end, number)
        statement, text_after = _Statement(start, place, end, number), _normal(remainder)
        option_text = "" if number is None else self.options[number]
        if option_text and (
            option_text == text_after
            or (not exact and (text_after.startswith(option_text) or option_text.startswith(text_after)))
        ):
            return statement
        if exact or _SIGNED.match(remainder):
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


def _normal(text: str, *, both_ends: bool = True) -> str:
    """Return a text for comparison: case, spacing, and if `whole` the marks around it do not count."""
    plain = " ".join(_MARKUP.sub("", text).split()).casefold()
    return plain.strip(_QUOTING + " .,;:!\u3002") if both_ends else plain.lstrip(_QUOTING)
