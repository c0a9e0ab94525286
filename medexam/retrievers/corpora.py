"""The passages that retrievers search: a `Corpus` says what it is, and reads its passages as often as they are needed.

Rows come from `medexam.retrievers.corpus_rows`; this module says which of them are passages.
"""

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize

from pydantic import PrivateAttr

from medexam.errors import DatasetError
from medexam.frozen_model import FrozenModel
from medexam.retrievers.base import Passage
from medexam.retrievers.corpus_rows import (
    EXPECTED,
    IDS,
    METADATA,
    TEXTS,
    TITLES,
    UNNAMED,
    Place,
    Row,
    Rows,
    bad_row,
    find_field,
    find_source,
)

TOKEN = re.compile(r"\w+|[^\w\s]")
"""A word or a punctuation mark: the same for every retriever, so that another kind searches the same chunks. The
tokenizers of encoders split these further and join none."""

Read = Callable[[], Iterator[tuple[Place, Passage]]]


class Corpus(FrozenModel):
    """Passages in reading order, no two with the same id; `load_corpus` and `build_corpus` make it.

    The manifest of an index holds it too, and cannot read its passages.
    """

    name: str
    fingerprint: str
    """SHA-256 over ids, titles and contents in order: all of a corpus that a ranking depends on."""
    source: str
    """The file, folder or hub data set, as the user wrote it."""
    count: int
    """How many passages it has."""
    left_out: tuple[str, ...] = ()
    """Files of its folder that are not read."""
    chunk_tokens: int | None = None
    """The most tokens that a passage's content has; None: passages are as they were read."""
    chunk_overlap: int = 0
    """Tokens that neighbouring chunks share."""
    _read: Read | None = PrivateAttr(None)
    _passages: tuple[Passage, ...] | None = PrivateAttr(None)

    def __init__(self, read: Read | None = None, **fields: Any) -> None:
        """Take what reads its passages from the first; None: they cannot be read."""
        super().__init__(**fields)
        self._read = read

    def read(self) -> Iterator[Passage]:
        """Read its passages in order, of which none is kept in memory.

        Raises `DatasetError` at the end if they are not those that were read before.
        """
        if self._read is None:
            raise DatasetError(f"{self.source} is not open: load the corpus")
        digest = hashlib.sha256()
        for _, passage in self._read():
            digest.update(_encode(passage))
            yield passage
        if digest.hexdigest() != self.fingerprint:
            raise DatasetError(f"corpus {self.name}: {self.source} was changed while it was read: start again")

    @property
    def warnings(self) -> list[str]:
        """Name the files that are not read, with the way out; none if all are."""
        names = [*self.left_out[:3], *([f"{len(self.left_out) - 3} more"] if len(self.left_out) > 3 else [])]
        way_out = "take them out of the folder, or name one file"
        return [f"corpus {self.name}: {', '.join(names)} is not read: {way_out}"] if names else []

    @property
    def passages(self) -> Sequence[Passage]:
        """All passages, which stay in memory."""
        if self._passages is None:
            self._passages = tuple(self.read())
        return self._passages


def load_corpus(source: str | Path | None, *, chunk_tokens: int | None = None, chunk_overlap: int = 0) -> Corpus:
    """Load the corpus in a file or folder of passages, or in a data set of the hub.

    A folder is read with the folders in it, files in the order of their names; text files, each a passage, only where
    no other format lies there. A text such as `MedRAG/textbooks` that is no path names a data set of the hub, of which
    all splits are read; behind `#` stands a configuration, as in `wikimedia/wikipedia#20231101.en`. None:
    `DEFAULT_FILE` in `$MEDEXAM_DATA`. A passage without `source` takes its title if its id is that with a number
    (`TITLE_12`), else its id's part before the first `_`, else the corpus's name. Texts are read in NFC.

    `chunk_tokens` is the most tokens of a passage, its title not counted: a longer one is cut into chunks with the ids
    `ID#0`, `ID#1`..., which keep the title and share `chunk_overlap` with their neighbours.

    The passages are read once now; eight bytes a passage are held, to find an id that stands twice. Raises
    `DatasetError` if nothing is found, a file cannot be read, an id stands twice, or a row lacks its id or text, and
    `ValueError` unless `0 <= chunk_overlap < chunk_tokens`.
    """
    if chunk_tokens is not None and not 0 <= chunk_overlap < chunk_tokens:
        raise ValueError(
            f"chunks of {chunk_tokens} tokens cannot overlap by {chunk_overlap}: the size must be "
            "larger than the overlap"
        )
    rows, about = find_source(source)
    # A partial travels to other processes, which read the corpus too; a function of here does not.
    read = partial(_read_passages, rows, about["name"], chunk_tokens, chunk_overlap)
    return _survey(read, **about, chunk_tokens=chunk_tokens, chunk_overlap=chunk_overlap)


