"""The passages that retrievers search: a `Corpus` with a fingerprint, from files, folders and the hub.

It knows the rows of MedRAG's corpora (`id`, `title`, `content`) and nothing of how passages are searched.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from medexam.errors import DatasetError
from medexam.retrievers.base import Passage
from medexam.retrievers.corpus_rows import (
    SUFFIXES,
    PlacedRow,
    Unreadable,
    list_files,
    load_hub,
    read_files,
    read_hub,
    read_licence,
)

DEFAULT_FILE = "corpus/passages.jsonl.gz"
"""What is read in `$MEDEXAM_DATA` where no corpus is named."""
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(#[\w.-]+)?")

_TOKEN = re.compile(r"\w+|[^\w\s]")
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


class _RowError(Exception):
    """Why a row is no passage."""


def load_corpus(source: str | Path | None, *, skip_bad: bool = False) -> Corpus:
    """The corpus in a file or folder of `.jsonl`, `.jsonl.gz` and `.parquet`, or in a data set of the hub.

    A folder is read with the folders in it, files in the order of their names. A text such as `MedRAG/textbooks` that
    is no path names a data set of the hub, of which all splits are read; a `Path` never does. Behind `#` stands a
    configuration, as in `wikimedia/wikipedia#20231101.en`. None: `DEFAULT_FILE` in `$MEDEXAM_DATA`. A passage's text
    stands in `content`, or in `text` if there is no such column. A passage without `source` takes its id's part
    before the first `_`, else the corpus's name.

    Raises `DatasetError` if nothing is found, a file cannot be read, an id stands twice, no passage is left, or a
    row is not JSON or lacks its id or text: with `skip_bad` such rows are left out and counted instead.
    """
    return _collect(_find(source), skip_bad=skip_bad)


def corpus_texts(source: str | Path) -> Iterator[str]:
    """Title and content of each passage of the corpus that `load_corpus` reads, of which none is kept in memory.

    Raises `DatasetError` if nothing is found, a file cannot be read, or a row has no text; ids are not looked at.
    """
    for place, row in _find(source).read():
        content = None if isinstance(row, Unreadable) else row.get("content", row.get("text"))
        if isinstance(row, Unreadable) or not isinstance(content, str):
            reason = row.reason if isinstance(row, Unreadable) else "has no text in `content`"
            raise DatasetError(f"{place}: {reason}: correct it")
        yield f"{row.get('title') or ''}\n{content}"


@dataclass(frozen=True)
class _Source:
    """Where a corpus is read, as often as is needed."""

    name: str
    shown: str
    read: Callable[[], Iterator[PlacedRow]]
    licence: str | None


def _find(source: str | Path | None) -> _Source:
    path = _default_path() if source is None else Path(source).expanduser()
    if path.exists():
        files = list_files(path)
        licence = read_licence((path if path.is_dir() else path.parent) / "README.md")
        name = path.resolve().name if path.is_dir() else path.name.split(".")[0]
        return _Source(name, str(path), lambda: read_files(files), licence)
    if isinstance(source, str) and _HUB_NAME.fullmatch(source) and not source.endswith((*SUFFIXES, ".json", ".gz")):
        parts = load_hub(source)
        licence = next((part.info.license for part in parts.values() if part.info.license), None)
        return _Source(source, source, lambda: read_hub(source, parts), licence)
    raise DatasetError(
        f"corpus {path} does not exist: correct the path, name a hub data set such as MedRAG/textbooks, or name none "
        f"and set MEDEXAM_DATA to a folder that holds {DEFAULT_FILE}"
    )


def build_corpus(name: str, passages: Iterable[Passage], *, source: str, licence: str | None = None) -> Corpus:
    """A corpus of passages that are already here, such as the chunks of another one.

    Raises `DatasetError` if there is none, or an id stands twice.
    """
    kept = tuple(passages)
    ids: set[str] = set()
    for passage in kept:
        if passage.id in ids:
            raise DatasetError(f"corpus {name}: id {passage.id!r} stands twice: give each passage an id of its own")
        ids.add(passage.id)
    return _finish(name, kept, source, licence, 0)


def chunk_corpus(corpus: Corpus, size: int, overlap: int = 0) -> Corpus:
    """The corpus with longer passages cut into chunks of at most `size` tokens, of which neighbours share `overlap`.

    A token is a word or a punctuation mark, whatever the retriever. The title is not counted and every chunk keeps it.
    A passage that fits stays as it is; the chunks of a longer one have the ids `ID#0`, `ID#1`... and the last of them
    may be shorter. Raises `ValueError` unless `0 <= overlap < size`, and `DatasetError` where a passage already has
    the id of a chunk.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"chunks of {size} tokens cannot share {overlap}: the size must be larger than the overlap")
    chunks = build_corpus(
        corpus.name, _chunk(corpus.passages, size, overlap), source=corpus.source, licence=corpus.licence
    )
    return replace(chunks, skipped=corpus.skipped, chunk_tokens=size, chunk_overlap=overlap)


