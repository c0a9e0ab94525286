"""JSON Lines that another harness wrote: an object a line, with the line's number where one is none."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medexam.experiments.imports.samples import ResultsError
from medexam.inputs import LONGEST_TEXT, UnreadableError, check_length, open_unpacked, parse_json


def read_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """Each line of a JSON Lines file as an object; raises `ResultsError` with the line that is none."""
    number = 0
    try:
        with open_unpacked(path) as lines:
            for number, line in enumerate(iter(lambda: lines.readline(LONGEST_TEXT + 1), b""), start=1):
                check_length(line, "it")
                if not line.strip():
                    continue
                record = parse_json(line)
                if not isinstance(record, Mapping):
                    raise ResultsError(f"{path}, line {number}: is no JSON object")
                yield record
    except (OSError, UnreadableError) as error:
        raise ResultsError(f"{path}, line {number}: {error}; was the file copied whole?") from None
