"""Words as stems, so that an option and a passage agree though their endings differ.

Vilares and Gómez-Rodríguez (2019) compare lemmas. Here Snowball's stems (PyStemmer, which BM25 needs too) stand in
their place: a lemmatiser would bring a model for each language. Stop words do not count (their footnote 12). Snowball
and bm25s, whose lists are taken, know no Galician, whose words are all compared as they are, in lower case.
"""

import re
from functools import cache
from importlib import import_module
from typing import Any

from medexam.errors import SpecError
from medexam.questions import Language

_SNOWBALL: dict[Language, str] = {"en": "english", "es": "spanish", "it": "italian", "ru": "russian"}
_STOP_WORDS: dict[Language, str] = {"en": "EN_PLUS", "es": "SPANISH", "it": "ITALIAN", "ru": "RUSSIAN"}
"""The ends of the names of bm25s' lists."""
_WORD = re.compile(r"\w+")


def stems(text: str, language: Language) -> frozenset[str]:
    """Return the different stems of a text's words in lower case, numbers among them and stop words not.

    A single capital letter behind the first word, such as vitamin A, is no stop word. Raises `SpecError` where
    PyStemmer or bm25s is not installed.
    """
    if language not in _SNOWBALL:
        return frozenset(_WORD.findall(text.lower()))
    stop_words = _load_stop_words(language)
    words = [word for place, word in enumerate(_WORD.findall(text)) if not _is_stop_word(word, place, stop_words)]
    stemmer = _import("Stemmer").Stemmer(_SNOWBALL[language])
    return frozenset(stemmer.stemWords([word.lower() for word in words]))


def _is_stop_word(word: str, place: int, stop_words: frozenset[str]) -> bool:
    is_symbol = place > 0 and len(word) == 1 and word.isupper()
    return word.lower() in stop_words and not is_symbol


@cache
def _load_stop_words(language: Language) -> frozenset[str]:
    return frozenset(getattr(_import("bm25s.stopwords"), f"STOPWORDS_{_STOP_WORDS[language]}"))


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise SpecError(
            "span_reader compares stems and needs PyStemmer and bm25s: pip install 'medexam[retrieval]'"
        ) from None
