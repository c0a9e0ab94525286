"""Retrievers that compare words: BM25 through bm25s, TF-IDF through scikit-learn.

They hold no model. A passage that shares no word with a query (stop words aside) is no hit of it. A single letter or
digit is a word, since it tells vitamin K from vitamin C and type 1 from type 2.
"""

import importlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from medexam.errors import DatasetError
from medexam.files import whole_folder
from medexam.fingerprints import hash_files
from medexam.questions import Language
from medexam.retrievers.base import Hit, Passage
from medexam.retrievers.corpora import Corpus
from medexam.specs.identity import digest
from medexam.text import composed

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEMMERS: dict[Language, str] = {
    "en": "english",
    "es": "spanish",
    "gl": "portuguese",
    "it": "italian",
    "ru": "russian",
}
"""Snowball's stemmers. It has none for Galician, whose endings are closest to those of Portuguese."""
_STOP_LISTS: dict[Language, str] = {"en": "EN", "es": "SPANISH", "it": "ITALIAN", "ru": "RUSSIAN"}
"""The ends of the names of bm25s' lists, which has none for Galician."""
_GALICIAN_STOP_WORDS = """
ao aos os as un unha uns unhas do da dos das dun dunha duns dunhas no na nos nas nun nunha nuns nunhas polo pola polos
polas co coa cos coas ás ós de en con sen por para ata desde dende entre sobre baixo segundo tras ante contra ou nin
mais pero senón porque pois como cando onde quen que qué cal cales canto canta cantos cantas cuxo cuxa cuxos cuxas se
si non tamén moi máis menos este esta estes estas isto ese esa eses esas iso aquel aquela aqueles aquelas aquilo deste
desta destes destas disto dese desa deses desas diso neste nesta nestes nestas nese nesa neses nesas eu ti el ela nós
vós eles elas me te lle lles lo la los las che vos meu miña meus miñas teu túa seu súa seus súas noso nosa algún
algunha algúns algunhas ningún ningunha todo toda todos todas outro outra outros outras mesmo mesma mesmos mesmas cada
ser son era eran foi foron sexa sexan sendo sido está están estaba estaban estar ten teñen tiña ter hai había haber
pode poden xa aínda así entón
"""
"""Articles, prepositions with their contractions, pronouns, conjunctions and forms of ser, estar, ter, haber."""
_GALICIAN_PLURAL = re.compile(r"ns\b")
"""`infeccións` and `infección`: Portuguese has another plural, so its stemmer does not know this one."""
WORDS_VERSION = 2
"""Raised when texts are cut into other words than before; rankings of another version are found anew."""
WORD_PATTERN = r"(?u)\b\w\w+\b|(?<!\w['\u2019])\b[^\W_]\b"
"""A word of bm25s and scikit-learn, or a single letter or digit; the s of "Crohn's" is none."""
_SINGLE: dict[Language, str] = {"en": "a", "es": "aeoy", "gl": "aeoáéó", "it": "aeiloè", "ru": "авжикосуя"}
"""The stop words of one letter: alone in small letters, or as a capital where a sentence begins with it."""
_OPENING = r"(?m)((?:^|[.!?:])[^\w\n]{0,6})\b[%s]\b(?=\s+\w)"
BM25_SETTINGS = {"k1": 1.5, "b": 0.75, "method": "lucene", "dtype": "float32"}
STAMP_FILE = "medexam.json"


