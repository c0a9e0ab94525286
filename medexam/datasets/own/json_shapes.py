"""Finds the rows of a table in a JSON document, whatever lists and objects stand around them."""

from collections.abc import Mapping
from typing import Any

from medexam.inputs import UnreadableError

Cells = Mapping[str, Any] | str
"""Column -> value of one row; or what is wrong with the row."""


def rows_of_document(document: Any) -> list[Cells]:
    """The rows of a document, a list or an object with one list; raises `UnreadableError` if it is neither."""
    if isinstance(document, Mapping):
        lists = {name: value for name, value in document.items() if isinstance(value, list)}
        if len(lists) != 1:
            raise UnreadableError(
                f"is an object with {len(lists)} lists ({', '.join(lists) or 'none'}); it needs a list of "
                "questions, or an object with one list"
            )
        (document,) = lists.values()
    if not isinstance(document, list):
        raise UnreadableError(f"is {document!r:.60}, not a list of questions, nor an object with one")
    return [as_row(value) for value in document]


def as_row(value: object) -> Cells:
    """A value as a row; what is wrong with it if it is no object."""
    if isinstance(value, Mapping):
        return value
    return f"is {value!r:.60}, not an object with a field for each column"
