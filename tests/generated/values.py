"""Strategies of what may come in: by a JSON schema, like an example with one part of any kind, and bytes of no form."""

import copy
import json
from functools import reduce
from typing import Any

from hypothesis import strategies as st

NUMBERS = (0, -1, 7, 2**31, 2**53, -(2**63) - 1, 10**30, 10**400, -0.5, 1e308, float("nan"), float("inf"), True)
TEXTS = (
    *("", " ", ".", "../../x", "/dev/null", "a\nb", "\x00", "a\x1b[31mb", "{}", "[b]", "http://[", "\ud800", "\u202e"),
    *("\u2028", "\U0001f600", "x" * 9_000, "9" * 5_000, "2020-13-45", "{Answer: 9}", "%s", "<script>alert(1)</script>"),
    *("| a |", "\n\n# a", "![x](http://x)", "`", "\\", "nan", "1e999", "\u0661"),
)
OTHERS = (
    None,
    [],
    {},
    [None],
    {"": ""},
    {"\ud800": 1},
    *(reduce(lambda held, _: [held], range(n), 1) for n in (20, 150)),
)
names = st.one_of(st.lists(st.sampled_from(TEXTS), max_size=3).map("".join), st.text(max_size=20))
"""Texts that somebody may take for a name."""
anything = st.one_of(
    st.sampled_from(NUMBERS),
    st.integers(),
    st.floats(),
    st.sampled_from(TEXTS),
    st.text(st.characters(codec=None), max_size=20),
    st.sampled_from(OTHERS).map(copy.deepcopy),
)


def by_schema(schema: dict[str, Any], whole: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a JSON schema allows, with a few fields of each object; `whole` holds its definitions."""
    if "$ref" in schema:
        return st.deferred(lambda: by_schema(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole))
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return st.one_of([by_schema(each, whole) for each in choices])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    match schema.get("type"):
        case "object" if properties := schema.get("properties"):
            made = {name: by_schema(each, whole) for name, each in properties.items()}
            few = st.lists(st.sampled_from([*made]), max_size=3, unique=True)
            needed = schema.get("required", [])
            return few.flatmap(lambda given: st.fixed_dictionaries({name: made[name] for name in [*needed, *given]}))
        case "array":
            return st.lists(by_schema(schema.get("items") or {}, whole), max_size=3)
    return _PLAIN.get(schema.get("type", ""), anything)


_PLAIN = {"integer": st.integers(), "number": st.floats(), "boolean": st.booleans(), "string": names, "null": st.none()}


def near(value: Any) -> st.SearchStrategy[Any]:
    """Values like an example, of which one part is anything, is not there, or is there twice."""
    ways: list[st.SearchStrategy[Any]] = [anything]
    if isinstance(value, dict):
        for key, held in value.items():
            rest = {other: each for other, each in value.items() if other != key}
            ways += [near(held).map(lambda new, key=key: {**value, key: new}), st.just(rest)]
    elif isinstance(value, list):
        for n, held in enumerate(value):
            ways += [near(held).map(lambda new, n=n: [*value[:n], new, *value[n + 1 :]])]
            ways += [st.sampled_from([value[:n] + value[n + 1 :], [*value, held]])]
    return st.one_of(ways)


def spoilt(content: bytes) -> st.SearchStrategy[bytes]:
    """Bytes of which a part is cut off or is other bytes, or that are no such file at all."""
    part = st.one_of(
        st.binary(max_size=8), st.sampled_from([b"\x00" * 64, b"\xff\xfe", b'"', b"[" * 5000, b"9" * 5000])
    )
    place = st.integers(0, len(content))
    return st.one_of(
        place.map(lambda end: content[:end]),
        st.builds(lambda a, b, new: content[: min(a, b)] + new + content[max(a, b) :], place, place, part),
        st.builds(lambda at, new: content[:at] + new + content[at + len(new) :], place, part),
        st.binary(max_size=60),
    )


def to_json(value: Any) -> bytes:
    """As JSON, halves of surrogate pairs as escapes."""
    return json.dumps(value, default=str).encode()


def lines(rows: Any) -> bytes:
    """As JSON Lines, if they are a list."""
    return b"".join(to_json(row) + b"\n" for row in (rows if isinstance(rows, list) else [rows]))


def json_near(value: Any) -> st.SearchStrategy[bytes]:
    """JSON texts of values like an example, and texts that are nearly one."""
    return st.one_of(near(value).map(to_json), near(value).map(to_json), spoilt(to_json(value)))
