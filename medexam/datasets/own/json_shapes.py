"""Finds the rows of a table in a JSON document, whatever lists and objects stand around them.

A document is a list of records; an object of records by their ids, or by groups such as subjects; a frame as pandas
writes it, by columns or rows; or any of these within a wrapper. A record may be a case that several questions share.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from medexam.datasets.own.grids import LOOKED_AT, Cells, Header, find_header, name_cells
from medexam.inputs import UnreadableError

_ASKING = re.compile(
    r"quest|stem|pregunt|pergunt|domand|frage|enunci|qtext|prompt|problem|query|题|問|문제|вопрос|سؤال", re.I
)
_QUESTIONS = re.compile(r"(?:questions|preguntas|perguntas|domande|fragen|mcqs|题目|問題)$", re.IGNORECASE)
_ANSWERING = re.compile(
    r"answ|correct|right|gold|label|respuest|respost|rispost|repons|réponse|antwort|richtig|cop|答|정답", re.I
)
_SPLITS = frozenset({"train", "training", "dev", "development", "val", "valid", "validation", "test"})
_OF_WHOLE = frozenset({"id", "subject", "year", "exam", "split"})
"""Fields that say something else of a whole file than of one of its rows."""
_LEFT_ALONE = "paragraphs"
"""Where SQuAD's file holds its questions, which has a reader of its own."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A row, and the keys under which it stood."""

    cells: Cells
    entry: str | None = None
    """Its own key; None if it had none, or only its place."""
    groups: tuple[str, ...] = ()
    """The keys around it, the outermost first, where there were several."""


def rows_of_document(document: Any, own_key: str = "id") -> list[Cells]:
    """List the rows of a document, with the keys under which they stood as columns.

    These are called `own_key` or `entry`, `split` if all of them name one, and `subject`. Raises `UnreadableError` if
    it is no table.
    """
    records = _find(document)
    rows = [record.cells for record in records]
    columns = {name for row in rows if isinstance(row, Mapping) for name in row}
    entries = [record.entry for record in records]
    keys_by_column: dict[str, list[Any]] = {}
    if any(entries):
        keys_by_column["entry" if own_key in columns or len(set(entries)) < len(entries) else own_key] = entries
    for level in range(max((len(record.groups) for record in records), default=0)):
        keys = [record.groups[level] if level < len(record.groups) else None for record in records]
        names = ("split",) if {str(key).lower() for key in keys} <= _SPLITS else ("subject", "group")
        keys_by_column[
            next((name for name in names if name not in columns | keys_by_column.keys()), f"group {level + 1}")
        ] = keys
    if not keys_by_column:
        return rows
    extra_cells = [dict(zip(keys_by_column, keys, strict=True)) for keys in zip(*keys_by_column.values(), strict=True)]
    return [{**extra, **row} if isinstance(row, Mapping) else row for extra, row in zip(extra_cells, rows, strict=True)]


def is_wrapper(value: object) -> bool:
    """Return whether a value holds lists and objects only, and is therefore no row."""
    inner = value.values() if isinstance(value, Mapping) else (value,)
    return bool(inner) and all(isinstance(part, (list, dict)) for part in inner)


def split_case(cells: Cells) -> list[Cells]:
    """Split a row into the questions that it holds, each with what they share; the row alone if it is a question
    itself.

    A field that a question has as well, and the `id` of a case, begin with `case_`.
    """
    if isinstance(cells, str):
        return [cells]
    nested = [name for name, value in cells.items() if isinstance(value, (list, dict)) and _asks({"": {name: value}})]
    if len(nested) != 1 or nested[0] == _LEFT_ALONE or _is_question(cells):
        return [cells]
    shared = {name: value for name, value in cells.items() if name != nested[0]}
    rows = rows_of_document(cells[nested[0]], own_key="entry")
    return [row if isinstance(row, str) else _joined(shared, row, "case", {"id"}) for row in rows]


def _joined(shared: Mapping[str, Any], row: Mapping[str, Any], kind: str, kept_apart: Any) -> dict[str, Any]:
    apart = {name: f"{kind}_{name}" if name in row or name in kept_apart else name for name in shared}
    return {**{apart[name]: value for name, value in shared.items()}, **row}


