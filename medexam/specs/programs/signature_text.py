"""The fields that a DSPy signature in a spec names, read without DSPy."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

QUESTION_FIELDS: Mapping[str, str] = {
    "question": "str",
    "stem": "str",
    "options": "str",
    "option_numbers": "list[int]",
    "context": "str",
    "language": "str",
}
"""The fields that every question has, with their types."""
_OPENING, _CLOSING = "([{", ")]}"


class SignatureText(NamedTuple):
    """Name of each field -> its type as it is written, `str` if none is."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@lru_cache(maxsize=1024)
def read_signature(text: str) -> SignatureText:
    """Read a signature such as `question, options -> answer: int`; raises `ValueError` if it is none."""
    inputs, arrow, outputs = text.partition("->")
    signature = SignatureText(dict(_fields(inputs)), dict(_fields(outputs)))
    if not arrow or not signature.inputs or not signature.outputs:
        raise ValueError(f"{text!r} is not a signature, such as 'question, options -> answer: int'")
    if twice := signature.inputs.keys() & signature.outputs.keys():
        raise ValueError(f"{text!r} reads and writes {', '.join(sorted(twice))}: give the output a name of its own")
    return signature


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for part in _split(text):
        name, _, kind = part.partition(":")
        if not name.strip().isidentifier():
            raise ValueError(f"{part.strip()!r} is not a field of a signature: write names with commas between them")
        yield name.strip(), kind.strip() or "str"


def _split(text: str) -> Iterator[str]:
    """Yield the parts between the commas that stand in no bracket and no quotes."""
    part, depth, quote = "", 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _OPENING + _CLOSING:
            depth += 1 if character in _OPENING else -1
        elif character == "," and not depth:
            yield part
            part = ""
            continue
        part += character
    if part.strip():
        yield part
