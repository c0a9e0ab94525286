"""Contexts cut into sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medexam.signatures import split_sentences


@pytest.mark.parametrize(
    ("context", "sentences"),
    [
        ("", []),
        (" \n ", []),
        ("One only", ["One only"]),
        ("It is hot. He faints! Why? So.", ["It is hot.", "He faints!", "Why?", "So."]),
        ("  It is.  So be it.  ", ["It is.", "So be it."]),
        ("¿Qué es? ¡Nada! «Éste es» así.", ["¿Qué es?", "¡Nada!", "«Éste es» así."]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("The dose is 3.5 mg. and more of it.", ["The dose is 3.5 mg. and more of it."]),
        ("Un caso… Ándale.", ["Un caso…", "Ándale."]),
        ("- one\n- two\n\nThree", ["- one", "- two", "Three"]),
        ("Take 5. 6 is too much.", ["Take 5. 6 is too much."]),
    ],
)
def test_sentences(context, sentences) -> None:
    assert [context[start:end] for start, end in split_sentences(context)] == sentences


@given(st.text(alphabet=st.one_of(st.sampled_from(" .!?…\n\t\"'«»()AbÉé1"), st.characters()), max_size=80))
def test_together_they_hold_all_that_is_no_space(context) -> None:
    spans = split_sentences(context)
    covered = 0
    for start, end in spans:
        assert covered <= start < end
        assert not context[covered:start].strip()
        assert context[start:end] == context[start:end].strip()
        covered = end
    assert not context[covered:].strip()
