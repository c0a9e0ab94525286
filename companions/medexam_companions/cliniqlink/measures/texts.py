"""From what a model returned to the text that is scored, and the form in which closed answers are compared.

This knows neither formats nor options.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

Reply = str | Sequence[object] | Mapping[str, object]
"""A text, an object with `generated_text` or `text`, or a list of these."""

_CLOSED_REASONING = re.compile(r"<think>.*?</think>", re.IGNORECASE | re.DOTALL)
_ASSISTANT = re.compile(r"\bassistant\b", re.IGNORECASE)
_SPACED = str.maketrans(dict.fromkeys("–—_/\\[](){};-", " "))  # noqa: RUF001
_KEPT = frozenset("%,:")


def reply_text(reply: Reply) -> str:
    """Return the text of a reply, trimmed and without its closed `<think>` parts; an unclosed one stays.

    A list is joined by a space; an object without both fields is empty. Raises `TypeError` for anything else.
    """
    if not isinstance(reply, str | Mapping | Sequence) or isinstance(reply, bytes):
        raise TypeError(type(reply).__name__)
    return _CLOSED_REASONING.sub("", _unwrap(reply)).strip()


def _unwrap(part: object) -> str:
    """Join the text within lists and objects, however deep, as pipelines return them."""
    if isinstance(part, Mapping):
        return str(part.get("generated_text") or part.get("text") or "").strip()
    if isinstance(part, Sequence) and not isinstance(part, str | bytes):
        return " ".join(map(_unwrap, part)).strip()
    return str(part).strip()


def drop_assistant(text: str) -> str:
    """Delete the word `assistant`, which the released `submit.py` deletes before it stores a reply.

    The scorer itself does not do this.
    """
    return _ASSISTANT.sub("", text).strip()


@lru_cache(maxsize=4096)
def normalise_answer(text: str) -> str:
    """Bring a text into the form in which options and closed answers are compared.

    Compatibility decomposition, no combining marks, case folded; dashes, slashes, brackets, underscores and semicolons
    are spaces; of the rest only letters, numbers, marks, whitespace and `%,:` stay. So `1.5 mg` is `15 mg`, and `<5%`
    is `>5%`.
    """
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    spaced = plain.casefold().translate(_SPACED)
    characters = (c for c in spaced if c in _KEPT or c.isspace() or unicodedata.category(c)[0] in "LNM")
    return " ".join("".join(characters).split())


def is_echo(question: str, text: str) -> bool:
    """Return whether a reply's text is the question, but for case and surrounding whitespace."""
    return question.strip().lower() == text.strip().lower()
