"""Damaged and deep files: each reader names the file in one line."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medexam.datasets import read_file
from medexam.errors import DatasetError
from medexam.files import UnreadableError, load_json, parse_json, read_bytes
from medexam.measures import find_benchmark
from medexam.retrievers import load_corpus
from medexam.specs import DatasetSpec

LINE = b'{"id": "a", "content": "c"}\n'


def test_a_packed_file_is_read_whole_and_refused_where_it_is_damaged(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    packed = gzip.compress(content)
    (tmp_path / "whole").write_bytes(packed)
    assert read_bytes(tmp_path / "whole") == content
    (tmp_path / "cut").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "turned").write_bytes(packed[:-12] + bytes(byte ^ 0xFF for byte in packed[-12:]))
    for name in ("cut", "turned"):
        with pytest.raises(UnreadableError, match="is not a complete archive"):
            read_bytes(tmp_path / name)


def test_json_is_read_without_halves_of_pairs() -> None:
    assert parse_json('{"a": ["\\ud800", "\\ud83d\\ude00"]}') == {"a": ["\\ud800", "😀"]}
    with pytest.raises(UnreadableError, match="nested too deep"):
        parse_json("[" * 100_000 + "]" * 100_000)
    with pytest.raises(UnreadableError, match=r"Exceeds the limit \(4300 digits\)"):
        parse_json("9" * 5000)
    with pytest.raises(UnreadableError, match="is not UTF-8"):
        parse_json(b'"\xed\xa0\x80"')


@given(st.lists(st.floats(allow_nan=False)))
def test_numbers_and_odd_texts_are_those_of_the_standard_parser(numbers: list[float]) -> None:
    assert load_json(json.dumps(numbers)) == numbers
    for text in ('{"a": 1, "a": 2}', "[1e400, -0, 12345678901234567890]", '"\\ud800"', "[" * 300 + "]" * 300):
        assert load_json(text) == json.loads(text)


def _bytes(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def _data_set(name: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        spec = DatasetSpec(name=name, path=path)
        return find_benchmark(spec).load(spec)

    return read


READERS: dict[str, Callable[[Path], object]] = {
    **dict.fromkeys(("HEAD_EN.json", "HEAD_EN.json.gz"), _data_set("headqa_v1")),
    "en.parquet": _data_set("headqa_v2"),
    **dict.fromkeys(("own.csv", "own.csv.gz", "own.json", "own.xlsx", "own.parquet"), read_file),
    **dict.fromkeys(("p.jsonl", "p.jsonl.gz", "p.parquet"), load_corpus),
}


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("HEAD_EN.json.gz", _bytes(b"\x1f\x8b\x08" + b"\xff" * 50), "is not a complete archive"),
        ("HEAD_EN.json", _bytes(gzip.compress(LINE * 99)[:-9]), "is not a complete archive"),
        ("HEAD_EN.json", _bytes(b"[" * 200_000), "nested too deep"),
        ("own.csv.gz", _bytes(gzip.compress(b"a,b\n1,2\n" * 99)[:-6]), "is not a complete archive"),
        ("own.xlsx", _bytes(b"PK\x03\x04" + b"\xff" * 99), "is not a complete Excel file"),
        ("p.jsonl.gz", _bytes(gzip.compress(LINE)[:-6]), "is not a complete archive"),
        ("p.jsonl", _bytes(LINE + b"[" * 200_000), "nested too deep"),
        ("p.jsonl", _bytes(b'{"id": %b}\n' % (b"9" * 5000)), "Exceeds the limit"),
        ("own.json", _bytes(b"[" * 200_000), "nested too deep"),
        *(
            (name, _bytes(b"PAR1\x00\xff\xffPAR1"), "is not a complete Parquet file")
            for name in READERS
            if "parquet" in name
        ),
        *((name, Path.mkdir, "") for name in READERS if not name.startswith("p.")),
    ],
)
def test_a_reader_names_the_file_in_one_line(
    name: str, write: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    write(path)
    with pytest.raises(DatasetError) as caught:
        READERS[name](path)
    message = str(caught.value)
    assert name in message
    assert said in message
    assert "\n" not in message
    assert len(message) < 600
