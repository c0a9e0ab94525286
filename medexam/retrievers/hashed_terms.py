"""DrQA's retriever: TF-IDF over words and pairs of neighbouring words, hashed into 2^24 bins, kept on disk.

Chen et al. (2017), "Reading Wikipedia to answer open-domain questions"; the IR solver of Vilares and Gómez-Rodríguez
(2019). It takes a corpus of any size: a block of passages is in memory at a time, and bins and passages are read from
files that the system maps. Hashing is MurmurHash3 of 32 bits, as scikit-learn has it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from medexam.errors import DatasetError
from medexam.files import whole_folder
from medexam.questions import Language
from medexam.retrievers.base import Hit, Passage
from medexam.retrievers.corpora import TOKEN, Corpus
from medexam.retrievers.lexical import check_k, corpus_without_words, import_library, load_stop_words, rank_scores
from medexam.retrievers.vectors import load_datasets, to_passages, write_passages
from medexam.specs.identity import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS = 2**24
BLOCK = 10_000
"""Passages whose terms are in memory at a time."""
PAGE = 1_000
"""Passages that are written to disk together."""
PASSAGES = "passages.arrow"
_STOP_LISTS: dict[Language, str] = {"en": "EN_PLUS", "es": "SPANISH", "it": "ITALIAN", "ru": "RUSSIAN"}
"""The ends of the names of bm25s' lists; the English one is NLTK's, which DrQA has too."""


class HashedTfidfRetriever:
    """Passages by the inner product of hashed TF-IDF vectors.

    A term weighs ln(1 + tf) * max(0, ln((n - df + 0.5) / (df + 0.5))), in queries too. Words are lower-cased and not
    stemmed; a word or pair with a stop word or a punctuation mark is no term. Title and content are searched as one
    text. Scores have no upper bound.
    """

    def __init__(self, corpus: Corpus, language: Language, folder: Path) -> None:
        """Make it known, with its digest; the first search opens what lies under `folder`, or makes it there.

        Raises `DatasetError` if scikit-learn or bm25s, whose stop words it takes, are not installed.
        """
        self.corpus = corpus
        self._stop_words = load_stop_words(language, _STOP_LISTS)
        self._hash = import_library("sklearn.utils").murmurhash3_32
        self.digest = digest(
            {
                "method": "hashed_tfidf",
                "corpus": corpus.fingerprint,
                "language": language,
                "bins": BINS,
                "stop_words": sorted(self._stop_words),
            }
        )
        self._place = folder / f"hashed-terms-{self.digest}"
        self._terms: _StoredTerms | None = None
        self._opening = Lock()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first; see `Retriever.search`.

        Raises `DatasetError` if the corpus has no words, or the files cannot be written.
        """
        check_k(k, self.corpus)
        terms = self._open()
        return [rank_scores(terms.score(self._count(query)), terms.read, k) for query in queries]

    def _open(self) -> "_StoredTerms":
        with self._opening:
            if self._terms is None:
                if not self._place.exists():
                    self._build()
                self._terms = _StoredTerms(self._place)
            return self._terms

    def _build(self) -> None:
        try:
            with whole_folder(self._place) as draft:
                blocks = list[Path]()
                write_passages(self._write_terms(draft, blocks), draft / PASSAGES, PAGE)
                terms = _merge(blocks, draft)
                for path in blocks:
                    path.unlink()
                if not terms:
                    raise corpus_without_words(self.corpus)
        except OSError as error:
            # Another process may have been first; its files are the same.
            if not self._place.exists():
                raise DatasetError(
                    f"cannot keep the terms in {self._place} ({error}): set MEDEXAM_CACHE to a folder that can be "
                    "written"
                ) from None

    def _write_terms(self, folder: Path, blocks: list[Path]) -> Iterator[Passage]:
        """Yield the passages of the corpus; the terms of each block of them are on disk before, in one of `blocks`."""
        passages = self.corpus.read()
        while block := tuple(islice(passages, BLOCK)):
            first = len(blocks) * BLOCK
            blocks.append(self._write_block(folder / f"block{len(blocks)}.npy", block, first))
            yield from block

    def _write_block(self, path: Path, passages: Iterable[Passage], first: int) -> Path:
        """Write bin, passage and count of each term of some passages, `[n, 3]`, by bin and then by passage."""
        parts = [np.empty((0, 3), dtype=np.uint32)]
        for row, passage in enumerate(passages, start=first):
            counts = self._count(passage.text)
            part = np.empty((len(counts), 3), dtype=np.uint32)
            part[:, 0], part[:, 1], part[:, 2] = list(counts), row, list(counts.values())
            parts.append(part)
        table = np.concatenate(parts)
        np.save(path, table[np.lexsort((table[:, 1], table[:, 0]))])
        return path

    def _count(self, text: str) -> Counter[int]:
        """Count the terms of a text by bin."""
        tokens = TOKEN.findall(text.lower())
        fit = [token not in self._stop_words and (token[0].isalnum() or token[0] == "_") for token in tokens]
        terms = [token for token, is_fit in zip(tokens, fit, strict=True) if is_fit]
        terms += [f"{a} {b}" for (a, b), both in zip(pairwise(tokens), pairwise(fit), strict=True) if all(both)]
        return Counter(self._hash(term, positive=True) % BINS for term in terms)


