"""A list answer: which options it names, by the strict rules of the released scorer, and the figures of several.

The answer is cut into pieces, and each piece must be an option. One that is not spoils the answer: the unmatched
pieces are then all that is left of it.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from medexam.text import option_letters
from medexam_companions.cliniqlink.measures.items import ScoringItem
from medexam_companions.cliniqlink.measures.texts import normalise_answer

_LISTED = re.compile(r"^[A-H][.:]\s+")


@dataclass(frozen=True, slots=True)
class ListReading:
    """What a list answer names, in normalised texts."""

    picks: tuple[str, ...]
    """Distinct, in the order named. Options; where the answer is malformed, the pieces that are none."""
    malformed: bool
    ranked: tuple[str, ...]
    """All pieces in the order named, each as the option that it names, or as it is if it names none."""


@dataclass(frozen=True, slots=True)
class OptionTable:
    """An item's options as list answers are read against them."""

    letters: tuple[str, ...]
    texts: tuple[str, ...]
    """Normalised, without a leading `A. ` to `H. ` or `A: ` to `H: `."""

    @classmethod
    def of(cls, options: Sequence[str]) -> "OptionTable":
        """Build the table of these options."""
        plain = (_LISTED.sub("", option.strip()) for option in options)
        return cls(tuple(option_letters(options)), tuple(normalise_answer(text) for text in plain))

    def by_letter(self, letter: str) -> str | None:
        """Return the option of a letter, in either case; None if there is none."""
        letter = letter.upper()
        return self.texts[self.letters.index(letter)] if letter in self.letters else None

    @property
    def labels(self) -> str:
        """A pattern for one of the letters."""
        return f"[{re.escape(''.join(self.letters))}]"


def gold_labels(item: ScoringItem) -> frozenset[str]:
    """Read the gold entries as normalised texts.

    A single option letter stands for its option. An entry that begins with an option letter and `. `, `: ` or a space
    loses both, so that a gold "A fib" becomes "fib", which no answer can name: the released scorer does so.
    """
    table = OptionTable.of(item.options)
    prefixed = re.compile(rf"{table.labels}[.:]?\s+(?=\S)", re.IGNORECASE)
    labels = []
    for entry in item.gold:
        text = entry.strip()
        if (option := table.by_letter(text)) is None:
            prefix = prefixed.match(text)
            option = normalise_answer(text[prefix.end() :] if prefix else text)
        labels.append(option)
    return frozenset(labels)


def read_list_answer(item: ScoringItem, text: str) -> ListReading:
    """Read an answer to an item that has options."""
    table = OptionTable.of(item.options)
    text = text.split("\n\n", 1)[0].strip()
    pieces = _split(text)
    if pieces and all(piece in table.texts for piece in pieces):
        return ListReading(_distinct(pieces), malformed=False, ranked=_distinct(pieces))
    matched, unmatched, ranked = [], [], []
    for label, piece in _join(_labelled(text, table), table):
        option = _option(label, piece, table)
        if option is None:
            unmatched.append(f"{label.lower()}: {piece}" if label else piece)
        else:
            matched.append(option)
        ranked.append(unmatched[-1] if option is None else option)
    return ListReading(_distinct(unmatched or matched), malformed=bool(unmatched), ranked=tuple(ranked))


def _labelled(text: str, table: OptionTable) -> list[tuple[str, str]]:
    """Split a text into pieces as (letter, normalised text); the letter is empty if a piece has none.

    A letter with a colon or a full stop begins a piece wherever it stands, even at the end of a word, and what stands
    before the first is dropped: "The correct options are: X, Y" is read because of its "e:".
    """
    text = text.replace("(", "").replace(")", "")
    prefix = rf"{table.labels}[:.]"
    hits = re.findall(rf"({table.labels})[:.]\s*(.+?)(?=\s*{prefix}\s*\S|\Z)", text, re.IGNORECASE | re.DOTALL)
    if not hits or (len(hits) == 1 and "," in hits[0][1]):
        return [("", piece) for piece in _split(hits[0][1] if hits else text)]
    return [(letter, normalise_answer(piece.strip(" \t\n,"))) for letter, piece in hits]


def _join(pieces: list[tuple[str, str]], table: OptionTable) -> list[tuple[str, str]]:
    """Join neighbouring pieces, the longest run first, where together they are an option that holds commas."""
    longest = max((option.count(",") for option in table.texts), default=0) + 1
    if longest == 1:
        return pieces
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


def _option(label: str, piece: str, table: OptionTable) -> str | None:
    """Find the option that a piece names; a wrong letter before an option's text is forgiven.

    A letter may be a part of the text: "E. coli" where E is an option's letter.
    """
    if not label and (option := table.by_letter(piece)) is not None:
        return option
    full_text = normalise_answer(f"{label} {piece}")
    return next((text for text in (piece, full_text) if text in table.texts), None)


def _split(text: str) -> list[str]:
    """Split a text at commas into normalised pieces; empty ones do not count."""
    return [piece for part in text.split(",") if (piece := normalise_answer(part))]


def _distinct(pieces: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pieces))


@dataclass(frozen=True, slots=True)
class Picks:
    """What an item wants and what an answer named."""

    gold: frozenset[str]
    picks: tuple[str, ...]
    """Distinct, in the order named."""

    @property
    def hits(self) -> int:
        """How many picks are gold."""
        return sum(pick in self.gold for pick in self.picks)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if both are."""
        return f1(self.hits, len(self.picks) - self.hits, len(self.gold) - self.hits)


@dataclass(frozen=True, slots=True)
class ListFigures:
    """Figures over several items; fractions of 1."""

    label_macro_f1: float
    """Mean of the F1 of every distinct label: the released scorer's macro F1. Equal labels of different items are
    one. Where each label occurs in one item it is hits divided by the labels that are gold or picked."""
    item_macro_f1: float
    """Mean of the items' F1: the paper's macro F1."""
    micro_f1: float
    """F1 of all labels pooled."""


def list_figures(items: Sequence[Picks]) -> ListFigures | None:
    """Compute the figures of these items; None without items."""
    if not items:
        return None
    return ListFigures(
        label_macro_f1=label_macro_f1(items), item_macro_f1=_mean([item.f1 for item in items]), micro_f1=micro_f1(items)
    )


def label_macro_f1(items: Sequence[Picks]) -> float:
    """Average F1 over the labels that are gold or picked anywhere; 0 if there is none."""
    right: Counter[str] = Counter()
    extra: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for item in items:
        picked = frozenset(item.picks)
        right.update(picked & item.gold)
        extra.update(picked - item.gold)
        missed.update(item.gold - picked)
    labels = right.keys() | extra.keys() | missed.keys()
    return _mean([f1(right[label], extra[label], missed[label]) for label in sorted(labels)])


def micro_f1(items: Sequence[Picks]) -> float:
    """Compute F1 of the pooled labels; 0 if there is none."""
    hits = sum(item.hits for item in items)
    return f1(hits, sum(len(item.picks) for item in items) - hits, sum(len(item.gold) for item in items) - hits)


def f1(right: int, extra: int, missed: int) -> float:
    """Compute `2 right / (2 right + extra + missed)`; 0 if all are 0."""
    denominator = 2 * right + extra + missed
    return 2 * right / denominator if denominator else 0.0


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values) if values else 0.0
