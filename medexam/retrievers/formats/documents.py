"""Passages in whole documents: a JSON list or mapping of them, and a text file each."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medexam.inputs import UnreadableError, decode, read_bytes, read_json
from medexam.retrievers.formats.names import IDS, find_field, find_text

JSON_SUFFIXES = (".json", ".json.gz")
TEXT_SUFFIXES = (".txt", ".md")
_ABOUT = re.compile(r"readme|licen[cs]e|copying|citation", re.IGNORECASE)
"""Files that speak of a corpus."""
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_HEADING = re.compile(r"\A\s*# +(.+)\n")


def read_json_rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a JSON document: a list, the list that an object holds, or an object of them by id.

    Raises `OSError`, and `UnreadableError` if it holds none.
    """
    document = read_json(path)
    if isinstance(document, Mapping) and find_text(document) is None:
        lists = [value for value in document.values() if isinstance(value, list)]
        if len(lists) == 1:
            document = lists[0]
        elif document and all(isinstance(value, str | Mapping) for value in document.values()):
            document = [_row_of(key, value) for key, value in document.items()]
    if isinstance(document, Mapping) and find_text(document) is not None:
        document = [document]
    if not isinstance(document, list):
        raise UnreadableError("holds neither a list of passages nor an object with passages by id")
    yield from document


def is_passage(path: Path) -> bool:
    """Return whether a text file is a passage, and does not speak of others."""
    return path.name.lower().endswith(TEXT_SUFFIXES) and not _ABOUT.match(path.name)


def read_text_file(path: Path, name: str) -> dict[str, str]:
    """Read a text file as a row of the id `name`; its title is the heading it begins with, else the file's name.

    Raises `OSError`, and `UnreadableError` if it is not UTF-8.
    """
    text = decode(read_bytes(path)).replace("\r\n", "\n")
    if path.suffix.lower() == ".md":
        text = _FRONT.sub("", text)
        if heading := _HEADING.match(text):
            return {"id": name, "title": heading[1].strip(" #"), "content": text[heading.end() :].strip() or heading[1]}
    return {"id": name, "title": path.stem, "content": text.strip()}


def _row_of(key: str, value: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(value, str):
        return {"id": key, "content": value}
    return value if find_field(value, IDS) is not None else {"id": key, **value}
