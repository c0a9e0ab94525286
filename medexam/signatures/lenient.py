r"""The lenient reader of replies: the option that a careful marker would read where the strict reader finds none.

lm-evaluation-harness prints `flexible-extract` beside `strict-match`; this is the like, except that it reads nothing
rather than a guess. A sentence states an option if all of its words are those of a statement ("The answer is (C)",
"\boxed{3}", "Option 3 is the correct answer") or of the option itself. Everything here is a pure function of text.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice, pairwise

from medexam.signatures.answer_format import drop_idioms, drop_struck, is_taken_back, plain_forms
from medexam.signatures.choices import capitals_of
from medexam.signatures.reply_words import (
    CJK,
    OPTION,
    names,
    numerals,
    pattern,
    pattern_of,
    roles,
    word_pattern,
    words_of,
    write_out,
)

_LETTERS = ("ABCDEFGHIJ", "\u0410\u0411\u0000\u0413\u0414", "\u0623\u0628\u062c\u062f")
_TEXT, _LABEL, _SIGNS, _UNCLEAR = 0xE000, 0xE800, 0x800, 0xFF
"""An option is written as one sign, by its place, its text and its label apart; the last place is none or several."""


def read_leniently(reply: str, options: Mapping[int, str], *, reasoned: bool = False, cut: bool = False) -> int | None:
    """Return the printed number of the option that a reply states, or None.

    `options`: printed number -> text. `reasoned`: the reply reasons first, and its last statement counts; otherwise all
    of them must agree. An option alone counts at the end of a reply, and at the beginning of one that does not reason.
    `cut`: the reply ended at its budget, so only a statement that begins it counts, or that a full stop ends there.
    """
    write, reply = _writer(tuple(options.items())), pattern("begun").sub("", reply) if cut else reply
    statements = [*islice(_statements(reply, write, reasoned=reasoned), 1 if reasoned else None)]
    if not statements:
        return None
    (place, _, is_ended, remainder), begins = statements[0], statements[-1][1]
    is_lost = cut and not (remainder.strip() if begins else is_ended and not remainder.strip())
    if is_lost or len({one for one, *_ in statements}) > 1 or is_taken_back(remainder):
        return None
    return [*options][place] if place < len(options) else None


def _statements(reply: str, write: Callable[[str], str], *, reasoned: bool) -> Iterator[tuple[int, bool, bool, str]]:
    """Yield each sentence that states an option, the last one first: the option's place, `_UNCLEAR` for none or many,
    whether the sentence begins the reply and whether a full stop ends it, and what stands behind the last one.
    """
    text = drop_struck(plain_forms(reply)).replace("*", "").replace("`", "").replace(" \n", "\n").replace(" \n", "\n")
    pieces = [text[start:end] for start, end in _cut("piece", text)]
    while pieces and not _plain(pieces[-1]):
        pieces.pop()
    is_list = len({match[1] for match in map(pattern("item").match, text.splitlines()) if match}) > 1
    remainder: str | None = None
    for number, piece in reversed([*enumerate(pieces)]):
        is_first, is_last = number == 0 and not reasoned, number == len(pieces) - 1
        lower = piece.lower()
        if not (is_first or is_last or any(stem in lower for stem in _stems_of(text))):
            continue
        words = _plain(piece)
        is_item, signs = is_list and pattern("item").match(words), write(words)
        spans = _cut("sentence", signs)
        for start, end in reversed(spans):
            begins, ends = is_first and start == spans[0][0], is_last and end == spans[-1][1]
            place, is_bare = _read_sentence(signs, start, end, opens=begins, alone=begins or ends)
            if place is None or (is_bare and (is_item or (reasoned and names(signs[start:end], "correct")))):
                continue
            # A window: what stands before it would be copied for each sentence.
            is_ended = signs[max(0, end - 40) : end].rstrip(" \"')]}").endswith(".")
            remainder = "\n".join([signs[end:], *pieces[number + 1 :]]) if remainder is None else remainder
            yield place, begins, is_ended, remainder


@lru_cache(maxsize=1)
def _stems_of(text: str) -> list[str]:
    """Return the words of a text of which one is in every statement that is more than the option."""
    words, lower = words_of("answer", "choose", "correct"), text.lower()
    return [word for word in words if word in lower and (len(word) > 3 or not word.isascii())]


def _cut(ending: str, text: str) -> list[tuple[int, int]]:
    """Return where the parts of a text begin and end, without blank ones."""
    ends = [*(match.end() for match in pattern(ending).finditer(text)), len(text)]
    return [(start, end) for start, end in pairwise([0, *ends]) if text[start:end].strip()]


def _read_sentence(text: str, start: int, end: int, *, opens: bool, alone: bool) -> tuple[int | None, bool]:
    """Return the place of the option that a sentence states, and whether it says nothing else; None for no statement.

    `opens`: an explanation may stand behind its colon. `alone`: the option alone is a statement.
    """
    sentence = drop_idioms(text[start:end].lower())
    if "?" in sentence or "\uff1f" in sentence or pattern("another_case").match(sentence):
        return None, False
    explained = pattern("explained").fullmatch(sentence) if opens else None
    if explained and not names(sentence, "denial", "wrong", "doubt", "example"):
        return ord(explained[1]) % _SIGNS, True
    place, is_bare = _join_clauses(pattern("clause").split(sentence))
    if place is None or (is_bare and not alone) or names(sentence, "doubt", "example"):
        return None, False
    label = pattern("labelled").match(text, start)
    if is_bare and label and not pattern_of("because").match(text[label.end() : end + 20].lower()):
        return _UNCLEAR, True
    return place, is_bare


def _join_clauses(clauses: Iterable[str]) -> tuple[int | None, bool]:
    """Return the place of the option that clauses state together, and whether they say nothing else."""
    stated: set[int] = set()
    is_bare, earlier = True, []
    for clause in clauses:
        kind, places, against = _read_clause(clause)
        if kind == "reason" and stated:
            break
        if kind == "other" and not stated:
            earlier.append(not places and names(clause, "denial", "wrong"))
        elif kind == "other":
            is_of_it = not places or places == stated
            if len(places) > 1 or (not places and is_bare) or names(clause, "denial", "wrong") == is_of_it:
                return None, False
        elif places:
            if not stated and earlier and not against and (kind == "bare" or any(earlier)):
                return None, False
            stated |= places
        is_bare = is_bare and kind != "stated"
    return (stated.pop() if len(stated) == 1 else _UNCLEAR) if stated else None, is_bare


@lru_cache(maxsize=256)
def _read_clause(clause: str) -> tuple[str, set[int], bool]:
    """Return what a clause does with its options, their places, and whether it begins against the one before."""
    places: set[int] = set()
    groups: list[str] = []
    is_stated = False
    for match in word_pattern().finditer(clause):
        word, end = match[0], match.end()
        group = roles().get(word)
        if "\ue000" <= word <= "\uf8ff":
            places.add(ord(word) % _SIGNS)
            if clause[end : end + 2] == ") " and "(" not in clause and is_stated:
                break
        elif word in ":\uff1a":
            groups.append(":")
        elif word in numerals() and (group is None or not (places or pattern("any_word").search(clause, end))):
            places.add(numerals()[word])
        elif word in "abcdefgh" and not pattern("any_word").search(clause, end):
            places.add(ord(word) - ord("a"))
        elif group == "because" and (places or not groups):
            if not places:
                return "reason", places, False
            break
        elif group is None or (word == "is" and not groups and not places):
            return "other", {ord(sign) % _SIGNS for sign in re.findall(OPTION, clause)}, False
        else:
            is_right = group == "correct" and (not places or groups[-1:] == ["filler"])
            is_stated = is_stated or is_right or group in ("answer", "choose", "so")
            groups.append(group)
    return "stated" if is_stated else "bare", places, groups[:1] in (["against"], ["so"])


@lru_cache(maxsize=4096)
def _writer(options: tuple[tuple[int, str], ...]) -> Callable[[str], str]:
    """Return what writes each option that a text names as one sign, and abbreviations as words."""
    numbers = [number for number, _ in options]
    capitals = capitals_of(dict(options))
    places: dict[str, int] = {}
    for place, (_, option) in enumerate(options):
        text = _plain(option).strip(" .,;:!\u3002\"'()[]{}\u2018\u2019\u201c\u201d\u00ab\u00bb")
        latin = pattern("latin").fullmatch(text)
        for form in (text, *([f"{latin[1]}. {latin[2]}"] if latin else [])):
            places[form.casefold()] = _UNCLEAR if form.casefold() in places else place
    texts = sorted(filter(None, places), key=len, reverse=True)
    every = "|".join(map(re.escape, texts)) or "(?!)"
    long = "|".join(re.escape(text) for text in texts if len(text) > 1 and not text.isdigit()) or "(?!)"
    neighbour = rf"[^\W{CJK}]"  # What makes a word with its neighbour; a Chinese sign does not.
    option_pattern = re.compile(
        rf"(?<!{neighbour})(?P<alone>{long})(?!{neighbour})"
        rf"|(?x:{pattern('sign').pattern})(?:(?P<gap>{pattern('gap').pattern})(?P<text>{every})(?!{neighbour}))?",
        re.IGNORECASE,
    )

    def write_sign(match: re.Match[str]) -> str:
        text, sign = match["alone"] or match["text"], match["sign"]
        by_text = places.get((text or sign).casefold(), _UNCLEAR)
        if sign is None:
            return chr(_TEXT + by_text)
        if sign.isdigit():
            place = numbers.index(int(sign)) if int(sign) in numbers else _UNCLEAR
        else:
            place = max(letters.find(sign.upper()) for letters in _LETTERS)
            place = place if 0 <= place < len(numbers) else _UNCLEAR
        if text:
            return (
                chr(_TEXT + place) if by_text == place else f"{chr(_LABEL + place)}{match['gap']}{chr(_TEXT + by_text)}"
            )
        is_text = by_text != _UNCLEAR and sign == sign.upper()
        capital = numbers.index(capitals[sign.upper()]) if sign.upper() in capitals else place
        if (by_text if is_text else capital) != place:
            before = match.string[max(match.start() - 12, 0) : match.start()]
            is_labelled = (
                match.string[match.end() : match.end() + 1] in (")", "]")
                or before.endswith(("(", "["))
                or names(before, "label")
            )
            place = by_text if is_text and (place == _UNCLEAR if sign.isdigit() else not is_labelled) else _UNCLEAR
        return chr(_LABEL + place)

    return lambda text: option_pattern.sub(write_sign, write_out(text))


def _plain(text: str) -> str:
    """Return a text with plain digits and single spaces, and without marks of Markdown, LaTeX and HTML."""
    if not text.isascii():
        text = pattern("digit").sub(lambda match: str(unicodedata.digit(match[0], " ")), plain_forms(text))
    return " ".join(pattern("markup").sub("", text).split())
