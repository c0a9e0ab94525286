"""Whatever YAML can hold is a value or one line that names the place."""

import re

import pytest

from medexam.errors import SpecError
from medexam.specs import build_cells, parse_overrides, parse_yaml


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "x.yaml, line 3: key 'a' occurs twice, first in line 1"),
        ("a: {b: 1, b: 2}\n", "x.yaml, line 1: key 'b' occurs twice, first in line 1"),
        ("5: a\n", "x.yaml, line 1: a key must be a text; put it in quotes"),
        ("~: a\n", "x.yaml, line 1: a key must be a text; put it in quotes"),
        ("2020-01-01: a\n", "x.yaml, line 1: a key must be a text; put it in quotes"),
        ("? [a, b]\n: c\n", "x.yaml, line 1: a key must be a text; put it in quotes"),
        ("a: 1\nb: 2020-13-45\n", "x.yaml: a value cannot be read: month must be in 1..12"),
        (f"a: {'9' * 5000}\n", "x.yaml: a value cannot be read: Exceeds the limit"),
        ("a: b\x00c\n", "x.yaml: not YAML: "),
        ('a: 1\nb: "c\\0d"\n', "x.yaml, line 2: a text holds a null character"),
        ("a: !!python/object:os.system x\n", "x.yaml, line 1: not YAML: could not determine a constructor"),
        ("a: *b\n", "x.yaml, line 1: not YAML: found undefined alias"),
        ("a: 1\n---\nb: 2\n", "x.yaml, line 2: not YAML: but found another document"),
    ],
)
def test_what_no_spec_is_is_said_in_one_line(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        parse_yaml(text, "x.yaml")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_aliases_and_merged_mappings_of_a_usual_size_are_read() -> None:
    text = "one: &one {a: 1, b: 2}\ntwo: {<<: *one, b: 3}\nthree: [*one, *one]\n"
    assert parse_yaml(text, "x") == {"one": {"a": 1, "b": 2}, "two": {"a": 1, "b": 3}, "three": [{"a": 1, "b": 2}] * 2}
    assert parse_yaml('a: "\\ud800"\n', "x") == {"a": "\\ud800"}
    assert parse_yaml("", "x") is None


def test_an_error_repeats_no_more_than_a_line_of_a_value() -> None:
    with pytest.raises(SpecError) as caught:
        build_cells({"name": "x" * 10_000}, {})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "signature",
    ["question, options -> answer: int", 'question: str, options: list[str] -> answer: Literal["a", "b"], sure: bool'],
)
def test_a_signature_on_the_command_line_is_taken_whole(signature) -> None:
    assert parse_overrides([f"program.signature={signature}"]) == {"program.signature": signature}
    assert parse_overrides([f"program.signature='{signature}'"]) == {"program.signature": signature}