def _find(node: Any) -> list[_Found]:
    """Find the rows within a list or an object; raise `UnreadableError` if there are none to be told."""
    if isinstance(node, list):
        if node and all(isinstance(row, list) and row for row in node):
            numbered = Header(tuple(str(place + 1) for place in range(len(node[0]))), 0, ())
            header = find_header(node[:LOOKED_AT]) if _is_list_of(str, node[0]) else numbered
            return [_Found(name_cells(row, header.columns)) for row in node[header.above :]]
        return [_Found(cells) for row in node for cells in split_case(as_row(row))]
    if not isinstance(node, Mapping):
        raise UnreadableError(f"is {node!r:.60}, not a list of questions, nor an object with one")
    if isinstance(node.get("columns"), list) and _is_list_of(list, node.get("data")):
        header = Header(tuple(map(str, node["columns"])), 0, ())
        return [_Found(name_cells(row, header.columns)) for row in node["data"]]
    if _is_question(node):
        return [_Found(node)]
    if node and all(isinstance(child, Mapping) and child for child in node.values()):
        if all(map(_is_collection, node.values())):
            return _find_groups(node)
        if _are_alike(list(node.values())):
            return _find_records(node)
    lists = {name: child for name, child in node.items() if isinstance(child, list)}
    question_lists = {name: child for name, child in node.items() if isinstance(child, (list, dict)) and _asks(child)}
    lengths = set(map(len, lists.values()))
    if len(lists) > 1 and not question_lists and len(lengths) == 1 and lengths != {0}:
        return [_Found(dict(zip(lists, values, strict=True))) for values in zip(*lists.values(), strict=True)]
    collections = question_lists or lists or {name: child for name, child in node.items() if _is_collection(child)}
    firsts = [next(_records(collection), {}) for collection in collections.values()]
    if len(collections) > 1 and all(map(_is_collection, collections.values())) and _are_alike(firsts):
        records = _find_groups(collections)
    elif len(collections) == 1:
        records = _find(next(iter(collections.values())))
    else:
        raise UnreadableError(
            f"is an object with {len(lists)} lists ({', '.join(lists) or 'none'}); it needs a list of questions, or an "
            "object with one list"
        )
    shared = {name: node[name] for name in node if name not in collections and node[name] not in (None, [], {})}
    shared.pop("schema", None)
    return [
        record
        if isinstance(record.cells, str)
        else replace(record, cells=_joined(shared, record.cells, "file", _OF_WHOLE))
        for record in records
    ]


def _find_groups(node: Mapping[str, Any]) -> list[_Found]:
    """Find the rows of an object of collections, such as the questions of each subject."""
    several = len(node) > 1
    return [
        replace(row, groups=(name, *row.groups) if several else row.groups)
        for name, inner in node.items()
        for row in _find(inner)
    ]


def _find_records(node: Mapping[str, Mapping[str, Any]]) -> list[_Found]:
    """Find the rows of an object of records by their ids. An object of columns by the ids of their values is turned."""
    inner = list(dict.fromkeys(chain.from_iterable(node.values())))
    if _holds_columns(list(node), inner):
        rows = {key: {name: values.get(key) for name, values in node.items()} for key in inner}
    else:
        rows = {key: dict(values) for key, values in node.items()}
    is_counted = list(rows) in [[str(place) for place in range(first, first + len(rows))] for first in (0, 1)]
    return [_Found(cells, None if is_counted else key) for key, row in rows.items() for cells in split_case(row)]


def _holds_columns(outer: Sequence[str], inner: Sequence[str]) -> bool:
    """Return whether an object of objects has a column for each key, as pandas writes a frame, and no record."""
    for keys, columns in ((outer, False), (inner, True)):
        if len({re.sub(r"\d+", "#", key) for key in keys}) == 1 and any(map(str.isdigit, keys[0])):
            return columns
    return not any(map(_ASKING.search, inner)) and any(map(_ASKING.search, outer))


def as_row(value: object) -> Cells:
    """Return a value as a row; what is wrong with it if it is no object."""
    if isinstance(value, Mapping):
        return value
    return f"is {value!r:.60}, not an object with one field for each column"


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(element, kind) for element in value)


def _is_collection(value: object) -> bool:
    """Return whether a value is a list of objects, or an object of such lists and of objects."""
    if isinstance(value, Mapping):
        return bool(value) and all(isinstance(child, Mapping) or _is_list_of(dict, child) for child in value.values())
    return _is_list_of(dict, value)


def _is_question(record: Mapping[str, Any]) -> bool:
    """Return whether a record asks something itself and answers it, by the names of its fields."""
    asks = any(isinstance(value, str) and _ASKING.search(name) for name, value in record.items())
    return asks and any(_ANSWERING.search(name) or _marks_answers(value) for name, value in record.items())


def _marks_answers(value: object) -> bool:
    """Return whether a value is a list of options of which some are marked as right."""
    return _is_list_of(dict, value) and not _asks(value) and any(map(_ANSWERING.search, value[0]))  # type: ignore[index]


def _asks(value: object) -> bool:
    """Return whether a list or an object holds records with a question, or collections of them."""
    fields = (field for record in _records(value) for field in record.items())
    return any(
        _ASKING.search(name)
        if isinstance(content, str)
        else _is_collection(content) and (_QUESTIONS.search(name) or _asks(content))
        for name, content in fields
    )


def _records(value: object) -> Iterator[Mapping[str, Any]]:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return (child for child in inner if isinstance(child, Mapping))


def _are_alike(records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether records have at least half of their fields in common with the first."""
    return all(2 * len(record.keys() & records[0].keys()) >= min(len(record), len(records[0])) for record in records)
