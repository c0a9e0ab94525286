"""What a text is where it enters the product and leaves it: any text comes in, and only what can be written goes out.

JSON and YAML can hold halves of surrogate pairs, which are no characters: no file, terminal or database takes them.
They are replaced where text enters, by the escape that a reader sees, so that nothing raises where text is written.
Sentences are cut by a rule of punctuation that knows no abbreviations: "Dr. Smith" is cut in two.
"""

import difflib
import re
from collections.abc import Iterable
from typing import TypeVar

Value = TypeVar("Value")

_LONE = re.compile("[\ud800-\udfff]")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and new line, marks that turn the direction of writing, and halves of pairs."""
_BORDER = re.compile("\\n\\s*|(?<=[.!?\u2026])[\"'\u00bb\u201d)]*\\s+")
_LONGEST_LINE = 2000
"""Characters of a message; a list of all ways out has some hundred."""
_FIRST = re.compile(r"\w")


def nearest(written: str, known: Iterable[str], *, most: int = 2, alike: float = 0.6) -> str:
    """`a or b`: what somebody may have meant, at most so many names; empty if none is at least so alike (0 to 1)."""
    return " or ".join(difflib.get_close_matches(written, dict.fromkeys(known), n=most, cutoff=alike))


def writable(value: Value) -> Value:
    """A text, or the texts in lists and mappings, with each half of a surrogate pair as its escape.

    What holds none is returned as it is.
    """
    if isinstance(value, str):
        # One pass in C decides of nearly all texts.
        return value if value.isascii() else _LONE.sub(_escape, value)  # type: ignore[return-value]
    if isinstance(value, dict):
        return {writable(key): writable(each) for key, each in value.items()}  # type: ignore[return-value]
    if isinstance(value, list | tuple):
        kept = [writable(each) for each in value]
        return kept if isinstance(value, list) else tuple(kept)  # type: ignore[return-value]
    return value


def visible(text: str) -> str:
    """The text for a terminal: what would move its cursor, colour it or reverse it stands as an escape."""
    return _UNSEEN.sub(_escape, text)


def one_line(text: str) -> str:
    """A message as one line of a terminal; of a very long one, the beginning and the end."""
    line = visible(" ".join(part.strip() for part in text.splitlines() if part.strip()))
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"


def split_sentences(text: str) -> list[tuple[int, int]]:
    """First character and the one after the last of each sentence, without the spaces around it, in order.

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


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
