"""Words as stems, so that an option and a passage agree though their endings differ.

Vilares and Gómez-Rodríguez (2019) compare lemmas. Here Snowball's stems (PyStemmer, which BM25 needs too) stand in
their place: a lemmatiser would bring a model for each language. Snowball knows no Galician, whose words are compared as
they are, in lower case.
"""

import re
from importlib import import_module
from typing import Any

from medexam.errors import SpecError
from medexam.questions import Language

_SNOWBALL: dict[Language, str] = {"en": "english", "es": "spanish", "it": "italian", "ru": "russian"}
_WORD = re.compile(r"\w+")


def stems(text: str, language: Language) -> frozenset[str]:
    """Return the different stems of a text's words in lower case, numbers and stop words among them.

    Raises `SpecError` where PyStemmer is not installed.
    """
    words = _WORD.findall(text.lower())
    if language not in _SNOWBALL:
        return frozenset(words)
    try:
        stemmer: Any = import_module("Stemmer")
    except ImportError:
        raise SpecError("span_reader compares stems and needs PyStemmer: pip install 'medexam[retrieval]'") from None
    return frozenset(stemmer.Stemmer(_SNOWBALL[language]).stemWords(words))
