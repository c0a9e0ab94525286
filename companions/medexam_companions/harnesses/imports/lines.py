"""JSON Lines that another harness wrote: an object a line, with the line's number where one is none.

Some harnesses write one JSON list into a file of that name.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medexam.inputs import LONGEST_TEXT, UnreadableError, check_length, open_unpacked, parse_json, read_json
from medexam_companions.harnesses.imports.samples import ResultsError


def read_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield each line of a JSON Lines file, or each entry of a JSON list, as an object.

    Raises `ResultsError` with the line, or the entry, that is none.
    """
    number = 0
    try:
        with open_unpacked(path) as lines:
            is_list = lines.read(1 << 10).lstrip().startswith(b"[")
        if is_list:
            for number, record in enumerate(read_json(path), start=1):
                yield _check(record, f"{path}, entry {number}")
            return
        with open_unpacked(path) as lines:
            for number, line in enumerate(iter(lambda: lines.readline(LONGEST_TEXT + 1), b""), start=1):
                check_length(line, "it")
                if line.strip():
                    yield _check(parse_json(line), f"{path}, line {number}")
    except (OSError, UnreadableError) as error:
        raise ResultsError(f"{path}, line {number}: {error}; was the file copied whole?") from None


def _check(record: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise ResultsError(f"{place}: is no JSON object")
    return record
