"""What a text is where it enters the product and leaves it: any text comes in, and only what can be written goes out.

JSON and YAML can hold halves of surrogate pairs, which are no characters: no file, terminal or database takes them.
They are replaced where text enters, by the escape that a reader sees, so that nothing raises where text is written.
Keys and passwords go out in no message: those that the process knows, and what looks like one.
Sentences are cut by a rule of punctuation that knows no abbreviations: "Dr. Smith" is cut in two.
"""

import difflib
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TypeVar
from urllib.parse import quote

from pydantic_core import to_json

Value = TypeVar("Value")

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters but tab and new line, marks that turn the direction of writing, halves of pairs, and what is no
character."""
_HIDDEN = "[hidden]"
_ADDRESS = re.compile(r"(?<=[a-z]):(/{1,3})(?:[^\s/?#\"'<>]*|[^\s/@:\"'<>]+:(?!\d+/)[^\s\"'<>]*)@", re.IGNORECASE)
"""User and password in an address; a password may hold slashes that should have been escaped."""
_QUERY = re.compile(
    r"([?&;][\w.-]*(?:key|token|secret|passw|pwd|auth|sig|credential)[\w.-]*=)[^\s&#\"'<>]+", re.IGNORECASE
)
"""A key among the parameters of an address."""
_KEY = re.compile(
    r"\b(?:sk-[\w-]{16,}|hf_\w{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abpr]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
    r"|(?<=\bBearer )[^\s\"']{8,}|-----BEGIN [A-Z ]*PRIVATE KEY",
    re.IGNORECASE,
)
"""The keys of the usual providers, tokens of the web, and private keys."""
SECRET_NAME = re.compile(
    r"(?i)(^|[_-])(api-?key|key|secret|passw(or)?d|authorization|bearer|credentials?|(?<!eos_)(?<!bos_)(?<!pad_)token)$"
)
"""How a setting, or a variable of the environment, is called that holds a secret."""
_SHORTEST = 6
"""Characters of a secret that is looked for by its value; a shorter one would be found in every second word."""
_remembered: set[str] = set()
"""Secrets that this process read from files, variables and addresses."""
_BORDER = re.compile("\\n\\s*|(?<=[.!?\u2026])[\"'\u00bb\u201d)]*\\s+")
_LONGEST_LINE = 2000
"""Characters of a message; a list of all ways out has some hundred."""
_FIRST = re.compile(r"\w")


def nearest(word: str, names: Iterable[str], *, most: int = 2) -> str:
    """Suggest `a or b`: what somebody may have meant, `most` names at most; empty if none is alike."""
    return " or ".join(difflib.get_close_matches(word, dict.fromkeys(names), n=most))


def writable(value: Value) -> Value:
    """Return a text, or the texts in lists and mappings, with each half of a surrogate pair as its escape.

    What holds none is returned as it is.
    """
    if isinstance(value, str):
        # One pass in C decides of nearly all texts.
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()  # type: ignore[return-value]
    if isinstance(value, dict | list | tuple):
        # So does one outside of Python of nearly all values: it refuses halves of pairs.
        with suppress(ValueError):
            to_json(value, serialize_unknown=True)
            return value
    if isinstance(value, dict):
        return {writable(key): writable(entry) for key, entry in value.items()}  # type: ignore[return-value]
    if isinstance(value, list | tuple):
        texts = [writable(entry) for entry in value]
        return texts if isinstance(value, list) else tuple(texts)  # type: ignore[return-value]
    return value


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun: `1 run`, `2,000 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def visible(text: str) -> str:
    """Write the text for a terminal: what would move its cursor, colour it or reverse it stands as an escape."""
    return _UNSEEN.sub(_escape, text)


def shorten(text: str, most: int) -> str:
    """Cut a text off behind `most` characters, and mark that it was."""
    return text if len(text) <= most else f"{text[:most]} […]"


def one_line(text: str) -> str:
    """Write a message as one line of a terminal, without secrets; of a very long one, the beginning and the end."""
    line = visible(" ".join(part.strip() for part in hide_secrets(text).splitlines() if part.strip()))
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"


def print_notice(line: str) -> None:
    """Tell the user in one line on standard error."""
    sys.stderr.write(f"medexam: {one_line(line)}\n")


def remember_secret(value: str) -> None:
    """Have `hide_secrets` hide this value wherever it stands, as it is and as addresses write it."""
    _remembered.update((value, quote(value, safe="")))


def hide_address(address: str) -> str:
    """Return the address for a message; from here on `hide_secrets` hides its password, whatever characters that
    holds.
    """
    user = address.partition("://")[2].rpartition("@")[0]
    remember_secret(user.partition(":")[2])
    return hide_secrets(address)


def hide_secrets(text: str) -> str:
    """Hide in the text what is known to be secret or looks so: keys, and what addresses hold of users and keys.

    Known are the values that were remembered and those of environment variables that are called like secrets.
    """
    secrets = [value for name, value in os.environ.items() if SECRET_NAME.search(name)]
    # A message may show a line of a value alone, or its end of line as an escape.
    lines = {line.strip() for value in (*_remembered, *secrets) for line in value.splitlines()}
    for line in sorted(lines, key=len, reverse=True):
        if len(line) >= _SHORTEST:
            text = text.replace(line, _HIDDEN)
    return hide_lookalikes(text)


def hide_lookalikes(text: str) -> str:
    """Hide in the text what looks like a secret, whether it is known or not."""
    text = _ADDRESS.sub(rf":\1{_HIDDEN}@", text)
    return _KEY.sub(_HIDDEN, _QUERY.sub(rf"\1{_HIDDEN}", text))


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Find the first character and the one after the last of each sentence, without the spaces around it, in order.

    A line ends a sentence, and so does a full stop, question or exclamation mark before a word that does not begin with
    a small letter. Together they hold every character that is no space.
    """
    borders = [0]
    for border in _BORDER.finditer(text):
        following = _FIRST.search(text, border.end())
        if "\n" in border[0] or (following is not None and not following[0].islower()):
            borders.append(border.end())
    spans = []
    for place, begins in enumerate(borders):
        part = text[begins : borders[place + 1] if place + 1 < len(borders) else len(text)]
        if part.strip():
            start = begins + len(part) - len(part.lstrip())
            spans.append((start, start + len(part.strip())))
    return spans


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def option_letters(options: Sequence[str]) -> list[str]:
    """Return the letter that each option stands behind: `A` to `Z`, then the characters that follow `Z` in ASCII."""
    return [chr(ord("A") + place) for place in range(len(options))]


def plain_letters(text: str) -> str:
    """Write small letters without accents."""
    apart = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize(
        "NFC", "".join(character for character in apart if character not in "\u0300\u0301\u0302\u0308\u0303")
    )
