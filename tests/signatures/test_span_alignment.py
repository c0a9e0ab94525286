"""Where a reply stands in its context: always a literal part of it, or nowhere."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medexam.signatures import find_span

CONTEXT = "Asthma wheezes. He has no fever, so «a cold» is likely. Razón: it was 37.5 °C at home; he has no fever."
WORDS = st.lists(
    st.sampled_from(["fever", "a", "Cold", "no", "razón", "b12", "it's", "is", "—", "the.", "(so", "3,5"]),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize(
    ("reply", "found", "alignment"),
    [
        ("He has no fever", "He has no fever", "literal"),
        ('  "He has no fever." ', "He has no fever", "literal"),
        ("«a cold»", "a cold", "literal"),
        ("**it was 37.5 °C**", "it was 37.5 °C", "literal"),
        (CONTEXT, CONTEXT.rstrip("."), "literal"),
        ("he has NO fever", "He has no fever", "aligned"),
        ("has no\n  fever so a cold", "has no fever, so «a cold", "aligned"),
        ("RAZÓN it was", "Razón: it was", "aligned"),
        (
            "The text says that he has no fever, so a cold is likely",
            "He has no fever, so «a cold» is likely",
            "aligned",
        ),
        ("likely. Razo\u0301n: it was", "likely. Razón: it was", "aligned"),
        ("Because has no fever today", "has no fever", "aligned"),
        ("Asthma WHEEZES", "Asthma wheezes", "aligned"),
    ],
)
def test_what_is_quoted_is_found(reply, found, alignment) -> None:
    span = find_span(CONTEXT, reply)
    assert span is not None
    assert (CONTEXT[span.start : span.end], span.alignment) == (found, alignment)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " «» ...",
        "Influenza",
        "He fell from a horse",
        "fever cold",
        "no fever, and then the patient went on to live another day",
        "sthm",
        "h",
        "The",
    ],
)
def test_what_is_not_quoted_is_not_found(reply) -> None:
    assert find_span(CONTEXT, reply) is None


def test_a_context_without_words_holds_nothing() -> None:
    assert [find_span(context, "fever") for context in ("", "   ", "...")] == [None] * 3


def test_the_first_occurrence_is_taken() -> None:
    assert find_span(CONTEXT, "has no fever").start == CONTEXT.index("has no fever")
    assert find_span(CONTEXT, "HAS NO FEVER").start == CONTEXT.index("has no fever")


def test_a_word_inside_another_is_passed_over() -> None:
    span = find_span("Nothing else. No fever.", "No")
    assert (span.start, span.end) == (14, 16)


def test_a_reply_cut_inside_a_word_loses_that_word() -> None:
    span = find_span(CONTEXT, "He has no fever, so «a co")
    assert (CONTEXT[span.start : span.end], span.alignment) == ("He has no fever, so «a", "aligned")


def test_a_decomposed_context_is_quoted_as_it_is() -> None:
    context = unicodedata.normalize("NFD", "La razón está en la exploración física.")
    span = find_span(context, "la razón está en la exploración")
    assert context[span.start : span.end] == unicodedata.normalize("NFD", "La razón está en la exploración")


@given(context=WORDS, reply=WORDS)
def test_what_is_found_is_a_part_of_the_context(context, reply) -> None:
    text = " ".join(context)
    span = find_span(text, " ".join(reply))
    if span is not None:
        assert 0 <= span.start < span.end <= len(text)
        assert re.search(r"\w", text[span.start : span.end])
        if span.alignment == "literal":
            assert text[span.start : span.end] in " ".join(reply)


@given(words=WORDS, data=st.data())
def test_any_run_of_whole_words_is_found(words, data) -> None:
    begin = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(begin + 1, len(words)))
    text, quoted = " ".join(words), " ".join(words[begin:end])
    span = find_span(text, quoted)
    if not re.search(r"\w", quoted):
        assert span is None
        return
    assert span.alignment == "literal"
    kept = text[span.start : span.end]
    assert kept in quoted
    assert re.findall(r"\w+", kept) == re.findall(r"\w+", quoted)