class BM25Retriever:
    """BM25 over stems (Robertson and Zaragoza 2009, as bm25s computes it: Lù 2024, arXiv 2407.03618).

    k1 = 1.5, b = 0.75 and the variant `lucene` are the defaults of bm25s. Words are lower-cased, bm25s's stop words of
    the language are dropped (33 English ones, 313 Spanish; "A" only as an article), and PyStemmer's Snowball stemmer
    takes the endings off. Galician has a list of its own and the Portuguese stemmer.
    Title and content are searched as one text. Scores are sums of single-precision numbers, without an upper bound.
    """

    def __init__(self, corpus: Corpus, language: Language, folder: Path | None = None) -> None:
        """Make it known, with its digest; the index is opened by the first search.

        It is taken from `folder`, or built and kept there for the next process; None keeps it nowhere. What lies there
        of another corpus, language or version, or is damaged, is not used. Raises `DatasetError` if bm25s or
        PyStemmer are not installed.
        """
        bm25s, stemmer = import_library("bm25s"), import_library("Stemmer")
        self.corpus = corpus
        self.language = language
        self.digest = digest(
            {
                "method": "bm25",
                "corpus": corpus.fingerprint,
                "language": language,
                "words": WORDS_VERSION,
                **BM25_SETTINGS,
                "bm25s": bm25s.__version__,
                "PyStemmer": stemmer.version(),
            }
        )
        self._place = folder / f"bm25-{self.digest}" if folder is not None else None
        self._index: Any = None
        self._opening = Lock()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first; see `Retriever.search`.

        Raises `DatasetError` if the corpus has no words or a new index cannot be kept.
        """
        check_k(k, self.corpus)
        index = self._open()
        rankings, read = list[list[Hit]](), partial(map, self.corpus.passages.__getitem__)
        for stems in self._tokenize(queries, return_ids=False):
            # Words that the corpus lacks have no number; a query of such words alone finds nothing.
            token_ids = index.get_tokens_ids(stems)
            rankings.append(rank_scores(index.get_scores_from_ids(token_ids), read, k) if token_ids else [])
        return rankings

    def _open(self) -> Any:
        with self._opening:
            if self._index is None and self._place is not None:
                self._index = _load_index(self._place, self._stamp())
            if self._index is None:
                self._index = self._build()
                if self._place is not None:
                    _save_index(self._index, self._place, self._stamp())
            return self._index

    def _build(self) -> Any:
        index = import_library("bm25s").BM25(**BM25_SETTINGS)
        tokens = self._tokenize([passage.text for passage in self.corpus.passages], return_ids=True)
        if not tokens.vocab:
            raise corpus_without_words(self.corpus)
        index.index(tokens, show_progress=False)
        return index

    def _tokenize(self, texts: Sequence[str], *, return_ids: bool) -> Any:
        """Cut each text into stems, by a stemmer of its own for each call: threads may not share one."""
        return import_library("bm25s").tokenize(
            [self._singular(_drop_articles(text, self.language)) for text in texts],
            lower=False,
            token_pattern=WORD_PATTERN,
            stopwords=_stop_words(self.language),
            stemmer=import_library("Stemmer").Stemmer(_STEMMERS[self.language]),
            return_ids=return_ids,
            show_progress=False,
        )

    def _singular(self, text: str) -> str:
        return _GALICIAN_PLURAL.sub("n", text) if self.language == "gl" else text

    def _stamp(self) -> dict[str, Any]:
        return {"digest": self.digest, "corpus": self.corpus.fingerprint, "passages": self.corpus.count}


class TfidfRetriever:
    """Cosine of TF-IDF vectors over words and pairs of neighbouring words, by scikit-learn's `TfidfVectorizer`.

    A term weighs tf * (ln((1 + n) / (1 + df)) + 1), vectors have length 1, and scores lie above 0 and up to 1. Words
    are lower-cased and not stemmed; stop words (those of BM25) are dropped before pairs are made. The retriever of
    Vilares and Gómez-Rodríguez (2019) was of this kind, with the weights of DrQA. Title and content are searched as one
    text.
    """

    def __init__(self, corpus: Corpus, language: Language) -> None:
        """Make it known, with its digest; the index is built by the first search.

        Raises `DatasetError` if scikit-learn or bm25s, whose stop words it takes, are not installed.
        """
        sklearn, text = import_library("sklearn"), import_library("sklearn.feature_extraction.text")
        self.corpus = corpus
        words = _stop_words(language)
        self._vectorizer = text.TfidfVectorizer(
            preprocessor=partial(_drop_articles, language=language),
            ngram_range=(1, 2),
            stop_words=words,
            token_pattern=WORD_PATTERN,
            sublinear_tf=False,
            norm="l2",
        )
        self.digest = digest(
            {
                "method": "tfidf",
                "corpus": corpus.fingerprint,
                "language": language,
                "words": WORDS_VERSION,
                "stop_words": words,
                "ngrams": [1, 2],
                "scikit-learn": sklearn.__version__,
            }
        )
        self._by_term: Any = None
        """Row i is term i, column j is passage j."""
        self._building = Lock()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first; see `Retriever.search`.

        Raises `DatasetError` if the corpus has no words.
        """
        check_k(k, self.corpus)
        if not queries:
            return []
        by_term = self._build()
        vectors = self._vectorizer.transform(queries)
        scores = ((vectors[i : i + 1] @ by_term).toarray().ravel() for i in range(len(queries)))
        return [rank_scores(row, partial(map, self.corpus.passages.__getitem__), k) for row in scores]

    def _build(self) -> Any:
        with self._building:
            if self._by_term is None:
                try:
                    documents = self._vectorizer.fit_transform(passage.text for passage in self.corpus.passages)
                except ValueError as error:
                    if "empty vocabulary" not in str(error):
                        raise
                    raise corpus_without_words(self.corpus) from None
                self._by_term = documents.T.tocsr()
            return self._by_term


