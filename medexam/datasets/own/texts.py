"""What a text within a row of other people's files may be."""

from collections.abc import Mapping

from medexam.inputs import LONGEST_TEXT, UnreadableError, check_length


def check_texts(place: str, value: object) -> None:
    """Raise `UnreadableError` for a text within a row's value that is longer than any of a question."""
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            check_text_length(value, f"{place} holds a text that")
    elif isinstance(value, Mapping):
        for each in value.values():
            check_texts(place, each)
    elif isinstance(value, list):
        for each in value:
            check_texts(place, each)


def check_text_length(text: str, what: str) -> None:
    """Raise `UnreadableError` with the way out for a text that is too long; `what` it is begins the message."""
    try:
        check_length(text, what)
    except UnreadableError as error:
        raise UnreadableError(f"{error}: shorten it, or take it out") from None
