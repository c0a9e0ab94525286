"""Finds the rows of a table in a JSON document, whatever lists and objects stand around them.

A document is a list of records; an object of records by their ids, or by groups such as subjects; a frame as pandas
writes it, by columns or rows; or any of these within a wrapper. A record may be a case that several questions share.
"""

import re
from collections.abc import Mapping, Sequence
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
    node = _by_rows(node)
    nested = {name: child for name, child in node.items() if isinstance(child, (list, Mapping)) and child}
    lists = {name: child for name, child in node.items() if isinstance(child, list)}
    asking = {name: child for name, child in nested.items() if _asks(child)}
    parts = {name: child for name, child in asking.items() if _is_collection(child)} or asking or lists or nested
    are_records = not lists.keys() & parts and not all(map(_is_collection, parts.values()))
    if not parts:
        raise UnreadableError(
            f"is an object with {len(lists)} lists ({', '.join(lists) or 'none'}); it needs a list of questions, or an "
            "object with one list"
        )
    ordinals = [[str(first + place) for place in range(len(parts))] for first in (0, 1)]
    if are_records:
        names: Sequence[str] = () if [*parts] in ordinals else (own_key, "entry")
    else:
        of_splits = {key.lower() for key in parts} <= SPLITS.keys()
        names = () if len(parts) == 1 else ("split",) if of_splits else ("subject", "group", "outer group")
    read = split_case if are_records else rows_of_document
    rows = [_under(key, row, names) for key, child in parts.items() for row in read(child)]
    shared = {name: node[name] for name in node if name not in parts and node[name] not in (None, [], {})}
    shared.pop("schema", None)
    return [_joined(shared, row, "file", _OF_WHOLE) for row in rows]


def _by_rows(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Turn an object of columns by the ids of their values, as pandas writes it, into one of rows by their ids."""
    columns = [child for child in node.values() if isinstance(child, Mapping) and child]
    asks, inner = pattern("asking").search, list(dict.fromkeys(chain.from_iterable(columns)))
    are_numbered = len({re.sub(r"\d+", "#", name) for name in node}) == 1
    are_columns = len(columns) == len(node) and not all(map(_is_collection, columns))
    if not are_columns or are_numbered or any(map(asks, inner)) or not any(map(asks, node)):
        return node
    return {key: {name: values.get(key) for name, values in node.items()} for key in inner}


def split_case(cells: Any) -> list[Cells]:
    """Split a row into its questions with what they share; it begins with `case_` where a question has the field."""
    if not isinstance(cells, Mapping):
        return [cells if isinstance(cells, str) else f"is {cells!r:.60}, not an object with one field for each column"]
    nested = [name for name, value in cells.items() if isinstance(value, (list, dict)) and _asks({name: value})]
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
    """Return whether a list or an object holds a question, or a collection of them, at any depth."""
    if isinstance(value, list):
        return any(map(_asks, value))
    return isinstance(value, Mapping) and any(
        pattern("asking").search(name)
        if isinstance(content, str)
        else (_is_collection(content) and pattern("questions", "{}$").search(name)) or _asks(content)
        for name, content in value.items()
    )
