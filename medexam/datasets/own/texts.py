"""Cleans the texts of other people's files, and knows what their columns are called, by the lists of `names.yaml`.

What is shown to a model is what a reader of the source sees: entities are decoded, tags become line breaks or nothing,
and what is raised stands behind `^`.
"""

import ast
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from medexam.files import parse_json

_UNSEEN = dict.fromkeys(
    [*map(ord, "\u00ad\u200b\u200e\u200f\u2060\ufeff"), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
_BREAKS = re.compile(r"br|hr|p|div|li|ul|ol|tr|table|blockquote|section|article|h[1-6]")
_WITHIN = re.compile(r"wbr|span|font|center|b|i|u|em|strong|small|big|mark|code|pre|a|thead|tbody|td|th|sub")
"""Tags that break the line, and those within a line."""
_TAG = re.compile(r"<(/?)([a-z]+\d?)(?:\s+[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))*\s*/?>", re.IGNORECASE)
_UNSEEN_PARTS = re.compile(r"<!--.*?-->|<(style|script)\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_RAISED = re.compile(r"<sup>(.*?)</sup>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_LINE_ENDS = re.compile(r"[ \t\r]*\n\s*")


def clean_row(cells: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    """Clean the texts of a row and put None for each NaN; what is wrong with a row stays as it is."""
    try:
        # One look at all texts in a row decides of nearly all rows.
        is_clean = isinstance(cells, str) or _is_plain("".join(cells.values()))
    except TypeError:
        is_clean = False
    return cells if is_clean else _clean(cells)


def normalise(text: str) -> str:
    """Put a text in Unicode's composed form (NFC), without signs that nobody sees."""
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_UNSEEN))


def unpack(value: Any) -> Any:
    """Unpack a list or mapping that stands in a cell as text, as JSON or Python writes it; else return the value."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{", "("):
        return value
    for parse in (parse_json, ast.literal_eval):
        try:
            literal = parse(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(literal, (list, dict, tuple)):
            return _clean([*literal] if isinstance(literal, tuple) else literal)
    return value


def _is_plain(text: str) -> bool:
    return text.isascii() and "<" not in text and "&" not in text


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        # A text that holds a list or mapping is only normalised.
        text = value if value.isascii() else normalise(value)
        return text if _is_plain(text) or unpack(text) is not text else _without_html(text)
    if isinstance(value, list):
        return [_clean(element) for element in value]
    if isinstance(value, Mapping):
        return {normalise(key) if isinstance(key, str) else key: _clean(content) for key, content in value.items()}
    return None if isinstance(value, float) and value != value else value


def _without_html(text: str) -> str:
    lower = text.lower()

    def replace(tag: re.Match[str]) -> str:
        name = tag[2].lower()
        if _BREAKS.fullmatch(name):
            return "\n"
        # A letter between signs, as in a <b>, is a tag only if it is closed.
        if not _WITHIN.fullmatch(name) or (name != "wbr" and not (f"</{name}>" in lower and f"<{name}" in lower)):
            return tag[0]
        return " " if tag[1] and name in ("td", "th") else ""

    plain_text = _TAG.sub(replace, _RAISED.sub(r"^(\1)", _UNSEEN_PARTS.sub("", text)))
    if plain_text.count("\n") > text.count("\n"):
        plain_text = _LINE_ENDS.sub("\n", plain_text).strip()
    return normalise(_ENTITY.sub(lambda entity: html.unescape(entity[0]).replace("\xa0", " "), plain_text))


_DATA = Path(__file__).with_name("names.yaml")
ALPHABETS = ("abcdefghijklmnopqrst", "αβγδεζ", "абвгдеж", "ابجدهو", "أبجدهو", "アイウエオカ", "甲乙丙丁戊己", "กขคงจ")
"""Letters that count."""
_CAMEL = re.compile(r"(?<=[a-z\u3040-\u9fff])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])|\s*\([^()]*\)$")
_ENDING = re.compile(r"([a-z]{2,})([a-j])")
_SCRIPTS = (("ja", "\u3040-\u30ff", 0.1), ("zh", "\u4e00-\u9fff", 0.3), ("ru", "\u0400-\u04ff", 0.4))
"""Language, its letters, and the share of a text's letters that they are at least."""
_ENOUGH, _AHEAD = 3, 1.3
"""Words that tell a language at least, and how many more of them than of the next language's."""


@cache
def _groups() -> Mapping[str, Mapping[str, Any]]:
    import yaml

    groups: Mapping[str, Mapping[str, Any]] = yaml.safe_load(_DATA.read_text(encoding="utf-8"))
    return groups


@cache
def word_lists(group: str) -> Mapping[str, tuple[str, ...]]:
    """Return the lists of a group in `names.yaml`: name -> its words, the likeliest first."""
    return {name: tuple(words.split()) for name, words in _groups()[group].items()}


@cache
def pattern(name: str, form: str = "{}") -> re.Pattern[str]:
    """Return the expression in `form` with the alternatives of a pattern in `names.yaml` for `{}`, in any case."""
    return re.compile(form.replace("{}", f"(?:{'|'.join(_groups()['patterns'][name])})"), re.IGNORECASE)


def shift(label: str, distance: int) -> str:
    """Return the label that stands `distance` places behind another; empty if there is none."""
    if label.isdigit():
        return str(int(label) + distance)
    letters = next((letters for letters in ALPHABETS if label.lower() in letters), "")
    letter = letters[letters.find(label.lower()) + distance :][:1]
    return letter.upper() if label.isupper() else letter


def in_order(labels: Iterable[str]) -> list[str]:
    """List letters or numbers in the order in which they count."""
    return sorted(labels, key=lambda label: (len(label), label))


def plain_name(column: str) -> str:
    """Write a name in small letters without accents, its words apart by `_`: `correctAnswer` is `correct_answer`."""
    outer, _, inner = column.rpartition(".")
    # The text of a record is called as the record.
    apart = _CAMEL.sub("_", column if inner.isdigit() or not outer else outer if inner == "text" else inner)
    letters = unicodedata.normalize("NFKD", apart).casefold()
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[\W_]+", "_", unicodedata.normalize("NFC", bare)).strip("_")


def rank(field: str, column: str) -> tuple[int, int] | None:
    """Rank how near a column's name is to those of a field, smaller is nearer; None if it is none.

    The first number is 0 for one of its names, 1 for a longer name with one of its words.
    """
    name = plain_name(column)
    names = [alias.replace("_", "") for alias in word_lists("fields")[field]]
    if name.replace("_", "") in names:
        return 0, names.index(name.replace("_", ""))
    words = name.split("_")
    if field not in ("stem", "answer") or not {words[0], words[-1]} & {*word_lists("within")[field]}:
        return None
    others = {*word_lists("within")["neither"], *(word_lists("within")["answer"] if field == "stem" else ())}
    return None if others & {*words} else (1, len(words))


def find_named(field: str, columns: Iterable[str]) -> list[str]:
    """Find the columns whose names are a field's, the nearest first."""
    ranked = [(nearness, column) for column in columns if (nearness := rank(field, column)) is not None]
    return [column for _, column in sorted(ranked, key=lambda pair: pair[0])]


def find_groups(columns: Iterable[str]) -> list[tuple[tuple[str, ...], Literal["options", "wrong", ""]]]:
    """Find groups of columns that differ by a letter or a number that counts on: `Option A`, `Option B`.

    They begin with A, 0 or 1; the longest come first, those that are called as options or wrong options before.
    """
    by_name: dict[str, dict[str, str]] = {}
    for column in columns:
        for name, label in _labels(column):
            by_name.setdefault(name, {}).setdefault(label, column)
    groups: list[tuple[tuple[str, ...], Literal["options", "wrong", ""]]] = []
    for name, labelled in by_name.items():
        first = in_order(labelled)[0]
        following = (shift(first, distance) for distance in range(len(labelled)))
        run = tuple(labelled[label] for label in takewhile(labelled.__contains__, following))
        if first in ("a", "0", "1") and len(run) > 1:
            words = {*filter(None, name.replace("#", "_").split("_"))}
            is_wrong = name.replace("#", "").strip("_") in word_lists("fields")["wrong"]
            are_options = not words or words & {*word_lists("within")["options"]}
            groups.append((run, "wrong" if is_wrong else "options" if are_options else ""))
    return sorted(groups, key=lambda group: (group[1] != "options", -len(group[0])))


def _labels(column: str) -> Iterator[tuple[str, str]]:
    """Yield what a name may be without its label, `#` in its place, and the label."""
    words, outer = plain_name(column).split("_"), column.rpartition(".")[0]
    for place, word in enumerate(words):
        pattern = outer + "_".join([*words[:place], "#", *words[place + 1 :]])
        if word.isdigit() and len(word) < 3:
            yield pattern, str(int(word))
        for alphabet in ALPHABETS if len(word) == 1 else ():
            if word in alphabet:
                yield pattern, ALPHABETS[0][alphabet.index(word)]
    if ending := _ENDING.fullmatch(words[-1]):
        yield f"{outer}{'_'.join([*words[:-1], ending[1]])}#", ending[2]


def find_language(texts: Iterable[str]) -> str | None:
    """Find the code of a language that ships, or the name of another one; None if the texts do not tell."""
    text = "\n".join(texts).casefold()
    words = re.findall(r"[^\W\d_]+", text)
    for language, script, share in _SCRIPTS:
        if words and len(re.findall(f"[{script}]", text)) >= share * sum(map(len, words)):
            return None if language == "ru" and re.search("[іїєґўјљњћђќѓџ]", text) else language
    counts = Counter({name: sum(map({*small}.__contains__, words)) for name, small in word_lists("languages").items()})
    (best, most), (_, next_most) = counts.most_common(2)
    return best if most >= _ENOUGH and most >= _AHEAD * next_most else None
