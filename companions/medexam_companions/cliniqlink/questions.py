"""The questions as a participant's container gets them: the seven files without what is expected."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medexam.errors import DatasetError
from medexam.inputs import UnreadableError, read_json
from medexam_companions.harnesses.imports.words.submission import OUTPUTS

_SHOWN: Mapping[str, frozenset[str]] = {
    "multiple_choice": frozenset({"options"}),
    "list": frozenset({"options"}),
    "short_inverse": frozenset({"false_answer"}),
    "multi_hop_inverse": frozenset({"answer", "reasoning"}),
}
"""Format -> fields that are shown beside the question; the inverse formats show a wrong answer."""
_ALWAYS = frozenset({"question", "type", "id", "source"})
"""Fields of every format; `source` names the paragraph, not its text."""


def write_shown_questions(data: Path, folder: Path) -> dict[str, int]:
    """Write the seven files of `data` into `folder`, without what is expected; return how many each format has.

    A format without a file has none. Raises `DatasetError` if a file cannot be read or `data` holds none.
    """
    counts: dict[str, int] = {}
    for group, names in OUTPUTS.items():
        name = names[-1]
        if not (data / name).is_file():
            continue
        items = _read_items(data / name)
        fields = _ALWAYS | _SHOWN.get(group, frozenset())
        printed_items = [{field: value for field, value in item.items() if field in fields} for item in items]
        (folder / name).write_text(json.dumps(printed_items, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        counts[group] = len(printed_items)
    if not counts:
        raise DatasetError(f"{data}: holds none of {', '.join(names[-1] for names in OUTPUTS.values())}")
    return counts


def _read_items(path: Path) -> list[dict[str, Any]]:
    try:
        document = read_json(path)
    except (OSError, UnreadableError) as error:
        raise DatasetError(f"{path}: cannot be read ({error}): copy it again") from None
    items = document.get("inputs") if isinstance(document, dict) else document
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise DatasetError(f"{path}: is no list of questions")
    return items