def _drop_articles(text: str, language: Language) -> str:
    """Return the text in small letters, without the stop words of one letter.

    A capital inside a sentence ("hepatitis A") stays. In a text without small letters all of them stay.
    """
    single = _SINGLE[language]
    text = re.sub(rf"(?<!\w['\u2019])\b[{single}]\b", " ", composed(text))
    if not text.isupper():
        text = re.sub(_OPENING % single.upper(), r"\1 ", text)
    return text.lower()


def _stop_words(language: Language) -> list[str]:
    """Return the stop words that have two letters or more, in alphabetical order."""
    return sorted(word for word in load_stop_words(language) if len(word) > 1)


def load_stop_words(language: Language, lists: Mapping[Language, str] = _STOP_LISTS) -> frozenset[str]:
    """Return bm25s's stop words of a language by the ends of their lists' names, or the own ones of Galician.

    Raises `DatasetError` if bm25s is not installed.
    """
    if language not in lists:
        return frozenset([*_GALICIAN_STOP_WORDS.split(), *_SINGLE[language]])
    return frozenset(getattr(import_library("bm25s.stopwords"), f"STOPWORDS_{lists[language]}"))


def check_k(k: int, corpus: Corpus) -> None:
    """Raise `ValueError` unless `k` is from 1 to the number of passages."""
    if not 1 <= k <= corpus.count:
        raise ValueError(f"k is {k}: it must be from 1 to the {corpus.count} passages of corpus {corpus.name}")


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


def _load_index(place: Path, stamp: dict[str, Any]) -> Any:
    """Load the index kept at `place`; None if there is none, or it is damaged, changed or another's."""
    bm25s = import_library("bm25s")
    try:
        disk_stamp = json.loads((place / STAMP_FILE).read_text(encoding="utf-8"))
        if disk_stamp != stamp | {"files": _hash_files(place)}:
            return None
        return bm25s.BM25.load(place, mmap=True, show_progress=False)
    except (OSError, ValueError, KeyError):
        return None


def _save_index(index: Any, place: Path, stamp: dict[str, Any]) -> None:
    """Write the index whole or not at all; where another process was first, its index stays."""
    try:
        with whole_folder(place) as draft:
            index.save(draft, show_progress=False)
            full_stamp = stamp | {"files": _hash_files(draft)}
            (draft / STAMP_FILE).write_text(json.dumps(full_stamp), encoding="utf-8")
            # Removed only now that a whole one can take its place at once.
            if place.exists() and _load_index(place, stamp) is None:
                shutil.rmtree(place)
    except OSError as error:
        if _load_index(place, stamp) is None:
            raise DatasetError(
                f"cannot keep the BM25 index in {place} ({error}): set MEDEXAM_CACHE to a folder that can be written"
            ) from None


def _hash_files(place: Path) -> dict[str, str]:
    """Return name -> SHA-256 of each file of an index."""
    files = sorted(file for file in place.iterdir() if file.name != STAMP_FILE)
    return dict(zip((file.name for file in files), hash_files(files, place), strict=True))


def corpus_without_words(corpus: Corpus) -> DatasetError:
    """Build the error of a corpus in which no word can be searched."""
    return DatasetError(f"corpus {corpus.name} has only stop words: check that its text was read correctly")


def import_library(name: str) -> Any:
    """Import a library of the bm25 extra; raises `DatasetError` with the install line where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DatasetError(
            f"searching by words needs bm25s, PyStemmer and scikit-learn ({error}): pip install 'medexam[bm25]'"
        ) from None
