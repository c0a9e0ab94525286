"""Which language texts are in, told by their script and by the small words that only grammar needs."""

import re
from collections import Counter
from collections.abc import Iterable

_LISTS = """\
en: the of which is in to and with for what following are by was an on that has from most
es: el la los las del cuál qué un una en es se por con para y siguientes cual al su más no
fr: le la les des du quel quelle est un une dans et sont par pour au qui parmi suivantes ne
gl: o a os as do da dos das que cal unha un en é non por con para e seguintes ao na no máis
it: il lo la gli di del della dei delle che quale un una è in per con e sono seguenti non al
Portuguese: o a os as do da dos das que qual uma um em é não por com para e ao na no mais
Catalan: el la els les del que quin quina un una en és per amb i següents no al més
German: der die das den dem ist welche welcher ein eine und zu mit für von bei im nicht sind
Dutch: de het een van is welke in en met voor op bij niet zijn wordt door te"""
_WORDS = {name: {*words.split()} for name, _, words in (line.partition(": ") for line in _LISTS.splitlines())}
"""Language -> its commonest words without a meaning of their own; those that do not ship resemble some that do."""
_SCRIPTS = (("ja", "\u3040-\u30ff", 0.1), ("zh", "\u4e00-\u9fff", 0.3), ("ru", "\u0400-\u04ff", 0.4))
"""Language, its letters, and the share of a text's letters that they are at least."""
_ENOUGH, _AHEAD = 3, 1.3
"""Words that decide at least, and how many more of them than of the next language's."""


def find_language(texts: Iterable[str]) -> str | None:
    """Find the code of a language that ships, or the name of another one; None if the texts do not tell."""
    text = "\n".join(texts).casefold()
    words = re.findall(r"[^\W\d_]+", text)
    for language, script, share in _SCRIPTS:
        if words and len(re.findall(f"[{script}]", text)) >= share * sum(map(len, words)):
            return None if language == "ru" and re.search("[іїєґўјљњћђќѓџ]", text) else language
    counts = Counter({language: sum(map(small.__contains__, words)) for language, small in _WORDS.items()})
    (best, most), (_, next_most) = counts.most_common(2)
    return best if most >= _ENOUGH and most >= _AHEAD * next_most else None
