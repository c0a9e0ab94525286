"""Where a reply stands in its context: always a literal part of it, or nowhere."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medexam.signatures import find_span
from table_cases import read_cases

CONTEXT = "Asthma wheezes. He has no fever, so «a cold» is likely. Razón: it was 37.5 °C at home; he has no fever."
WORDS = st.lists(
    st.sampled_from(["fever", "a", "Cold", "no", "razón", "b12", "it's", "is", "—", "the.", "(so", "3,5"]),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("case", read_cases("spans"))
def test_what_is_quoted_is_found_and_nothing_else(case) -> None:
    context = case.get("context", CONTEXT)
    span = find_span(context, case["reply"])
    found = span and [context[span.start : span.end], span.start, span.alignment]
    assert found == case.get("found")


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
