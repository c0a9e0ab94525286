"""Letters that the texts of options hold, such as the D of "Vitamin D": a reply of that letter may mean them.

This module knows nothing of replies.
"""

import re
from collections import Counter
from collections.abc import Mapping

_CAPITAL = re.compile(r"(?<![\w'-])[A-Z](?![\w'-])")
_SHORT = 3
"""Most words of an option that a capital among them may stand for: "Vitamin D", "B lymphocytes"."""


def capitals_of(options: Mapping[int, str]) -> Mapping[str, int]:
    """Return the option that a capital alone tells from the others, by that capital.

    `options`: printed number -> text. "Vitamin A" and "Vitamin C" give A and C. Empty if one option alone has such a
    letter, for that may be an article or a name.
    """
    letters = {
        number: set(_CAPITAL.findall(text)) if len(text.split()) <= _SHORT else set()
        for number, text in options.items()
    }
    count = Counter(letter for option_letters in letters.values() for letter in option_letters)
    capitals = {
        letter: number for number, option_letters in letters.items() for letter in option_letters if count[letter] == 1
    }
    return capitals if len(set(capitals.values())) > 1 else {}
