"""The question that a harness keeps with each sample, in the field names of common data sets, or in a prompt."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from medexam.datasets import RowError, parse_exam

_STEMS = ("question", "qtext", "query", "stem", "Question", "problem", "sent1", "input", "prompt", "text")
_OPTIONS = ("options", "choices", "answers", "endings", "mc1_targets")
_OPTION_TEXTS = ("text", "atext", "option", "content", "value")
_COLUMNS = {"op": "abcde", "": "ABCDE", "ending": "01234", "option_": "abcde"}
"""How the names of columns that hold an option each begin -> how they end."""
_IDS = ("key", "id", "question_id", "qid", "ID")
_LETTERED = re.compile(r"(?m)^[ \t]*[(\[]?([A-J])[.):\]\uff0e\uff1a\u3001][ \t]*(?=\S)")
"""The beginning of a line that shows an option."""


def last_question(prompt: Any) -> str | None:
    """Return what was asked: a text, or the last message of a dialogue by its user; None if there is none."""
    if isinstance(prompt, str):
        return prompt
    messages = [message for message in prompt or () if isinstance(message, Mapping)]
    users = [message for message in messages if str(message.get("role")).lower() in ("user", "human")]
    content = users[-1].get("content", users[-1].get("prompt")) if users else None
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else None


def lettered_options(prompt: str) -> tuple[str, ...]:
    """Read the texts of the last options that a prompt shows behind A, B, C... at the beginning of lines; else empty.

    Of the last option only the first line is one: what follows may be a request to answer.
    """
    texts: list[str] = []
    labels = list(_LETTERED.finditer(prompt))
    for place, label in enumerate(labels):
        end = labels[place + 1].start() if place + 1 < len(labels) else len(prompt)
        text = prompt[label.end() : end]
        if label[1] == "A":
            texts = []
        if label[1] == chr(ord("A") + len(texts)):
            texts.append(" ".join(text.split()))
            last = text
    return (*texts[:-1], last.strip().split("\n")[0].strip()) if len(texts) >= 2 else ()


def read_stem(document: Mapping[str, Any]) -> str | None:
    """Read the question's text; None if no field is known to hold it."""
    for name in _STEMS:
        value = document.get(name)
        if isinstance(value, Mapping):
            value = value.get("stem") or value.get("text")
        if isinstance(value, str) and value.strip():
            return value
    return None


def read_option_texts(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Read the texts of the options in their order; empty if no field is known to hold them."""
    inner = document.get("question")
    for record in (document, inner if isinstance(inner, Mapping) else {}):
        for name in _OPTIONS:
            if options := listed_texts(record.get(name)):
                return options
    for opening, endings in _COLUMNS.items():
        values = [document.get(f"{opening}{ending}") for ending in endings]
        texts = [str(value) for value in values if value not in (None, "")]
        if len(texts) >= 2 and values[: len(texts)] == [value for value in values if value not in (None, "")]:
            return tuple(texts)
    return ()


def listed_texts(value: Any) -> tuple[str, ...]:
    """Read the texts of a list of options, of a mapping from labels to texts, or of lists of both; else empty."""
    if isinstance(value, Mapping):
        value = value.get("text") or value.get("choices") or list(value.values())
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    fields = [option if isinstance(option, Mapping) else {"text": option} for option in value]
    texts = [next((each[name] for name in _OPTION_TEXTS if name in each), None) for each in fields]
    has_all = len(texts) >= 2 and all(isinstance(text, str | int | float) for text in texts)
    return tuple(map(str, texts)) if has_all else ()


def read_ids(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Read what may be the question's key, or the key without the name of its data set: year, discipline and number."""
    identifiers = [str(document[name]) for name in _IDS if document.get(name) not in (None, "")]
    try:
        exam = parse_exam(document.get("name"), document.get("category"), document.get("year"))
    except RowError:
        return tuple(identifiers)
    return (*identifiers, *(f"{exam.year}/{exam.discipline}/{identifier}" for identifier in identifiers))
