"""What the cells of a column look like: a text, a letter, a question, options; never what the column's name says."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from medexam.datasets.own.labels import CellError, split_marked
from medexam.datasets.own.names import find_groups
from medexam.datasets.own.texts import unpack

MOST, HALF = 0.9, 0.5
"""The share of rows that show what a column is, the others being bad; and the share that it may be."""
_BETWEEN = ("\n", "|", ";", " / ", ",")
"""What stands between the options of one cell that have no letters."""
_ASKS = re.compile(r"(?:[?？؟:：…_]|\.\.\.)\Z")  # noqa: RUF001 - as Chinese and Arabic write it
_LABEL = re.compile(r"(?:[(\[]?(?:[A-Za-z]\b|(?:[A-Za-z]+[\W_]*)?\d{1,4}(?:\.0)?)[)\].]?[,; ]*)+")
"""Letters, or a number such as `12` or `Question 12`."""


def share(is_so: Callable[[Any], object], values: Sequence[Any]) -> float:
    """Return the share of values of which something is so; 0 if there are none."""
    return sum(bool(is_so(value)) for value in values) / len(values) if values else 0.0


def is_flat(value: object) -> bool:
    """Return whether a value is a text or number, and no list or mapping, neither in a text."""
    return not isinstance(unpack(value), (list, tuple, Mapping, bytes))


def is_text(values: Sequence[Any]) -> bool:
    """Return whether values are texts, and not letters or numbers alone."""
    return share(lambda value: isinstance(value, str) and not is_mark(value), values) >= MOST


def is_mark(value: object) -> bool:
    """Return whether a value is a letter or a number alone."""
    return _LABEL.fullmatch(str(value).strip()) is not None


def asks(value: object) -> bool:
    """Return whether a text ends as questions do, or as its options begin."""
    text = str(value).strip()
    return _ASKS.search(text) is not None or splits(text)


def splits(value: object, *, bare: bool = False) -> bool:
    """Return whether a text ends in options behind letters or numbers; `bare`: and holds nothing but them."""
    try:
        options = split_marked(str(value), bare=bare)
    except CellError:
        return True
    return options is not None and not (bare and options.stem)


def length(values: Sequence[Any]) -> float:
    """Compute the mean number of characters."""
    return sum(len(str(value)) for value in values) / len(values) if values else 0.0


def holds_options(values: Sequence[Any], *, is_named: bool) -> Mapping[str, Any] | None:
    """Return what of `columns` reads options from one column: nothing more, or what stands between; None if it holds
    none.

    Texts without letters are only taken apart in a column that `is_named` as options are.
    """
    if share(_are_options, values) >= MOST:
        return {}
    texts = [value for value in values if isinstance(value, str)]
    if not is_named or len(texts) < len(values):
        return None
    for between in _BETWEEN:
        counts = [len(text.split(between)) for text in texts]
        if min(counts, default=0) > 1 and (between in "\n|" or (len(set(counts)) == 1 and len(counts) > 2)):
            return {"between": between}
    return None


def _are_options(value: object) -> bool:
    value = unpack(value)
    if isinstance(value, str):
        return splits(value, bare=True)
    if isinstance(value, Mapping):
        return is_labelled(value)
    return (
        isinstance(value, (list, tuple))
        and len(value) > 1
        and not any(isinstance(entry, list) and len(entry) != 2 for entry in value)
    )


def is_labelled(value: Mapping[str, Any]) -> bool:
    """Return whether a mapping is one of labels and texts, and no record."""
    if "answer_start" in value:
        return True
    if any(isinstance(value.get(name), list) for name in ("text", "label")):
        return all(isinstance(value.get(name), list) for name in ("text", "label"))
    groups = find_groups([str(name) for name in value])
    return bool(groups) and len(groups[0].columns) >= len(value) - 1