def build_corpus(name: str, passages: Iterable[Passage], *, source: str) -> Corpus:
    """Build a corpus of passages that are already here; raises `DatasetError` if there is none, or an id twice."""
    here = [(Place(name, "passage", number), passage) for number, passage in enumerate(passages, start=1)]
    return _survey(partial(iter, here), name=name, source=source)


def corpus_texts(source: str | Path) -> Iterator[str]:
    """Yield title and content of each passage of the corpus that `load_corpus` reads, of which none is kept in memory.

    Raises `DatasetError` if nothing is found, a file cannot be read, or a row has no text; ids are not looked at.
    """
    for place, row in find_source(source)[0]():
        if not isinstance(text := row.get(find_field(row, TEXTS) or ""), str):
            raise bad_row(place, f"has no text in {', '.join(TEXTS)}")
        yield f"{row.get('title') or ''}\n{text}"


def _survey(read: Read, **description: Any) -> Corpus:
    digest, hashes = hashlib.sha256(), array("q")
    for _, passage in read():
        digest.update(_encode(passage))
        # Hashes: the ids of 36 million passages would take 3 GB.
        hashes.append(hash(passage.id))
    _check_ids(hashes, read)
    corpus = Corpus(read, fingerprint=digest.hexdigest(), count=len(hashes), **description)
    if not corpus.count:
        raise DatasetError(f"corpus {corpus.name} holds no passages: check that {corpus.source} is the right file")
    return corpus


def _encode(passage: Passage) -> bytes:
    """Return the bytes of a passage; lengths stand before the texts, so that no two corpora come to the same bytes."""
    key, title, content = passage.id.encode(), passage.title.encode(), passage.content.encode()
    return b"%d %d %d\n%b%b%b" % (len(key), len(title), len(content), key, title, content)


def _check_ids(hashes: "array[int]", read: Read) -> None:
    """Raise `DatasetError` if an id stands twice; passages are read again only where two hashes are the same."""
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    suspects = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    places: dict[str, Place] = {}
    for place, passage in read() if suspects else ():
        if hash(passage.id) in suspects and places.setdefault(passage.id, place) is not place:
            raise DatasetError(
                f"{place}: id {passage.id!r} is already in {places[passage.id]}: give each passage an id of its own, "
                "or name the one file that is to be read"
            )


def _cut(passage: Passage, size: int, overlap: int) -> Iterator[Passage]:
    spans = [token.span() for token in TOKEN.finditer(passage.content)]
    if len(spans) <= size:
        yield passage
        return
    for number, first in enumerate(range(0, len(spans) - overlap, size - overlap)):
        last = min(first + size, len(spans)) - 1
        text = passage.content[spans[first][0] : spans[last][1]]
        yield Passage(f"{passage.id}#{number}", passage.title, text, passage.source)


def _read_passages(
    rows: Callable[[], Rows], name: str, size: int | None, overlap: int
) -> Iterator[tuple[Place, Passage]]:
    collections: dict[str, str] = {}
    for place, row in rows():
        passage = _parse(place, row, name, collections)
        for part in [passage] if size is None else _cut(passage, size, overlap):
            yield place, part


def _parse(place: Place, row: Row, corpus: str, collections: dict[str, str]) -> Passage:
    """Parse the passage of a row; `collections` lets all passages of a source share one text."""
    fields = f" (its fields are {', '.join(list(row)[:20])}; {EXPECTED})"
    key = row.get(find_field(row, IDS) or "")
    if isinstance(key, int) and not isinstance(key, bool):
        key = str(key)
    if key is None and UNNAMED in row:
        key = f"{Path(place.file).name.partition('.')[0]}-{place.number}"
    if not isinstance(key, str) or not key:
        raise bad_row(place, f"id is {key!r}, not a text{fields}")
    metadata = row[METADATA] if isinstance(row.get(METADATA), dict) else {}
    field = find_field(row, TEXTS)
    content, title = row.get(field or ""), row.get(find_field(row, TITLES) or "")
    if title is None:
        title = metadata.get("title")
    if not isinstance(content, str) or not content.strip():
        raise bad_row(place, f"passage {key!r} has no text in `{field or 'content'}`{'' if field else fields}")
    if title is not None and not isinstance(title, str):
        raise bad_row(place, f"title of passage {key!r} is {title!r}, not a text")
    try:
        f"{key}{title}{content}".encode()
    except UnicodeEncodeError:
        raise bad_row(place, f"passage {key!r} holds half a surrogate pair, which is not a character") from None
    source = row.get("source") or metadata.get("source")
    # MedRAG numbers the passages of a book behind its title: First_Aid_Step1_12 is of First_Aid_Step1.
    prefix, mark, _ = key.partition("_")
    if title and key.removeprefix(f"{title}_").isdecimal():
        prefix = title
    has_prefix = mark and prefix and find_field(row, IDS)
    collection = source if isinstance(source, str) and source else prefix if has_prefix else corpus
    return Passage(
        key, normalize("NFC", title or ""), normalize("NFC", content), collections.setdefault(collection, collection)
    )
