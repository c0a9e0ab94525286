"""What columns are called in other people's files, by the lists of `names.yaml`; it says never what a column holds."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

_DATA = Path(__file__).with_name("names.yaml")
ALPHABETS = ("abcdefghijklmnopqrst", "αβγδεζ", "абвгдеж", "ابجدهو", "أبجدهو", "アイウエオカ", "甲乙丙丁戊己", "กขคงจ")
"""Letters that count."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
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
    apart = _CAMEL.sub("_", column if inner.isdigit() or not outer else inner)
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
            is_known = not words or words & {*word_lists("within")["options"]}
            groups.append((run, "wrong" if is_wrong else "options" if is_known else ""))
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
