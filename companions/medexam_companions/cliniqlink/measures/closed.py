"""True/false and multiple choice, read as strictly as the released scorer reads them, and as a kind reader takes them.

The kind reading says what a run loses by its format alone, of lists too. It begins with the strict one and looks
further only if that finds nothing. No benchmark scores by it.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from medexam.text import option_letters
from medexam_companions.cliniqlink.measures.items import ScoringItem
from medexam_companions.cliniqlink.measures.lists import OptionTable, Picks, gold_labels, read_list_answer
from medexam_companions.cliniqlink.measures.texts import normalise_answer

_VERDICT = re.compile(r"(true|false)(.*)", re.IGNORECASE | re.DOTALL)
_MARKUP = re.compile(r"[*`#\"“”]|(?<!\w)_|_(?!\w)")
_BLANKS = re.compile(r"[^\S\n]+")
_ANSWER_IS = re.compile(
    r"\b(?:answers?|options?|choices?|statement)\b\s*(?:\(s\))?\s*(?:(?:is|are)\s*:?|:)\s*", re.IGNORECASE
)
_WORDS = {"true": "true", "t": "true", "yes": "true", "false": "false", "f": "false", "no": "false"}
_LEADING_WORD = re.compile(r"(true|false|yes|no|[tf](?![\w'’]))\b", re.IGNORECASE)  # noqa: RUF001
_BULLET = re.compile(r"^(?:[-•·–—*+]\s*|\(?\d{1,2}[.)]\s+)+")  # noqa: RUF001
_LETTERED = re.compile(r"^\(?(?:option\s+)?([A-Za-z])(?:\s*\)\s*[.:]?|[.:]|\s*[-–—](?=\s))\s*", re.IGNORECASE)  # noqa: RUF001
_LONE_LETTER = re.compile(r"^\(?(?:option\s+)?([A-Za-z])\)?[.:]?$", re.IGNORECASE)
_JOINTS = re.compile(r"(\s*,\s*(?:and\s+|or\s+)?|\s+and\s+|\s*&\s*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ClosedVerdict:
    """What a true/false answer says."""

    word: str | None
    """`true` or `false`; None if the answer begins with neither."""
    trailing: bool
    """Text follows the word, without cost."""


def read_verdict(text: str) -> ClosedVerdict:
    """Read the leading word, by prefix: "Truely not" is true, and so is "True or False"."""
    match = _VERDICT.match(text.strip())
    if match is None:
        return ClosedVerdict(None, trailing=False)
    return ClosedVerdict(match[1].lower(), trailing=bool(match[2].strip()))


def verdict_is_right(item: ScoringItem, word: str | None) -> bool:
    """Return whether a verdict is the item's."""
    return word is not None and word == item.answer.lower()


class Match(StrEnum):
    """How a multiple-choice answer meets the gold; only `FULL` earns the point."""

    FULL = "full"
    """The gold option's text."""
    LETTER = "letter"
    """The gold letter alone."""
    MIXED = "mixed"
    """Letter, colon and text, for options that hold no punctuation."""
    NONE = "none"


def gold_option(item: ScoringItem) -> str:
    """Return the right option's text: a gold that is a letter of an option stands for it, any other for itself.

    So a gold "B" among the options "B", "A" means "A".
    """
    letters = option_letters(item.options)
    letter = item.answer.upper()
    return item.options[letters.index(letter)] if letter in letters else item.answer


def match_gold(item: ScoringItem, text: str) -> Match:
    """Match an answer with the gold: by equal normalised texts, or else find which of the near misses it is."""
    gold, answer = gold_option(item), normalise_answer(text)
    if answer == normalise_answer(gold):
        return Match.FULL
    letter = next(
        (x for x, option in zip(option_letters(item.options), item.options, strict=True) if option == gold), ""
    )
    if letter and answer.upper() == letter:
        return Match.LETTER
    if letter and answer == f"{letter}: {gold}".lower():
        return Match.MIXED
    return Match.NONE


def is_option(item: ScoringItem, text: str) -> bool:
    """Return whether an answer is the text of any option."""
    return normalise_answer(text) in {normalise_answer(option) for option in item.options}


