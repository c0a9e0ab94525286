"""Closed answers: true/false, multiple choice and lists, read as the released scorer reads them, and kindly.

The kind reading says what a run loses by its form alone. It begins with the strict one and looks further only if that
finds nothing.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from medexam.text import option_letters

_SPACED = str.maketrans(dict.fromkeys("–—_/\\[](){};-", " "))  # noqa: RUF001
_SIGNS = frozenset("%,:")
_VERDICT = re.compile(r"(true|false)(.*)", re.IGNORECASE | re.DOTALL)
_MARKUP = re.compile(r"[*`#\"“”]|(?<!\w)_|_(?!\w)")
_BLANKS = re.compile(r"[^\S\n]+")
_ANSWER_IS = re.compile(
    r"\b(?:answers?|options?|choices?|statement)\b\s*(?:\(s\))?\s*(?:(?:is|are)\s*:?|:)\s*", re.IGNORECASE
)
_WORDS = {"true": "true", "t": "true", "yes": "true", "false": "false", "f": "false", "no": "false"}
_LEADING_WORD = re.compile(r"(true|false|yes|no|[tf](?![\w'’]))\b", re.IGNORECASE)  # noqa: RUF001
_LISTED = re.compile(r"^[A-H][.:]\s+")
_BULLET = re.compile(r"^(?:[-•·–—*+]\s*|\(?\d{1,2}[.)]\s+)+")  # noqa: RUF001
_LETTERED = re.compile(r"^\(?(?:option\s+)?([A-Za-z])(?:\s*\)\s*[.:]?|[.:]|\s*[-–—](?=\s))\s*", re.IGNORECASE)  # noqa: RUF001
_LONE_LETTER = re.compile(r"^\(?(?:option\s+)?([A-Za-z])\)?[.:]?$", re.IGNORECASE)
_JOINTS = re.compile(r"(\s*,\s*(?:and\s+|or\s+)?|\s+and\s+|\s*&\s*)", re.IGNORECASE)
_TOP = 5


@lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """Bring a text into the form in which options and answers are compared.

    Compatibility decomposition, no combining marks, case folded; dashes, slashes, brackets, underscores and semicolons
    are spaces; of the rest only letters, numbers, marks, whitespace and `%,:` stay. So `1.5 mg` is `15 mg`, and `<5%`
    is `>5%`.
    """
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    spaced = plain.casefold().translate(_SPACED)
    characters = (c for c in spaced if c in _SIGNS or c.isspace() or unicodedata.category(c)[0] in "LNM")
    return " ".join("".join(characters).split())


def read_verdict(text: str) -> tuple[str | None, bool]:
    """Read the leading `true` or `false`, and whether text follows it.

    It is read by prefix: "Truely not" is true, and so is "True or False".
    """
    match = _VERDICT.match(text.strip())
    return (None, False) if match is None else (match[1].lower(), bool(match[2].strip()))


def read_verdict_kindly(text: str) -> str | None:
    """Read the same; "The answer is True", "**True**", "Yes", "No", "T" and "F" count too."""
    word, _ = read_verdict(text)
    if word is not None:
        return word
    plain = _plain(text)
    matches = (_LEADING_WORD.match(part) for part in (plain, *_after_answer(plain)))
    return next((_WORDS[match[1].lower()] for match in matches if match), None)


@dataclass(frozen=True, slots=True)
class Options:
    """An item's options as answers are read against them."""

    letters: Sequence[str]
    texts: tuple[str, ...]
    """Normalised."""

    @classmethod
    def of(cls, options: Sequence[str], *, listed: bool = True) -> "Options":
        """Build them; with `listed` they lose a leading `A. ` to `H. ` or `A: ` to `H: `."""
        plain = (_LISTED.sub("", option.strip()) for option in options) if listed else options
        return cls(option_letters(options), tuple(map(normalise, plain)))

    def by_letter(self, letter: str) -> str | None:
        """Return the option of a letter, in either case; None if there is none."""
        letter = letter.upper()
        return self.texts[self.letters.index(letter)] if letter in self.letters else None

    @property
    def labels(self) -> str:
        """A pattern for one of the letters."""
        return f"[{re.escape(''.join(self.letters))}]"


def _right_option(options: Sequence[str], gold: str) -> str:
    """Return the right option's text: a gold that is a letter of an option stands for it, any other for itself.

    So a gold "B" among the options "B", "A" means "A".
    """
    letters, letter = option_letters(options), gold.upper()
    return options[letters.index(letter)] if letter in letters else gold


def match_choice(options: Sequence[str], gold: str, text: str) -> str:
    """Say how an answer meets the right option; only `full` earns the point.

    `full`: its text. `letter`: its letter alone. `mixed`: letter, colon and text, if that holds no punctuation. Else
    `none`.
    """
    right, answer = _right_option(options, gold), normalise(text)
    if answer == normalise(right):
        return "full"
    letter = next((x for x, option in zip(option_letters(options), options, strict=True) if option == right), "")
    if letter and answer.upper() == letter:
        return "letter"
    return "mixed" if letter and answer == f"{letter}: {right}".lower() else "none"


