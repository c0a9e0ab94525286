r"""The lenient reader of replies: the option that a careful marker would read where the strict reader finds none.

lm-evaluation-harness prints `flexible-extract` beside `strict-match`; this is the like, except that it reads nothing
rather than a guess. A sentence states an option if all of its words are those of a statement ("The answer is (C)",
"\boxed{3}", "Option 3 is the correct answer") or of the option itself. Everything here is a pure function of text.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from medexam.signatures.answer_format import IDIOM, STRUCK, plain_forms
from medexam.signatures.capitals import capitals_of
from medexam.signatures.reply_words import CJK, load_reply_words, names, pattern_of, words_of

_MARKUP = re.compile(
    r"[*`$\ufe0f\u20e3]+|_+(?!\w)|_(?<!\w_)|\\[()\[\]]|<(?:b|strong|i|em|p|br|span|u)\b[^<>]{0,80}>|</[a-z_]{1,20}>"
)
"""Marks of Markdown, LaTeX and HTML, and the two that make a key cap of a digit."""
_LATEX_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathsf)\s?\{([^{}]{0,60})\}")
"""A text within a formula of LaTeX."""
_ABBREVIATIONS = re.compile(
    r"(?P<number>\bno\.|\bn\.?\s?[\u00ba\u00b0]|\u2116) ?(?=\d)"
    r"|(?P<answer>\bans\.|\bsol\.|\\boxed|\\fbox|^[AR]:(?=\s?(?:\d|[A-J]\b)))"
    r"|(?P<example>\b[eiz]\. ?[gbe]\.|\b(?:dr|prof|fig)\.)"
    r"|(?P<gone>(?<=\d)(?:\.?[\u00aa\u00ba]|\.0(?!\w))|^question \d{1,3} ?[:.)] ?(?=.))",
    re.IGNORECASE | re.MULTILINE,
)
_BESIDE = rf"[^\W{CJK}]"
"""What makes a word with its neighbour; a Chinese sign does not."""
_SIGN = (
    rf"(?<!{_BESIDE})(?<![/&+-])(?<!\w['\u2019])(?<!\d[.,:])(?P<sign>[0-9]{{1,3}}"
    r"|(?!A\s(?:resp|op[c\u00e7]|alt|corr|mell|prim|seg|terc|[cq]uart|[0-9]))(?-i:[A-HJ])(?!\.\s(?-i:[a-z\u00e0-\u00ff]))"
    r"|[a-hj](?=\s?[)\]])|(?-i:[\u0410-\u0414])|(?<=[(])[\u0623\u0628\u062c\u062f](?=[)]))"
    rf"(?!{_BESIDE})(?![.,:/'\u2019+%\u00b0-]{_BESIDE})(?!\s?[%/\u00b0])"
)
"""What may name an option: a number, or a letter by place."""
_LETTERS = ("ABCDEFGHIJ", "\u0410\u0411\u0000\u0413\u0414", "\u0623\u0628\u062c\u062f")
_GAP = r"[ .):\]}\"'\u2018\u2019\u201c\u201d\u00ab\u00bb,\u2013\u2014-]{1,6}\(?"
"""What stands between the sign of an option and its text."""
_TEXT, _LABEL, _UNCLEAR = 0xE000, 0xE800, 0xFF
"""An option is written as one sign, by its place, its text and its label apart; the last place is none or several."""
_OPTION = "[\ue000-\uf8ff]"
_SENTENCE = re.compile(
    r"[.!?](?=[\s\"'\u201d\u00bb)\]}]|\Z)[\"'\u201d\u00bb)\]}]*|[\u3002\uff1f\uff01\u0964]|;(?=\s)"
    r"|(?<!:)\n(?![a-z\u00e0-\u00ff\u0430-\u044f])"
)
_CLAUSE = re.compile(
    rf"[,\uff0c\u3001]|\s[\u2013\u2014-]+\s(?!\W{{0,3}}{_OPTION})|\s(?=(?:but|sino|sondern|ma|so|thus|therefore)\s)|\s\((?=[^\W\d])"
)
_PLAIN_WORD = (
    rf"{_OPTION}|[lc]['\u2019](?=\w)|(?:(?![\d_{CJK}])[\w\u0900-\u0963])+(?:['\u2019-]\w+)*"
    r"|[^\s.!_\"'\u2018\u2019\u201c\u201d\u00ab\u00bb\u300c\u300d()\[\]{}<>*#=\\;\u2192\u21d2\u2013\u2014\u3002\uff01\u0964-]"
)
_TAKEN_BACK = re.compile(r"\W*(?:(?:hmm\W+)?(?:no|нет|or|o|или|oder|ou|actually)\b|不对)", re.IGNORECASE)
_ABOUT_IT = re.compile(r"\W*(?:that|this|it|eso|esto|это)\b([^.!?\n]{0,30})", re.IGNORECASE)
"""What may take a statement back right behind it."""
_OPTIONS = re.compile(_OPTION)
_TEXT_SIGN, _LAST_SIGN = "\ue000", "\uf8ff"
_HAS_WORD = re.compile(rf"[^\W\d]|{_OPTION}")
_LISTED = re.compile(r"^[^\w\n]{0,9}([0-9]{1,2}|[A-J])[.):-](?=[^\w\n]{0,4}\w)", re.MULTILINE)
"""The label of an item in a list, at the beginning of its line."""
_PIECE = re.compile(
    r"\s(?<=[.!?]\s)(?<!\b[0-9A-J][.)]\s)(?<!\.[a-z]\.\s)(?<!\bDr\.\s)(?=[A-Z\u00c0-\u00dd\u0410-\u042f\u00bf])"
    r"|\n(?<!:\n)(?![a-z\u00e0-\u00ff\u0430-\u044f])|\u3002"
)
"""Where a text may be cut before its options are looked for."""
_EXPLAINED = re.compile(rf"[\"'([{{]*{_OPTION}[\"')\]}}]*:\s[^\ue000-\uf8ff]+")
"""An option with an explanation behind a colon."""
_NUMBERED = re.compile(r"\W?[\ue800-\uf8ff]\. ?(?=\S)(?!\n)")
"""The label of an item in a list."""
_SMALL = "abcdefgh"
_ANSWERS_ALONE = re.compile(r"\W*(?:no|yes|sí|si|да|нет)\W*", re.IGNORECASE)
_OTHER_DIGIT = re.compile("(?![0-9])\\d|[\u2460-\u2468\u2776-\u277e\ue000-\uf8ff]")
_WISHED = ("would", "should", "must", "will")
_QUOTING = "\"'()[]{}\u2018\u2019\u201c\u201d\u00ab\u00bb"


_AGAINST_IT, _UNSURE = ("denial", "wrong"), ("doubt", "example")


class _Vocabulary(NamedTuple):
    groups: Mapping[str, str]
    """What each word of a statement does."""
    numbers: Mapping[str, int]
    """Each word for a number -> the place of the option."""
    stems: Sequence[str]
    """One of these is in every statement that is more than the option."""
    word: re.Pattern[str]
    """A word, an option, or a sign that makes a sentence no statement."""


@cache
def _vocabulary() -> _Vocabulary:
    groups = {word: group for group in reversed([*load_reply_words()][:9]) for word in words_of(group)}
    numbers = {word: place for place, words in enumerate(load_reply_words()["numbers"]) for word in words.split()}
    words = [word for word in words_of("answer", "choose", "correct") if len(word) > 2 or not word.isascii()]
    stems = [word for word in words if not any(other in word for other in words if other != word)]
    joined = sorted(
        (word for word in (*groups, *numbers) if " " in word or re.match(f"[{CJK}]", word)), key=len, reverse=True
    )
    return _Vocabulary(
        groups, numbers, stems, re.compile(rf"{'|'.join(map(re.escape, joined))}|{_PLAIN_WORD}", re.IGNORECASE)
    )


class _Statement(NamedTuple):
    """A sentence that states an option."""

    place: int
    """The place of the option among all; `_UNCLEAR` for none, or several."""
    begins: bool
    """Whether it is the first sentence of the reply."""
    is_ended: bool
    """Whether a full stop ends it."""
    rest: str
    """What the reply says behind the last one."""


def read_leniently(reply: str, options: Mapping[int, str], *, reasoned: bool = False, cut: bool = False) -> int | None:
    """Return the printed number of the option that a reply states, or None.

    `options`: printed number -> text. `reasoned`: the reply reasons first, and its last statement counts; otherwise all
    of them must agree. `cut`: the reply ended at its budget, so only an option that begins it counts, or one that a
    full stop follows at its end. Denied, doubted and taken back statements are none, and so are quantities.
    """
    marks = _marks(tuple(options.items()))
    statements = [*_statements(_plain(reply), marks, reasoned=reasoned)]
    if not statements:
        return None
    last = statements[-1]
    if cut and not (
        last.rest.strip() if statements[0].begins and not reasoned else not last.rest.strip() and last.is_ended
    ):
        return None
    if len({one.place for one in statements}) > 1 or last.place >= len(marks.numbers) or _is_taken_back(last.rest):
        return None
    return marks.numbers[last.place]


def _statements(text: str, marks: "_Marks", *, reasoned: bool) -> Iterator[_Statement]:
    """Yield what a text states, in reading order; the last statement alone of a text that reasons.

    An option alone counts at the end of a reply, and at the beginning of one that does not reason.
    """
    is_list = len(set(_LISTED.findall(text))) > 1
    pieces = [piece for piece in _PIECE.split(text) if piece.strip()]
    lower = text.lower()
    stems = [stem for stem in _vocabulary().stems if stem in lower]
    statements: list[_Statement] = []
    for number in reversed(range(len(pieces))):
        is_first, is_last = number == 0 and not reasoned, number == len(pieces) - 1
        piece = pieces[number]
        if not (is_first or is_last or any(stem in piece.lower() for stem in stems)):
            continue
        text_signs = marks.write(piece)
        sentences = [*_split(text_signs)]
        for start, end in reversed(sentences):
            begins, ends = is_first and (start, end) == sentences[0], is_last and (start, end) == sentences[-1]
            place, is_bare = _read_sentence(text_signs, start, end, opens=begins and not is_list, alone=begins or ends)
            is_argued = reasoned and is_bare and names(text_signs[start:end], "correct")
            if place is None or is_argued or (is_bare and is_list and _LISTED.match(piece)):
                continue
            rest = "" if statements else "\n".join([text_signs[end:], *pieces[number + 1 :]])
            is_ended = text_signs[:end].rstrip(" \n\"')]}")[-1:] == "."
            statements.insert(0, _Statement(place, begins, is_ended, rest))
            if reasoned:
                return iter(statements)
    return iter(statements)


def _is_taken_back(rest: str) -> bool:
    """Return whether what follows a statement takes it back."""
    lower = rest.lower()
    about = _ABOUT_IT.match(rest)
    return (
        any(word in lower for word in words_of("retraction"))
        or _TAKEN_BACK.match(rest) is not None
        or (about is not None and names(about[1], "denial", "wrong"))
    )


def _split(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends."""
    start = 0
    for match in _SENTENCE.finditer(text):
        if text[start : match.start()].strip():
            yield start, match.end()
        start = match.end()
    if text[start:].strip():
        yield start, len(text)