def _chunk(passages: Iterable[Passage], size: int, overlap: int) -> Iterator[Passage]:
    for passage in passages:
        spans = [token.span() for token in _TOKEN.finditer(passage.content)]
        if len(spans) <= size:
            yield passage
            continue
        for number, first in enumerate(range(0, len(spans) - overlap, size - overlap)):
            last = min(first + size, len(spans)) - 1
            text = passage.content[spans[first][0] : spans[last][1]]
            yield Passage(f"{passage.id}#{number}", passage.title, text, passage.source)


def _default_path() -> Path:
    folder = os.environ.get("MEDEXAM_DATA")
    path = Path(folder).expanduser() / DEFAULT_FILE if folder else None
    if path is not None and path.exists():
        return path
    lacking = f"{path} does not exist" if path is not None else "MEDEXAM_DATA is not set"
    raise DatasetError(
        f"no corpus is named and {lacking}: name a file or folder of passages or a hub data set such as "
        f"MedRAG/textbooks, or set MEDEXAM_DATA to a folder that holds {DEFAULT_FILE}"
    )


def _collect(source: _Source, *, skip_bad: bool) -> Corpus:
    """Reads everything once, and again only to tell where an id that stands twice stood first."""
    passages: list[Passage] = []
    ids: set[str] = set()
    collections: dict[str, str] = {}
    skipped = 0
    for place, row in source.read():
        try:
            passage = _parse(row, source.name, collections)
        except _RowError as error:
            if not skip_bad:
                raise DatasetError(
                    f"{place}: {error}: correct it, or leave out such rows and count them (`medexam index build "
                    f"--skip-bad`, retriever.skip_bad in a spec)"
                ) from None
            skipped += 1
            continue
        if passage.id in ids:
            first = next(earlier for earlier, other in source.read() if _stated_id(other) == passage.id)
            raise DatasetError(
                f"{place}: id {passage.id!r} already stands in {first}: give each passage an id of its own, or name "
                f"the one file that is to be read"
            )
        ids.add(passage.id)
        passages.append(passage)
    return _finish(source.name, tuple(passages), source.shown, source.licence, skipped)


def _finish(name: str, passages: tuple[Passage, ...], source: str, licence: str | None, skipped: int) -> Corpus:
    if not passages:
        left_out = f" ({skipped} rows that are none were left out)" if skipped else ""
        raise DatasetError(f"corpus {name} holds no passages{left_out}: see whether {source} is what you mean")
    return Corpus(name, passages, _fingerprint(passages), source, licence, skipped)


def _parse(row: Mapping[str, Any] | Unreadable, corpus: str, collections: dict[str, str]) -> Passage:
    """The passage of a row; `collections` lets all passages of a source share one text."""
    if isinstance(row, Unreadable):
        raise _RowError(row.reason)
    key = _stated_id(row)
    if key is None:
        raise _RowError(f"id is {row.get('id')!r}, not a text")
    content, title = row.get("content", row.get("text")), row.get("title")
    if not isinstance(content, str) or not content.strip():
        raise _RowError(f"passage {key!r} has no text in `content`")
    if title is not None and not isinstance(title, str):
        raise _RowError(f"title of passage {key!r} is {title!r}, not a text")
    try:
        f"{key}{title}{content}".encode()
    except UnicodeEncodeError:
        raise _RowError(f"passage {key!r} holds half a surrogate pair, which is no character") from None
    stated = row.get("source")
    before, mark, _ = key.partition("_")
    collection = stated if isinstance(stated, str) and stated else before if mark and before else corpus
    return Passage(key, title or "", content, collections.setdefault(collection, collection))


def _stated_id(row: Mapping[str, Any] | Unreadable) -> str | None:
    """Whole numbers are taken as texts."""
    key = None if isinstance(row, Unreadable) else row.get("id")
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    return key if isinstance(key, str) and key else None


def _fingerprint(passages: Iterable[Passage]) -> str:
    """Lengths stand before the texts, so that no two corpora come to the same bytes."""
    digest = hashlib.sha256()
    for passage in passages:
        key, title, content = passage.id.encode(), passage.title.encode(), passage.content.encode()
        digest.update(b"%d %d %d\n%b%b%b" % (len(key), len(title), len(content), key, title, content))
    return digest.hexdigest()