def chooses_right_kindly(options: Sequence[str], gold: str, text: str) -> bool:
    """Judge a choice; a letter, "C: text", "(C) text" and "The answer is C" count too."""
    right = normalise(_right_option(options, gold))
    if normalise(text) == right:
        return True
    table, plain = Options.of(options, listed=False), _plain(text)
    for candidate in (plain, *_after_answer(plain)):
        for part in dict.fromkeys((candidate, candidate.split("\n", 1)[0].strip())):
            if (option := _named(part, table)) is not None:
                return option == right
    return False


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """What an item wants and what an answer names, in normalised texts."""

    gold: frozenset[str]
    picks: tuple[str, ...]
    """Distinct, in the order named. Options; where the answer is malformed, the pieces that are none."""
    malformed: bool = False
    ranked: tuple[str, ...] = ()
    """All pieces in the order named, each as the option that it names, or as it is if it names none."""

    @property
    def hits(self) -> int:
        """How many picks are gold."""
        return sum(pick in self.gold for pick in self.picks)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if both are."""
        return _f1(self.hits, len(self.picks), len(self.gold))

    @property
    def average_precision(self) -> float:
        """Sum of the precision at each hit, divided by the number of golds; above 1 if a hit is repeated."""
        ranks = [rank for rank, pick in enumerate(self.ranked, start=1) if pick in self.gold]
        return sum(hits / rank for hits, rank in enumerate(ranks, start=1)) / len(self.gold) if self.gold else 0.0

    @property
    def reciprocal_rank(self) -> float:
        """One divided by the rank of the first hit; 0 without one."""
        return next((1 / rank for rank, pick in enumerate(self.ranked, start=1) if pick in self.gold), 0.0)

    @property
    def precision_at_5(self) -> float:
        """Hits among the first five, divided by five always."""
        return sum(pick in self.gold for pick in self.ranked[:_TOP]) / _TOP


def read_list(options: Sequence[str], gold: Sequence[str], text: str) -> ListAnswer:
    """Read a list answer by the strict rules: one piece that is no option spoils it.

    The unmatched pieces are then all that is left of it; its ranking keeps what it names.
    """
    table = Options.of(options)
    labels = _gold_labels(table, gold)
    text = text.split("\n\n", 1)[0].strip()
    pieces = _split(text)
    if pieces and all(piece in table.texts for piece in pieces):
        return ListAnswer(labels, _distinct(pieces), ranked=_distinct(pieces))
    matched, unmatched, ranked = [], [], []
    for label, piece in _join(_labelled(text, table), table):
        option = _option(label, piece, table)
        if option is None:
            unmatched.append(f"{label.lower()}: {piece}" if label else piece)
        else:
            matched.append(option)
        ranked.append(unmatched[-1] if option is None else option)
    return ListAnswer(labels, _distinct(unmatched or matched), bool(unmatched), tuple(ranked))


def read_list_kindly(options: Sequence[str], gold: Sequence[str], text: str) -> ListAnswer:
    """Read the same; newlines, bullets, numbers, semicolons, "and", and letters with a bracket count too.

    Pieces that are no option stay picks, so that an invented one costs precision and not the whole item. Of several
    paragraphs the first that names an option counts. A gold entry that is an option stays whole.
    """
    table, strict = Options.of(options), read_list(options, gold, text)
    entries = frozenset(map(normalise, gold))
    labels = entries if entries <= set(table.texts) else strict.gold
    if not strict.malformed:
        return ListAnswer(labels, strict.picks)
    paragraphs = [_picks(part, table) for part in re.split(r"\n\s*\n", _plain(text)) if part.strip()]
    pieces = next((picks for picks in paragraphs if any(pick in table.texts for pick in picks)), strict.picks)
    return ListAnswer(labels, pieces)


def label_macro_f1(answers: Iterable[ListAnswer]) -> float:
    """Average F1 over the labels that are gold or picked anywhere: the released scorer's macro F1; 0 without labels.

    Equal labels of different items are one.
    """
    hits, picks, golds = Counter[str](), Counter[str](), Counter[str]()
    for answer in answers:
        hits.update(answer.gold.intersection(answer.picks))
        picks.update(frozenset(answer.picks))
        golds.update(answer.gold)
    labels = sorted(picks.keys() | golds.keys())
    return sum(_f1(hits[label], picks[label], golds[label]) for label in labels) / len(labels) if labels else 0.0


def micro_f1(answers: Collection[ListAnswer]) -> float:
    """Compute F1 of all labels pooled; 0 if there is none."""
    return _f1(*(sum(counts) for counts in zip(*((a.hits, len(a.picks), len(a.gold)) for a in answers), strict=True)))


def _f1(hits: int, picks: int, golds: int) -> float:
    return 2 * hits / (picks + golds) if picks + golds else 0.0


def _gold_labels(table: Options, gold: Sequence[str]) -> frozenset[str]:
    """Read the gold entries as normalised texts.

    A single option letter stands for its option. An entry that begins with an option letter and `. `, `: ` or a space
    loses both, so that a gold "A fib" becomes "fib", which no answer can name: the released scorer does so.
    """
    prefix = re.compile(rf"\A{table.labels}[.:]?\s+(?=\S)", re.IGNORECASE)
    entries = [entry.strip() for entry in gold]
    return frozenset(table.by_letter(entry) or normalise(prefix.sub("", entry)) for entry in entries)


def _labelled(text: str, table: Options) -> list[tuple[str, str]]:
    """Split a text into pieces as (letter, normalised text); the letter is empty if a piece has none.

    A letter with a colon or a full stop begins a piece wherever it stands, even at the end of a word, and what stands
    before the first is dropped: "The correct options are: X, Y" is read because of its "e:".
    """
    text = text.replace("(", "").replace(")", "")
    prefix = rf"{table.labels}[:.]"
    hits = re.findall(rf"({table.labels})[:.]\s*(.+?)(?=\s*{prefix}\s*\S|\Z)", text, re.IGNORECASE | re.DOTALL)
    if not hits or (len(hits) == 1 and "," in hits[0][1]):
        return [("", piece) for piece in _split(hits[0][1] if hits else text)]
    return [(letter, normalise(piece.strip(" \t\n,"))) for letter, piece in hits]


def _join(pieces: list[tuple[str, str]], table: Options) -> list[tuple[str, str]]:
    """Join neighbouring pieces, the longest run first, where together they are an option that holds commas."""
    longest = max((option.count(",") for option in table.texts), default=0) + 1
    joined, place = [], 0
    while place < len(pieces):
        for end in range(min(place + longest, len(pieces)), place + 1, -1):
            run = ", ".join(piece for _, piece in pieces[place:end])
            if run in table.texts:
                joined.append(("", run))
                place = end
                break
        else:
            joined.append(pieces[place])
            place += 1
    return joined


def _option(label: str, piece: str, table: Options) -> str | None:
    """Find the option that a piece names; a wrong letter before an option's text is forgiven.

    A letter may be a part of the text: "E. coli" where E is an option's letter.
    """
    if not label and (option := table.by_letter(piece)) is not None:
        return option
    return next((text for text in (piece, normalise(f"{label} {piece}")) if text in table.texts), None)


def _split(text: str) -> list[str]:
    """Split a text at commas into normalised pieces; empty ones do not count."""
    return [piece for part in text.split(",") if (piece := normalise(part))]


def _distinct(pieces: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pieces))


def _plain(text: str) -> str:
    """Strip the markup from a text, and make runs of blanks one."""
    return _BLANKS.sub(" ", _MARKUP.sub("", text)).strip()


def _after_answer(text: str) -> list[str]:
    """List what follows the last three "answer is" or "answer:", the last first."""
    ends = [match.end() for match in _ANSWER_IS.finditer(text)]
    return [text[end:].strip() for end in ends[:-4:-1]]


def _named(part: str, table: Options, *, in_list: bool = False) -> str | None:
    """Find the option that a text is, with or without its letter; the text counts before the letter.

    In a list, a letter before a text that is no option does not stand for its own.
    """
    if (piece := normalise(part)) in table.texts:
        return piece
    if lone := _LONE_LETTER.match(part):
        return table.by_letter(lone[1])
    if lettered := _LETTERED.match(part):
        piece = normalise(part[lettered.end() :])
        return piece if piece in table.texts else None if in_list else table.by_letter(lettered[1])
    return None


def _picks(paragraph: str, table: Options) -> tuple[str, ...]:
    """List what a paragraph names, options and others, distinct and in order."""
    picks: list[str] = []
    for line in re.split(r"[\n;]", paragraph):
        lead = _after_answer(line)
        line = _BULLET.sub("", lead[0] if lead else line.strip())
        if not line.endswith(":"):
            picks += _pieces(line, table)
    return _distinct(picks)


def _pieces(line: str, table: Options) -> list[str]:
    """Cut a line at commas and "and", the longest runs that are an option first."""
    parts = _JOINTS.split(line)
    longest = max((len(_JOINTS.split(option)) for option in table.texts), default=1)
    pieces, place = [], 0
    while place < len(parts):
        for end in range(min(place + longest, len(parts)), place, -1):
            run = _BULLET.sub("", "".join(parts[place:end]).strip())
            if (option := _named(run, table, in_list=True)) is not None:
                pieces.append(option)
                place = end
                break
        else:
            if piece := normalise(parts[place]).strip(" ,:"):
                pieces.append(piece)
            place += 1
        place += place % 2
    return pieces
