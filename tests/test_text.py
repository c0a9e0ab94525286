from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from medexam.text import split_sentences


def _texts(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


def test_lines_and_marks_before_no_small_letter_end_sentences() -> None:
    passage = "What is it? It is 3.5 mg of a drug. ¿Qué es? Es fiebre.\n- One item\n\n...\nan end"
    assert _texts(passage) == [
        "What is it?",
        "It is 3.5 mg of a drug.",
        "¿Qué es?",
        "Es fiebre.",
        "- One item",
        "...",
        "an end",
    ]
    assert split_sentences(" \n") == []


def test_a_mark_before_a_small_letter_ends_none() -> None:
    assert _texts("Aprox. tres mg al día. Se trata.") == ["Aprox. tres mg al día.", "Se trata."]
    assert _texts("Dijo «no.» Y se fue.") == ["Dijo «no.»", "Y se fue."]


@given(st.text(alphabet='aB1 .!?\n\t«»"ñÉ', max_size=60))
def test_every_character_that_is_no_space_is_in_one_sentence(text: str) -> None:
    spans = split_sentences(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    held = {place for start, end in spans for place in range(start, end)}
    assert all(place in held for place, character in enumerate(text) if not character.isspace())
