"""The passages that retrievers search, with a fingerprint: a `Corpus` in memory, or a `StreamedCorpus` read in turn.

It knows nothing of formats, nor of how passages are searched.
"""

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from medexam.errors import DatasetError
from medexam.retrievers.base import Passage
from medexam.retrievers.corpus_passages import PlacedPassages, find_source
from medexam.retrievers.corpus_rows import Unreadable

TOKEN = re.compile(r"\w+|[^\w\s]")
"""A word or a punctuation mark: the same for every retriever, so that another kind searches the same chunks. The
tokenizers of encoders split these further and join none."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages in reading order, no two with the same id."""

    name: str
    passages: Sequence[Passage] = field(repr=False)
    fingerprint: str
    """SHA-256 over ids, titles and contents in order: all of a corpus that a ranking depends on."""
    source: str
    """The file, folder or hub data set that was read."""
    licence: str | None = None
    """`license` in the front matter of the folder's `README.md`, or as the hub says; None if neither does."""
    skipped: int = 0
    """Rows that were no passages and were left out on request."""
    chunk_tokens: int | None = None
    """The most tokens that a passage's content has; None: passages are as they were read."""
    chunk_overlap: int = 0
    """Tokens that neighbouring chunks share."""

    @property
    def count(self) -> int:
        """How many passages it has."""
        return len(self.passages)

    @property
    def characters(self) -> int:
        """Characters of all its passages' texts."""
        return sum(len(passage.text) for passage in self.passages)

    def read(self) -> Iterator[Passage]:
        """Read its passages in order."""
        return iter(self.passages)


@dataclass(frozen=True)
class StreamedCorpus:
    """A corpus of any size, of which no passage is kept in memory; `stream_corpus` makes it."""

    name: str
    count: int
    characters: int
    """Of all its passages' texts."""
    fingerprint: str
    """As `Corpus.fingerprint`."""
    source: str
    licence: str | None
    skipped: int
    chunk_tokens: int | None
    chunk_overlap: int
    passages: Callable[[], Iterator[Passage]] = field(repr=False)
    """Reads the source anew."""

    def read(self) -> Iterator[Passage]:
        """Read its passages in order; raises `DatasetError` at the end if they are not those that were read before."""
        digest = Fingerprint()
        for passage in self.passages():
            digest.add(passage)
            yield passage
        if digest.hexdigest() != self.fingerprint:
            raise DatasetError(f"corpus {self.name}: {self.source} was changed while it was read: start again")


ReadableCorpus = Corpus | StreamedCorpus
"""What an index is built from."""


class Fingerprint:
    """SHA-256 over passages; lengths stand before the texts, so that no two corpora come to the same bytes."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, passage: Passage) -> None:
        """Take in the next passage."""
        key, title, content = passage.id.encode(), passage.title.encode(), passage.content.encode()
        self._digest.update(b"%d %d %d\n%b%b%b" % (len(key), len(title), len(content), key, title, content))

    def hexdigest(self) -> str:
        """Return the fingerprint of the passages so far."""
        return self._digest.hexdigest()


def load_corpus(source: str | Path | None, *, skip_bad: bool = False) -> Corpus:
    """Load the corpus in a file or folder of passages, or in a data set of the hub.

    A folder is read with the folders in it, files in the order of their names: JSON Lines and Parquet, else TSV and
    CSV, else JSON, else text files, each a passage. A text such as `MedRAG/textbooks` that is no path names a data set
    of the hub, of which all splits are read; a `Path` never does. Behind `#` stands a configuration, as in
    `wikimedia/wikipedia#20231101.en`. None: `DEFAULT_FILE` in `$MEDEXAM_DATA`. Fields are called as in
    `medexam.retrievers.formats.names`. A passage without `source` takes its title if its id is that with a number
    (`TITLE_12`), else its id's part before the first `_`, else the corpus's name. Texts are read in NFC.

    Raises `DatasetError` if nothing is found, a file cannot be read, an id stands twice, no passage is left, or a
    row is not JSON or lacks its id or text: with `skip_bad` such rows are left out and counted instead.
    """
    placed = PlacedPassages(find_source(source), skip_bad=skip_bad)
    passages: list[Passage] = []
    ids: set[str] = set()
    for _, passage in placed:
        if passage.id in ids:
            raise placed.repeated(passage.id)
        ids.add(passage.id)
        passages.append(passage)
    return _finish(placed.source.name, tuple(passages), placed.source.label, placed.source.licence, placed.skipped)


def stream_corpus(
    source: str | Path | None, *, skip_bad: bool = False, chunk_tokens: int | None = None, chunk_overlap: int = 0
) -> StreamedCorpus:
    """Read the corpus that `load_corpus` reads and `chunk_corpus` cuts, once now and again whenever it is iterated.

    Eight bytes a passage are held, to find an id that stands twice. Raises what those two raise.
    """
    placed = PlacedPassages(find_source(source), skip_bad=skip_bad)

    def read(note: Callable[[Passage], Passage] = lambda passage: passage) -> Iterator[Passage]:
        passages = (note(passage) for _, passage in placed)
        return passages if chunk_tokens is None else _chunk(passages, chunk_tokens, chunk_overlap)

    source_ids, ids = _Ids(), _Ids()
    digest, count, characters = Fingerprint(), 0, 0
    for passage in read(source_ids.note):
        if chunk_tokens is not None:
            ids.note(passage)
        digest.add(passage)
        count += 1
        characters += len(passage.text)
    if repeated_id := source_ids.find_repeated(passage for _, passage in placed):
        raise placed.repeated(repeated_id)
    origin = placed.source
    if repeated_id := ids.find_repeated(read()):
        raise _stands_twice(origin.name, repeated_id)
    if not count:
        raise _no_passages(origin.name, origin.label, placed.skipped)
    return StreamedCorpus(
        origin.name,
        count,
        characters,
        digest.hexdigest(),
        origin.label,
        origin.licence,
        placed.skipped,
        chunk_tokens,
        chunk_overlap,
        read,
    )


class _Ids:
    """The ids of passages, as 64-bit hashes: texts of 36 million would take 3 GB."""

    def __init__(self) -> None:
        self._hashes = array("q")

    def note(self, passage: Passage) -> Passage:
        """Take in the next passage's id and hand the passage on."""
        self._hashes.append(hash(passage.id))
        return passage

    def find_repeated(self, passages: Iterable[Passage]) -> str | None:
        """Find the first id that stands twice, if any; `passages` are iterated only where two hashes are the same."""
        import numpy as np

        hashes = np.frombuffer(self._hashes, dtype=np.int64)
        hashes.sort()
        suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        ids: set[str] = set()
        for passage in passages if suspects else ():
            if hash(passage.id) in suspects:
                if passage.id in ids:
                    return passage.id
                ids.add(passage.id)
        return None