def forgiven_verdict(item: ScoringItem, text: str) -> bool:
    """Judge a true/false answer kindly: "The answer is True", "**True**", "Yes", "No", "T" and "F" count too."""
    verdict = read_verdict(text).word
    if verdict is None:
        plain = _plain(text)
        match = _LEADING_WORD.match(plain) or next(
            (word for tail in _after_answer(plain) if (word := _LEADING_WORD.match(tail))), None
        )
        verdict = _WORDS[match[1].lower()] if match else None
    return verdict_is_right(item, verdict)


def forgiven_choice(item: ScoringItem, text: str) -> bool:
    """Judge a multiple-choice answer kindly: a letter, "C: text", "(C) text" and "The answer is C" count too."""
    gold = normalise_answer(gold_option(item))
    if normalise_answer(text) == gold:
        return True
    table = OptionTable.of(item.options)
    table = OptionTable(table.letters, tuple(normalise_answer(option) for option in item.options))
    plain = _plain(text)
    for candidate in (plain, *_after_answer(plain)):
        for part in dict.fromkeys((candidate, candidate.split("\n", 1)[0].strip())):
            if (option := _named(part, table)) is not None:
                return option == gold
    return False


def forgiven_list(item: ScoringItem, text: str) -> Picks:
    """Read a list answer: also with newlines, bullets, numbers, semicolons, "and", and letters with a bracket.

    Pieces that are no option stay picks, so that an invented one costs precision and not the whole item. Of several
    paragraphs the first that names an option counts. A gold entry that is an option stays whole.
    """
    table = OptionTable.of(item.options)
    entries = frozenset(normalise_answer(entry) for entry in item.gold)
    gold = entries if entries <= set(table.texts) else gold_labels(item)
    strict = read_list_answer(item, text)
    if not strict.malformed:
        return Picks(gold, strict.picks)
    paragraphs = [_picks(part, table) for part in re.split(r"\n\s*\n", _plain(text)) if part.strip()]
    option_picks = next((picks for picks in paragraphs if any(pick in table.texts for pick in picks)), strict.picks)
    return Picks(gold, option_picks)


def _plain(text: str) -> str:
    """Strip the markup from a text, and make runs of blanks one."""
    return _BLANKS.sub(" ", _MARKUP.sub("", text)).strip()


def _after_answer(text: str) -> list[str]:
    """List what follows the last three "answer is" or "answer:", the last first."""
    ends = [match.end() for match in _ANSWER_IS.finditer(text)]
    return [text[end:].strip() for end in ends[:-4:-1]]


def _named(part: str, table: OptionTable, *, in_list: bool = False) -> str | None:
    """Find the option that a text is, with or without its letter; the text counts before the letter.

    In a list, a letter before a text that is no option does not stand for its own.
    """
    if (piece := normalise_answer(part)) in table.texts:
        return piece
    if lone := _LONE_LETTER.match(part):
        return table.by_letter(lone[1])
    if lettered := _LETTERED.match(part):
        piece = normalise_answer(part[lettered.end() :])
        return piece if piece in table.texts else None if in_list else table.by_letter(lettered[1])
    return None


def _picks(paragraph: str, table: OptionTable) -> tuple[str, ...]:
    """List what a paragraph names, options and others, distinct and in order."""
    picks: list[str] = []
    for line in re.split(r"[\n;]", paragraph):
        lead = _after_answer(line)
        line = _BULLET.sub("", lead[0] if lead else line.strip())
        if line.endswith(":"):
            continue
        picks += _pieces(line, table)
    return tuple(dict.fromkeys(picks))


def _pieces(line: str, table: OptionTable) -> list[str]:
    """Cut a line at commas and "and", the longest runs that are an option first."""
    parts = _JOINTS.split(line)
    longest = max((len(_JOINTS.split(option)) for option in table.texts), default=1)
    pieces, place = [], 0
    while place < len(parts):
        for end in range(min(place + longest, len(parts)), place, -1):
            run = _BULLET.sub("", "".join(parts[place:end]).strip())
            option = _named(run, table, in_list=True)
            if option is not None:
                pieces.append(option)
                place = end
                break
        else:
            if piece := normalise_answer(parts[place]).strip(" ,:"):
                pieces.append(piece)
            place += 1
        place += place % 2
    return pieces
