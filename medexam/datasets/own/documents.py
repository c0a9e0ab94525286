"""Finds the rows of a table in a JSON document, whatever lists and objects stand around them.

A document is a list of records; an object of records by their ids, or by groups such as subjects; a frame as pandas
writes it, by columns or rows; or any of these within a wrapper. A record may be a case that several questions share.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from medexam.datasets.own.texts import pattern
from medexam.files import UnreadableError

Cells = Mapping[str, Any] | str
"""Column -> value of one row; or what is wrong with the row."""
SPLITS: Mapping[str, Literal["train", "dev", "test"]] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "development", "val", "valid", "validation"), "dev"),
    "test": "test",
}
"""What authors call the parts of a data set -> the part."""
_OF_WHOLE = frozenset({"id", "subject", "year", "exam", "split"})
"""Fields that say something else of a whole file than of one of its rows."""


def rows_of_document(node: Any, own_key: str = "id") -> list[Cells]:
    """List the rows within a list or an object, with the keys under which they stood as columns.

    These are called `own_key`, `split` if all of them name one, `subject`, or `entry` and `group` where a row has such
    a field. Raises `UnreadableError` if there are no rows to be told.
    """
    if isinstance(node, list):
        return [cells for row in node for cells in split_case(row)]
    if not isinstance(node, Mapping):
        raise UnreadableError(f"is {node!r:.60}, not a list of questions, nor an object with one")
    if _is_question(node):
        return [node]
    holds_objects = bool(node) and all(isinstance(child, Mapping) and child for child in node.values())
    are_groups = holds_objects and all(map(_is_collection, node.values()))
    if holds_objects and not are_groups and _are_alike([*node.values()]):
        return _find_records(node, own_key)
    lists = {name: child for name, child in node.items() if isinstance(child, list)}
    asking = {name: child for name, child in node.items() if isinstance(child, (list, dict)) and _asks(child)}
    inner = {name: child for name, child in node.items() if _is_collection(child)}
    collections = node if are_groups else asking or lists or inner
    firsts = [next(_records(collection), {}) for collection in collections.values()]
    if len(collections) != 1 and not (
        are_groups or (collections and all(map(_is_collection, collections.values())) and _are_alike(firsts))
    ):
        raise UnreadableError(
            f"is an object with {len(lists)} lists ({', '.join(lists) or 'none'}); it needs a list of questions, or an "
            "object with one list"
        )
    of_splits = {key.lower() for key in collections} <= SPLITS.keys()
    names = () if len(collections) == 1 else ("split",) if of_splits else ("subject", "group", "outer group")
    rows = [_under(key, row, names) for key, child in collections.items() for row in rows_of_document(child)]
    shared = {name: node[name] for name in node if name not in collections and node[name] not in (None, [], {})}
    shared.pop("schema", None)
    return [_joined(shared, row, "file", _OF_WHOLE) for row in rows]


def split_case(cells: Any) -> list[Cells]:
    """Split a row into its questions with what they share; it begins with `case_` where a question has the field."""
    if not isinstance(cells, Mapping):
        return [cells if isinstance(cells, str) else f"is {cells!r:.60}, not an object with one field for each column"]
    nested = [name for name, value in cells.items() if isinstance(value, (list, dict)) and _asks({"": {name: value}})]
    lists = {name: value for name, value in cells.items() if isinstance(value, list)}
    inner: list[Cells]
    if len(nested) == 1 and not _is_question(cells):
        inner = rows_of_document(cells[nested[0]], own_key="entry")
    elif (
        len(lists) > 2 and len({*map(len, lists.values())}) == 1 and any(map(pattern("questions", "{}$").search, lists))
    ):
        # Questions, options and answers in lists of their own.
        nested = [*lists]
        inner = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    else:
        return [cells]
    shared = {name: value for name, value in cells.items() if name not in nested}
    return [_joined(shared, row, "case", {"id"}) for row in inner]


def _joined(shared: Mapping[str, Any], row: Cells, kind: str, kept_apart: Any) -> Cells:
    if isinstance(row, str):
        return row
    apart = {name: f"{kind}_{name}" if name in row or name in kept_apart else name for name in shared}
    return {**{apart[name]: value for name, value in shared.items()}, **row}


def _find_records(node: Mapping[str, Mapping[str, Any]], own_key: str) -> list[Cells]:
    """Find the rows of an object of records by their ids. An object of columns by the ids of their values is turned."""
    inner = list(dict.fromkeys(chain.from_iterable(node.values())))
    rows: Mapping[str, Mapping[str, Any]] = node
    outer_counts, inner_counts = (
        len({re.sub(r"\d+", "#", key) for key in keys}) == 1 and any(map(str.isdigit, keys[0]))
        for keys in ([*node], inner)
    )
    asks = pattern("asking").search
    if not outer_counts and (inner_counts or (any(map(asks, node)) and not any(map(asks, inner)))):
        # A column for each key, as pandas writes a frame.
        rows = {key: {name: values.get(key) for name, values in node.items()} for key in inner}
    is_ordinal = list(rows) in [[str(place) for place in range(first, first + len(rows))] for first in (0, 1)]
    names = () if is_ordinal else (own_key, "entry")
    return [_under(key, cells, names) for key, row in rows.items() for cells in split_case(row)]


def _under(key: str, row: Cells, names: Sequence[str]) -> Any:
    """Add a key to a row, under the first of the names that the row has not."""
    name = next((name for name in names if name not in row), None)
    return row if isinstance(row, str) or name is None else {name: key, **row}


def _is_collection(value: object) -> bool:
    """Return whether a value is a list of objects, or an object of such lists and of objects."""
    if isinstance(value, Mapping):
        return bool(value) and all(
            isinstance(child, Mapping) or (isinstance(child, list) and _is_collection(child))
            for child in value.values()
        )
    return isinstance(value, list) and bool(value) and all(isinstance(element, Mapping) for element in value)


def _is_question(record: Mapping[str, Any]) -> bool:
    """Return whether a record asks something itself and answers it, by the names of its fields."""
    asks = any(isinstance(value, str) and pattern("asking").search(name) for name, value in record.items())
    return asks and any(
        # Or it marks some of its options as right.
        pattern("answering").search(name)
        or (
            isinstance(value, list)
            and _is_collection(value)
            and not _asks(value)
            and any(map(pattern("answering").search, value[0]))
        )
        for name, value in record.items()
    )


def _asks(value: object) -> bool:
    """Return whether a list or an object holds records with a question, or collections of them."""
    fields = (field for record in _records(value) for field in record.items())
    return any(
        pattern("asking").search(name)
        if isinstance(content, str)
        else _is_collection(content) and (pattern("questions", "{}$").search(name) or _asks(content))
        for name, content in fields
    )


def _records(value: object) -> Iterator[Mapping[str, Any]]:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return (child for child in inner if isinstance(child, Mapping))


def _are_alike(records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether records have at least half of their fields in common with the first."""
    return all(2 * len(record.keys() & records[0].keys()) >= min(len(record), len(records[0])) for record in records)