def _read_sentence(text: str, start: int, end: int, *, opens: bool, alone: bool) -> tuple[int | None, bool]:
    """Return the place of the option that a sentence states, and whether it says nothing else; None for no statement.

    `opens`: an explanation may stand behind its colon. `alone`: the option alone is a statement.
    """
    sentence = text[start:end]
    if "?" in sentence or "\uff1f" in sentence:
        return None, False
    if opens and _EXPLAINED.fullmatch(sentence) and not names(sentence, *_AGAINST_IT, *_UNSURE):
        return _place(sentence.lstrip(" \"'([{")[0]), True
    stated, is_bare = _join_clauses(_CLAUSE.split(IDIOM.sub("", sentence)))
    if stated is None or (is_bare and not alone) or names(sentence, *_UNSURE):
        return None, False
    label = _NUMBERED.match(text, start)
    if is_bare and label and not pattern_of("because").match(text, label.end()):
        return _UNCLEAR, True
    return stated, is_bare


def _join_clauses(clauses: Iterable[str]) -> tuple[int | None, bool]:
    """Return the place of the option that clauses state together, and whether they say nothing else."""
    stated: int | None = None
    is_bare, earlier = True, []
    for clause in clauses:
        kind, place, against = _read_clause(clause)
        if kind == "reason" and stated is not None:
            break
        if kind == "other" and stated is None:
            earlier.append((clause, place))
        elif kind == "other":
            is_of_it = place in (None, stated)
            if place == _UNCLEAR or (place is None and is_bare) or names(clause, *_AGAINST_IT) == is_of_it:
                return None, False
        elif kind in ("bare", "stated"):
            denials = (one is None and names(text, *_AGAINST_IT) for text, one in earlier)
            if stated is None and earlier and not against and (kind == "bare" or any(denials)):
                return None, False
            stated = place if stated in (None, place) else _UNCLEAR
            is_bare = is_bare and kind != "stated"
    return stated, is_bare


