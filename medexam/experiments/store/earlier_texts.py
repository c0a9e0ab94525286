"""Stored cells of versions that asked the texts of every data set as their authors published them.

They do not say so, since there was no other way. Their digests cover the texts, so they stay the same.
"""

from collections.abc import Mapping
from typing import Any

from medexam.specs.catalogue import CATALOGUE

_FIELD = "as_published"


def as_asked_before(cell: Any) -> Any:
    """Complete a stored cell, or another mapping with a `dataset`: its data set says in which texts it was asked.

    What is none is returned as it is.
    """
    if not isinstance(cell, Mapping):
        return cell
    dataset = cell.get("dataset")
    if not isinstance(dataset, Mapping) or _FIELD in dataset or dataset.get("kind") is not None:
        return dict(cell)
    entry = CATALOGUE.get(str(dataset.get("name")))
    corrected = entry is not None and _FIELD in entry.fields
    return {**cell, "dataset": {**dataset, _FIELD: True}} if corrected else dict(cell)
