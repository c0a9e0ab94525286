"""Real content with a few changes: other bytes, and values of other types, sizes and characters.

The strategies are hypothesis's, so that a failure is shrunk to its smallest change. They know no boundary.
"""

import copy
import json
import sys
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

MOST_CHANGES = 3
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2, 7, 10**9, 2**31, 2**53, 2**63, -(2**63) - 1, 10**30, 10**400, -(10**30), "9" * 400, "9" * 5000),
    *(0.0, -0.5, 0.1, 1e308, 10.0**30, float("nan"), float("inf"), -float("inf"), "1", "-1", "nan", "1e999", "\u0661"),
    *("\u00b2", " 1 ", True),
)
TEXTS: tuple[str, ...] = (
    *("", " ", "a", "true", ".", "../../x", "/dev/null", "a\nb", "\n", "\x00", "a\x1b[31mb", "{}", "[b]", "http://["),
    *("\ud800", "\udfff b", "\u202e", "\u2028", "\U0001f600", "x" * 9_000, "2020-13-45", "{Answer: 9}", "%s"),
)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], [1, "a"], {"": ""}, {"a": None}, {"\ud800": 1})
"""Values that fit nowhere, or nearly."""
PARTS: tuple[bytes, ...] = (
    *(b"", b"\x00", b"\xff", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\n", b"\r", b'"', b"\\", b"\\ud800"),
    *(b"{", b"}", b"[", b"]", b":", b",", b"-", b"0", b"e999", b"9" * 5000, b"[" * 5000, b'{"a":' * 2000, b"nan"),
    *(b"\x00" * 64, b"\xff" * 8, b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"&x *x", b"!!python/x", b"<<: *a", b"? "),
)
"""Bytes that mean something in some format."""


def deep(levels: int) -> Any:
    """Lists within lists."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


_numbers = st.one_of(st.sampled_from(NUMBERS), st.integers(), st.floats())
_texts = st.one_of(st.sampled_from(TEXTS), st.text(st.characters(codec=None), max_size=20))
_others = st.one_of(st.sampled_from(OTHERS).map(copy.deepcopy), st.sampled_from((20, 90, 150)).map(deep))
hostile_values = st.one_of(_numbers, _texts, _others)


def _like(value: Any) -> st.SearchStrategy[Any]:
    """Values of the kind of `value`, which get further than those of another."""
    if isinstance(value, int | float) or (isinstance(value, str) and value.strip("-.").isdigit()):
        return _numbers
    return _texts if isinstance(value, str) else hostile_values


@st.composite
def changed_value(draw: st.DrawFn, seeds: Sequence[Any]) -> Any:
    """One of `seeds`, JSON-like documents, with one to three of its values changed, left out, doubled or added."""
    document = copy.deepcopy(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, MOST_CHANGES))):
        places = list(_places(document))
        if not places:
            return draw(hostile_values)
        holder, key = draw(st.sampled_from(places))
        match draw(st.sampled_from(["like", "like", "like", "other", "remove", "add", "wrap", "swap"])):
            case "like":
                holder[key] = draw(_like(holder[key]))
            case "other":
                holder[key] = draw(hostile_values)
            case "remove":
                del holder[key]
            case "wrap":
                holder[key] = [holder[key]]
            case "swap":
                other, place = draw(st.sampled_from(places))
                holder[key] = copy.deepcopy(other[place])
            case _ if isinstance(holder, dict):
                added = draw(st.sampled_from(["", "x", "\ud800", "kind", "path", f"{key}_"]))
                holder[added] = draw(hostile_values)
            case _:
                holder.insert(key, copy.deepcopy(holder[key]))
    return document


@st.composite
def changed_bytes(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of `seeds` with one to three parts of it changed, left out, doubled, added, or cut off behind."""
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, MOST_CHANGES))):
        begin = draw(st.integers(0, len(content)))
        end = min(len(content), begin + draw(st.sampled_from((0, 1, 1, 2, 4, 16, 200))))
        match draw(st.sampled_from(["replace", "replace", "flip", "double", "cut", "random"])):
            case "replace":
                content = content[:begin] + draw(st.sampled_from(PARTS)) + content[end:]
            case "flip":
                content = content[:begin] + bytes(byte ^ 1 << begin % 8 for byte in content[begin:end]) + content[end:]
            case "double":
                content = content[:end] + content[begin:]
            case "cut":
                content = content[:begin]
            case _:
                content = content[:begin] + draw(st.binary(max_size=8)) + content[end:]
    return content


def json_bytes(document: Any) -> bytes:
    """As JSON, halves of surrogate pairs as escapes."""
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(document, default=str).encode()
    finally:
        sys.set_int_max_str_digits(digits)


def changed_json(seeds: Sequence[Any]) -> st.SearchStrategy[bytes]:
    """JSON texts of documents with changed values, or with changed bytes."""
    values, bytes_ = changed_value(seeds).map(json_bytes), changed_bytes([json_bytes(seed) for seed in seeds])
    # Most changes of bytes are no JSON, and get no further than its parser.
    return st.sampled_from([values, values, values, bytes_]).flatmap(lambda strategy: strategy)


def _places(document: Any) -> Any:
    """Holder and key of every value within."""
    if isinstance(document, dict | list):
        for key in list(document) if isinstance(document, dict) else range(len(document)):
            yield document, key
            yield from _places(document[key])