def _read_clause(clause: str) -> tuple[str, int | None, bool]:
    """Return what a clause does with its option, the option's place, and whether it begins against the one before."""
    places: list[int] = []
    groups: list[str] = []
    is_right = False
    vocabulary = _vocabulary()
    for match in vocabulary.word.finditer(clause):
        word, place = match[0].casefold(), match.end()
        group = vocabulary.groups.get(word)
        if _TEXT_SIGN <= word <= _LAST_SIGN and groups[-1:] != ["question"]:
            places.append(_place(word))
            if clause[place : place + 2] == ") " and "(" not in clause and {"answer", "correct"} & {*groups}:
                break
        elif word in ":\uff1a":
            groups.append(":")
        elif word in vocabulary.numbers and (group is None or not (places or _HAS_WORD.search(clause, place))):
            places.append(vocabulary.numbers[word])
        elif word in _SMALL and not _HAS_WORD.search(clause, place) and {"answer", "label", ":"} & {*groups}:
            places.append(_SMALL.index(word))
        elif group == "because" and (places or not groups):
            if not places:
                return "reason", None, False
            break
        elif group is None or (word == "is" and not groups and not places) or (places and word in _WISHED):
            return ("known" if _ANSWERS_ALONE.fullmatch(clause) else "other"), _only(_OPTIONS.findall(clause)), False
        else:
            is_right = is_right or (group == "correct" and (not places or groups[-1:] in (["filler"], ["label"])))
            groups.append(word if word == "question" else group)
    against = groups[:1] in (["against"], ["so"])
    if not places:
        return "known", None, against
    is_stated = is_right or {"answer", "choose", "so"} & {*groups}
    return ("stated" if is_stated else "bare"), _only(places), against


