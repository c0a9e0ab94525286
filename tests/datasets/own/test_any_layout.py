"""The same rows, whatever format, encoding, delimiter or shape they are written in, with any characters in them."""

import csv
import gzip
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drawn_rows import NAMES, ROWS
from medexam.datasets import read_file
from table_cases import write_rows

Rows = list[dict[str, str]]


def _csv(rows: Rows, delimiter: str, end: str = "\n", title: str = "") -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator=end).writerows([NAMES, *(row.values() for row in rows)])
    return title + out.getvalue()


def _lines(rows: Rows) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


WRITERS: dict[str, tuple[str, Any]] = {
    **{f"csv {mark!r}": (".csv", lambda rows, mark=mark: _csv(rows, mark, "\n")) for mark in ",;\t|"},
    "csv of Windows with a title": (".csv", lambda rows: _csv(rows, ";", "\r\n", "An exam\r\n")),
    **{name: (f".{name}", lambda rows: _csv(rows, "\t")) for name in ("tsv", "txt")},
    "lines": (".jsonl", _lines),
    "list": (".json", lambda rows: json.dumps(rows, indent=1, ensure_ascii=False)),
}


def _cells(path: Path) -> Rows:
    return [
        row.record if isinstance(row.record, str) else {name: row.record.get(name) or "" for name in NAMES}  # type: ignore[misc]
        for row in read_file(path).rows
    ]


@settings(max_examples=30)
@given(
    ROWS,
    st.sampled_from(list(WRITERS)),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.booleans(),
)
def test_a_text_file_holds_the_same_rows(rows, form, encoding, packed) -> None:
    ending, write = WRITERS[form]
    rows = [{name: cell.encode(encoding, "replace").decode(encoding) for name, cell in row.items()} for row in rows]
    content = write(rows).encode(encoding, "replace")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a{ending}{'.gz' if packed else ''}")
        path.write_bytes(gzip.compress(content) if packed else content)
        assert _cells(path) == rows


@settings(max_examples=20)
@given(ROWS)
def test_parquet_holds_the_same_rows(rows) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert _cells(write_rows(Path(folder, "a.parquet"), rows)) == rows
