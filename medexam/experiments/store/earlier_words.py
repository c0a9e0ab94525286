"""Words that shipped under a name before: runs asked in them are shown, and continued, under the name they have now."""

from collections.abc import Mapping
from typing import Any

from medexam.specs import CellSpec
from medexam.specs.identity import digest

EARLIER, NOW = "paper", "paper_v0"
"""The set of words as it was called then, and its name today; prompt and examples alike."""
DIGESTS = frozenset(
    [
        "dbf484208aa4",
        "8fa6206c939e",
        "fdcccc8f5a3d",
        "a9534cf1dc3d",
        "b05e0d766b63",
        "67a686b441c2",
        "71a144d87a47",
        "09445acf4c5e",
        "95d400c95560",
        "6472a4c02ff8",
        "9ae0a5dda663",
        "262683bf630b",
        "0e9703878da1",
        "943a86112dd6",
    ]
)
"""Digests of its instructions and examples as identities hold them: reading the words themselves would import DSPy."""


def name_words(cell: CellSpec, identity: Mapping[str, Any]) -> CellSpec:
    """Return the cell of a stored run, its words called by the name under which they ship today.

    `identity` holds the words that were asked in. A run's digest covers words and no name, so it stays the same.
    """
    words = identity.get("words")
    if not isinstance(words, Mapping):
        return cell
    part_by_field = {"prompt": "instructions", "examples": "examples"}
    update = {
        field: NOW
        for field, part in part_by_field.items()
        if str(getattr(cell.program, field, None)) == EARLIER and digest({part: words.get(part)}) in DIGESTS
    }
    return cell.model_copy(update={"program": cell.program.model_copy(update=update)}) if update else cell