class _Marks:
    """Writes each option that a text names as one sign."""

    def __init__(self, options: tuple[tuple[int, str], ...]) -> None:
        """Take the options: printed numbers and texts."""
        self.numbers = [number for number, _ in options]
        texts = [_plain(text).strip(_QUOTING + " .,;:!\u3002\n") for _, text in options]
        self.places: dict[str, int] = {}
        for place, text in enumerate(texts):
            key = " ".join(text.casefold().split())
            self.places[key] = _UNCLEAR if key in self.places else place
        capitals = capitals_of(dict(options))
        self.capitals = {letter: self.numbers.index(number) for letter, number in capitals.items()}
        ordered = sorted(filter(None, texts), key=len, reverse=True)
        every = "|".join(map(_spaced, ordered)) or "(?!)"
        long = "|".join(_spaced(text) for text in ordered if len(text) > 1 and not text.isdigit()) or "(?!)"
        self.pattern = re.compile(
            rf"(?<!{_BESIDE})(?P<alone>{long})(?!{_BESIDE})|{_SIGN}(?:(?P<gap>{_GAP})(?P<text>{every})(?!{_BESIDE}))?",
            re.IGNORECASE,
        )

    def write(self, text: str) -> str:
        """Return the text with a sign for each option, and abbreviations as words."""
        text = _ABBREVIATIONS.sub(lambda match: f" {match.lastgroup} " if match.lastgroup != "gone" else "", text)
        return self.pattern.sub(self._mark, text)

    def _mark(self, match: re.Match[str]) -> str:
        if match["alone"]:
            return chr(_TEXT + self._by_text(match["alone"]))
        place, sign = self._by_sign(match["sign"]), match["sign"]
        if match["text"]:
            by_text = self._by_text(match["text"])
            if (
                by_text != place
                and "." in match["gap"]
                and match.string[match.end() : match.end() + 2].strip(" .").isalpha()
            ):
                return f"{chr(_LABEL + place)}{match['gap']}{chr(_TEXT + by_text)}"
            return chr(_TEXT + (place if place == by_text else _UNCLEAR))
        option = self.places.get(sign.casefold()) if sign == sign.upper() else None
        other = self.capitals.get(sign.upper()) if option is None else option
        if other not in (None, place):
            is_labelled = (
                match.string[match.end() : match.end() + 1] in (")", "]")
                or match.string[: match.start()].endswith(("(", "["))
                or names(match.string[max(match.start() - 12, 0) : match.start()], "label")
            )
            is_text = option is not None and (place == _UNCLEAR if sign.isdigit() else not is_labelled)
            place = other if is_text and other is not None else _UNCLEAR
        return chr(_LABEL + place)

    def _by_text(self, text: str) -> int:
        return self.places.get(" ".join(text.casefold().split()), _UNCLEAR)

    def _by_sign(self, sign: str) -> int:
        if sign.isdigit():
            return self.numbers.index(int(sign)) if int(sign) in self.numbers else _UNCLEAR
        place = max(letters.find(sign.upper()) for letters in _LETTERS)
        return place if 0 <= place < len(self.numbers) else _UNCLEAR


@lru_cache(maxsize=4096)
def _marks(options: tuple[tuple[int, str], ...]) -> _Marks:
    return _Marks(options)


def _only(places: Iterable[int | str]) -> int | None:
    """Return the one place that all are; `_UNCLEAR` for several, None for none."""
    distinct = {_place(one) if isinstance(one, str) else one for one in places}
    return _UNCLEAR if len(distinct) > 1 else next(iter(distinct), None)


def _place(sign: str) -> int:
    """Return the place that the sign of an option stands for."""
    return (ord(sign) - _TEXT) % (_LABEL - _TEXT)


def _spaced(text: str) -> str:
    return r"\s".join(map(re.escape, text.split()))


def _plain(reply: str) -> str:
    """Return the text with plain digits, single spaces, and without marks of Markdown, LaTeX and HTML."""
    text = plain_forms(reply)
    if not text.isascii():
        text = _OTHER_DIGIT.sub(lambda match: str(unicodedata.digit(match[0], " ")), text)
    text = STRUCK.sub(" ~ ", text)
    text = _MARKUP.sub("", _LATEX_TEXT.sub(r"\1", text))
    return "\n".join(line for line in (" ".join(line.split()) for line in text.split("\n")) if line)