class _StoredTerms:
    """The bins of a corpus on disk: which passages a bin's terms stand in, and how often."""

    def __init__(self, folder: Path) -> None:
        self._passages: Any = load_datasets().Dataset.from_file(str(folder / PASSAGES))
        self._bins = np.load(folder / "bins.npy", mmap_mode="r")
        self._ends = np.load(folder / "ends.npy", mmap_mode="r")
        self._rows = np.load(folder / "rows.npy", mmap_mode="r")
        self._counts = np.load(folder / "counts.npy", mmap_mode="r")

    def read(self, rows: Sequence[int]) -> list[Passage]:
        """Read the passages of these rows."""
        return to_passages(self._passages[list(rows)])

    def score(self, query: Counter[int]) -> "NDArray[np.float64]":
        """Score every passage, `[n]`; entry i is passage i."""
        n = len(self._passages)
        scores = np.zeros(n)
        for place, count in query.items():
            bin_row = int(np.searchsorted(self._bins, place))
            if bin_row == len(self._bins) or self._bins[bin_row] != place:
                continue
            start, end = int(self._ends[bin_row - 1]) if bin_row else 0, int(self._ends[bin_row])
            document_count = end - start
            weight = max(0.0, float(np.log((n - document_count + 0.5) / (document_count + 0.5))))
            # A passage stands once in a bin, so none is added twice.
            scores[self._rows[start:end]] += weight**2 * np.log1p(count) * np.log1p(self._counts[start:end])
        return scores


def _merge(blocks: Sequence[Path], folder: Path) -> int:
    """Merge blocks of terms into the files of `_StoredTerms`; return how many bins have a term."""
    counts = np.zeros(BINS, dtype=np.int64)
    for table in map(np.load, blocks):
        counts += np.bincount(table[:, 0], minlength=BINS)
    bins = np.flatnonzero(counts)
    if not len(bins):
        return 0
    np.save(folder / "bins.npy", bins.astype(np.uint32))
    np.save(folder / "ends.npy", np.cumsum(counts[bins]))
    # Where the next posting of a bin goes; postings stand bin by bin, and passages in their order in each.
    places = np.cumsum(counts) - counts
    total = int(counts.sum())
    rows = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.uint32, (total,))
    counts = np.lib.format.open_memmap(folder / "counts.npy", "w+", np.uint32, (total,))
    for table in map(np.load, blocks):
        block_bins, starts, sizes = np.unique(table[:, 0], return_index=True, return_counts=True)
        targets = np.repeat(places[block_bins] - starts, sizes) + np.arange(len(table))
        rows[targets], counts[targets] = table[:, 1], table[:, 2]
        places[block_bins] += sizes
    rows.flush()
    counts.flush()
    return len(bins)
