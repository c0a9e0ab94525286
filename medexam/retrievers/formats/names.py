"""How the fields of a passage are called in the corpora of others: MedRAG, BEIR, DPR, Pyserini, LangChain, TREC."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

IDS = ("id", "_id", "docid", "doc_id", "document_id", "pid", "passage_id", "psg_id", "chunk_id", "id_", "pmid")
TEXTS = ("content", "text", "contents")
"""Of several that a row has, the first counts: MedRAG's `contents` repeats the title before the `content`."""
RARER_TEXTS = ("page_content", "passage", "passage_text", "chunk")
"""A row without one of `TEXTS` has one of these."""
TITLES = ("title", "doc_title", "document_title")
UNNAMED = "page_content"
"""The field of LangChain's documents, which need no id."""
_METADATA = ("metadata", "meta")


def _spellings(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spelling for name in names for spelling in (name, name.capitalize(), name.upper())))


_NAMES: tuple[tuple[str, ...], ...] = (IDS, TEXTS, RARER_TEXTS, TITLES)
_SPELLED = {names: _spellings(names) for names in _NAMES}
KNOWN = (*(spelling for spellings in _SPELLED.values() for spelling in spellings), "source", *_METADATA)
"""The columns of which a passage may be made."""
EXPECTED = (
    f"a passage has its id in {', '.join(IDS[:5])} or {IDS[5]}, its text in "
    f"{', '.join((*TEXTS, *RARER_TEXTS[:-1]))} or {RARER_TEXTS[-1]}, and perhaps a title and a source"
)


def find_field(fields: Sequence[str] | Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of `names`, a constant of this module, that is one of the fields; None if none is."""
    # A loop: millions of rows are looked through, and nearly all have the first name.
    for spelling in _SPELLED[names]:
        if spelling in fields:
            return spelling
    return None


def find_text(fields: Sequence[str] | Mapping[str, Any]) -> str | None:
    """Return the field that holds the text; None if none does. Raises `ValueError` if it may be one of several."""
    if (field := find_field(fields, TEXTS)) is not None:
        return field
    matches = [spelling for spelling in _SPELLED[RARER_TEXTS] if spelling in fields]
    if len(matches) > 1:
        raise ValueError(f"its text may be {' or '.join(matches)}: rename the right field to content")
    return matches[0] if matches else None


def read_metadata(row: Mapping[str, Any], name: str) -> Any:
    """Return what a row's own metadata hold as `name`; None if there is no such thing."""
    metadata = next((row[field] for field in _METADATA if field in row), None)
    return metadata.get(name) if isinstance(metadata, Mapping) else None
