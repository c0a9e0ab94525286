"""The retriever that compares words: BM25 through bm25s.

It holds no model. A passage that shares no word with a query (stop words aside) is no hit of it. A single letter or
digit is a word, since it tells vitamin K from vitamin C and type 1 from type 2.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np
import yaml

from medexam.errors import DatasetError
from medexam.files import whole_folder
from medexam.questions import Language
from medexam.retrievers.base import Hit, Passage, import_library
from medexam.retrievers.corpora import Corpus
from medexam.specs.identity import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GALICIAN_PLURAL = re.compile(r"ns\b")
"""`infeccións` and `infección`: Portuguese has another plural, so its stemmer does not know this one."""
WORDS_VERSION = 2
"""Raised when texts are cut into other words than before; rankings of another version are found anew."""
_WORD = r"(?u)\b\w\w+\b|(?<!\w['\u2019])\b[^\W_]\b"
"""A word of bm25s, or a single letter or digit; the s of "Crohn's" is none."""
_OPENING = r"(?m)((?:^|[.!?:])[^\w\n]{0,6})\b[%s]\b(?=\s+\w)"
_BM25 = {"k1": 1.5, "b": 0.75, "method": "lucene", "dtype": "float32"}


class BM25Retriever:
    """A `Retriever` by BM25 over stems (Robertson and Zaragoza 2009, as bm25s computes it: Lù 2024, arXiv 2407.03618).

    k1 = 1.5, b = 0.75 and the variant `lucene` are the defaults of bm25s. Words are lower-cased, bm25s's stop words of
    the language are dropped (33 English ones, 313 Spanish; "A" only as an article), and PyStemmer's Snowball stemmer
    takes the endings off. Galician has a list of its own and the Portuguese stemmer.
    Title and content are searched as one text. Scores are sums of single-precision numbers, without an upper bound.
    """

    def __init__(self, corpus: Corpus, language: Language, folder: Path | None = None) -> None:
        """Let the first search take its index from `folder`, or build and keep it there; None keeps it nowhere.

        Raises `EngineError` if bm25s or PyStemmer are not installed.
        """
        bm25s, stemmer = import_library("bm25s", "bm25"), import_library("Stemmer", "bm25")
        versions = {"bm25s": bm25s.__version__, "PyStemmer": stemmer.version()}
        self.corpus = corpus
        self.language = language
        identity = {"corpus": corpus.fingerprint, "language": language, "words": WORDS_VERSION, **_BM25, **versions}
        self._place = folder / f"bm25-{digest(identity)}" if folder is not None else None
        self._index: Any = None
        self._opening = Lock()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first; see `Retriever.search`.

        Raises `DatasetError` if the corpus has no words or a new index cannot be kept.
        """
        if not 1 <= k <= self.corpus.count:
            raise ValueError(f"k is {k}: it must be from 1 to the {self.corpus.count} passages of {self.corpus.name}")
        if not queries:
            return []
        with self._opening:
            if self._index is None:
                self._index = self._open()
        read = partial(map, self.corpus.passages.__getitem__)
        hit_lists = []
        for stems in self._tokenize(queries, return_ids=False):
            # Words that the corpus lacks have no number; a query of such words alone finds nothing.
            ids = self._index.get_tokens_ids(stems)
            hit_lists.append(rank_scores(self._index.get_scores_from_ids(ids), read, k) if ids else [])
        return hit_lists

    def _open(self) -> Any:
        place, library = self._place, import_library("bm25s", "bm25")
        if place is not None and place.is_dir():
            try:
                return library.BM25.load(place, mmap=True, show_progress=False)
            except (OSError, ValueError, KeyError) as error:
                raise DatasetError(f"{place}: this index cannot be read ({error}): remove the folder") from None
        index = library.BM25(**_BM25)
        tokens = self._tokenize([passage.text for passage in self.corpus.passages], return_ids=True)
        if not tokens.vocab:
            raise DatasetError(f"corpus {self.corpus.name} has only stop words: check that its text was read correctly")
        index.index(tokens, show_progress=False)
        if place is not None:
            try:
                # Where another process was first, its index stays.
                with whole_folder(place) as draft:
                    index.save(draft, show_progress=False)
            except OSError as error:
                if not place.is_dir():
                    raise DatasetError(
                        f"cannot keep the BM25 index in {place} ({error}): set MEDEXAM_CACHE to a folder that can be "
                        "written"
                    ) from None
        return index

    def _tokenize(self, texts: Sequence[str], *, return_ids: bool) -> Any:
        """Cut each text into stems, by a stemmer of its own for each call: threads may not share one."""
        texts = [_drop_articles(text, self.language) for text in texts]
        return import_library("bm25s", "bm25").tokenize(
            [_GALICIAN_PLURAL.sub("n", text) for text in texts] if self.language == "gl" else texts,
            lower=False,
            token_pattern=_WORD,
            stopwords=_stop_words(self.language),
            stemmer=import_library("Stemmer", "bm25").Stemmer(_words()[self.language]["stemmer"]),
            return_ids=return_ids,
            show_progress=False,
        )


@cache
def _words() -> Mapping[Language, Mapping[str, str]]:
    text = (resources.files("medexam.retrievers") / "words.yaml").read_text(encoding="utf-8")
    words: Mapping[Language, Mapping[str, str]] = yaml.safe_load(text)
    return words


def _drop_articles(text: str, language: Language) -> str:
    """Return the text in small letters, without the stop words of one letter.

    A capital inside a sentence ("hepatitis A") stays. In a text without small letters all of them stay.
    """
    single = _words()[language]["single"]
    text = re.sub(rf"(?<!\w['\u2019])\b[{single}]\b", " ", normalize("NFC", text))
    if not text.isupper():
        text = re.sub(_OPENING % single.upper(), r"\1 ", text)
    return text.lower()


def _stop_words(language: Language) -> list[str]:
    return sorted(word for word in load_stop_words(language) if len(word) > 1)


def load_stop_words(language: Language, lists: Mapping[Language, str] | None = None) -> frozenset[str]:
    """Return bm25s's stop words of a language by the ends of their lists' names, or the own ones of Galician.

    Raises `DatasetError` if bm25s is not installed.
    """
    words = _words().get(language, {})
    name = words.get("stop_list") if lists is None else lists.get(language)
    if name is None:
        return frozenset([*words["stop_words"].split(), *words["single"]])
    return frozenset(getattr(import_library("bm25s.stopwords", "bm25"), f"STOPWORDS_{name}"))


def rank_scores(
    scores: "NDArray[np.floating[Any]]", read: Callable[[Sequence[int]], Iterable[Passage]], k: int
) -> list[Hit]:
    """Rank the `k` passages with the highest scores above zero; score i is passage i's, equal ones keep this order.

    `read` gets the passages of rows.
    """
    rows = np.flatnonzero(scores > 0)
    if len(rows) > k:
        threshold = np.partition(scores[rows], -k)[-k]
        rows = rows[scores[rows] >= threshold]
    best = rows[np.argsort(-scores[rows], kind="stable")][:k].tolist()
    passages = read(best) if best else ()
    return [
        Hit(passage, float(scores[row]), at) for at, (row, passage) in enumerate(zip(best, passages, strict=True), 1)
    ]
