"""Which language texts are in, told by their script and by the small words that only grammar needs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

_LISTS = """\
en: the of which is in to and with for what following are by was an on that has from most
es: el la los las de del que cuál un una en es se por con para y siguientes cual al su más no
fr: le la les de des du quel quelle est un une dans et sont par pour au qui parmi suivantes ne
gl: o a os as do da dos das que cal unha un en é non por con para e seguintes ao na no máis
it: il lo la gli le di del della dei delle che quale un una è in per con e sono seguenti non al
Portuguese: o a os as do da dos das que qual uma um em é não por com para e seguintes ao na no mais
Catalan: el la els les de del dels que quin quina un una en és per amb i següents no al més
German: der die das den dem des ist welche welcher ein eine und zu mit für von bei im nicht sind
Dutch: de het een van is welke in en met voor op bij niet zijn wordt door te
Polish: jest który która które w z na i do nie się przez dla oraz są
Turkish: ve bir hangisi aşağıdakilerden değildir için ile olan en bu da de
Vietnamese: là của và các không có cho trong được những sau nào"""  # noqa: RUF001 - a letter of Turkish
_WORDS: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split()) for name, _, words in (line.partition(": ") for line in _LISTS.splitlines())
}
"""Language -> its commonest words without a meaning of their own; those that do not ship resemble some that do."""
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]"), 0.1),
    ("Korean", re.compile("[\uac00-\ud7af]"), 0.2),
    ("zh", re.compile("[\u4e00-\u9fff]"), 0.3),
    ("ru", re.compile("[\u0400-\u04ff]"), 0.4),
    ("Arabic or Persian", re.compile("[\u0600-\u06ff]"), 0.4),
    ("Hindi or Marathi", re.compile("[\u0900-\u097f]"), 0.4),
    ("Greek", re.compile("[\u0370-\u03ff]"), 0.4),
    ("Thai", re.compile("[\u0e00-\u0e7f]"), 0.4),
)
"""Language, its letters, and the share of a text's letters that they are at least."""
_WORD = re.compile(r"[^\W\d_]+")
_ENOUGH, _AHEAD = 3, 1.3
"""Words that decide at least, and how many more of them than of the next language's."""


def find_language(texts: Iterable[str]) -> str | None:
    """Find the code of a language that ships, or the name of another one; None if the texts do not tell."""
    text = "\n".join(texts).casefold()
    letters = sum(map(len, _WORD.findall(text)))
    for language, script, share in _SCRIPTS:
        if letters and len(script.findall(text)) >= share * letters:
            if language == "ru" and re.search("[іїєґўјљњћђќѓџ]", text):
                return "another language in Cyrillic letters"
            return language
    words = Counter(_WORD.findall(text))
    counts = Counter(
        {language: sum(words[word] for word in language_words) for language, language_words in _WORDS.items()}
    )
    (best, most), (_, next_most) = counts.most_common(2)
    return best if most >= _ENOUGH and most >= _AHEAD * next_most else None