def corpus_texts(source: str | Path) -> Iterator[str]:
    """Yield title and content of each passage of the corpus that `load_corpus` reads, of which none is kept in memory.

    Raises `DatasetError` if nothing is found, a file cannot be read, or a row has no text; ids are not looked at.
    """
    for place, row in find_source(source).rows():
        content = None if isinstance(row, Unreadable) else row.get("content", row.get("text"))
        if isinstance(row, Unreadable) or not isinstance(content, str):
            reason = row.reason if isinstance(row, Unreadable) else "has no text in `content`"
            raise DatasetError(f"{place}: {reason}: correct it")
        yield f"{row.get('title') or ''}\n{content}"


def build_corpus(name: str, passages: Iterable[Passage], *, source: str, licence: str | None = None) -> Corpus:
    """Build a corpus of passages that are already here, such as the chunks of another one.

    Raises `DatasetError` if there is none, or an id stands twice.
    """
    corpus_passages = tuple(passages)
    ids: set[str] = set()
    for passage in corpus_passages:
        if passage.id in ids:
            raise _stands_twice(name, passage.id)
        ids.add(passage.id)
    return _finish(name, corpus_passages, source, licence, 0)


def chunk_corpus(corpus: Corpus, size: int, overlap: int = 0) -> Corpus:
    """Cut a corpus's longer passages into chunks of at most `size` tokens, of which neighbours share `overlap`.

    A token is a word or a punctuation mark, whatever the retriever. The title is not counted and every chunk keeps it.
    A passage that fits stays as it is; the chunks of a longer one have the ids `ID#0`, `ID#1`... and the last of them
    may be shorter. Raises `ValueError` unless `0 <= overlap < size`, and `DatasetError` where a passage already has
    the id of a chunk.
    """
    chunks = build_corpus(
        corpus.name, _chunk(corpus.passages, size, overlap), source=corpus.source, licence=corpus.licence
    )
    return replace(chunks, skipped=corpus.skipped, chunk_tokens=size, chunk_overlap=overlap)


def _chunk(passages: Iterable[Passage], size: int, overlap: int) -> Iterator[Passage]:
    if not 0 <= overlap < size:
        raise ValueError(
            f"chunks of {size} tokens cannot overlap by {overlap}: the size must be larger than the overlap"
        )
    for passage in passages:
        spans = [token.span() for token in TOKEN.finditer(passage.content)]
        if len(spans) <= size:
            yield passage
            continue
        for number, first in enumerate(range(0, len(spans) - overlap, size - overlap)):
            last = min(first + size, len(spans)) - 1
            text = passage.content[spans[first][0] : spans[last][1]]
            yield Passage(f"{passage.id}#{number}", passage.title, text, passage.source)


def _finish(name: str, passages: tuple[Passage, ...], source: str, licence: str | None, skipped: int) -> Corpus:
    if not passages:
        raise _no_passages(name, source, skipped)
    digest = Fingerprint()
    for passage in passages:
        digest.add(passage)
    return Corpus(name, passages, digest.hexdigest(), source, licence, skipped)


def _no_passages(name: str, source: str, skipped: int) -> DatasetError:
    left_out = f" ({skipped} rows that are not passages were left out)" if skipped else ""
    return DatasetError(f"corpus {name} holds no passages{left_out}: check that {source} is the right file")


def _stands_twice(name: str, key: str) -> DatasetError:
    return DatasetError(f"corpus {name}: id {key!r} occurs twice: give each passage an id of its own")
