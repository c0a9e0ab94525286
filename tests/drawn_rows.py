"""Drawn questions with three options each, as the rows of a table."""

import unicodedata

from hypothesis import strategies as st

NAMES = ("question", "A", "B", "C", "answer")
SIGNS = st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"], exclude_characters="<&")
WORDS = st.text(st.one_of(st.sampled_from("abcdefgh ,;|:()?."), SIGNS), min_size=1, max_size=20).map(
    lambda text: " ".join(unicodedata.normalize("NFC", text).split()) or "x"
)
CELLS = st.one_of(WORDS, WORDS.map(lambda text: f'{text}\n"{text}", {text}'))
ROWS = st.lists(
    st.tuples(WORDS.map("Which of these, {}?".format), CELLS, CELLS, CELLS, st.sampled_from("ABC")),
    min_size=1,
    max_size=6,
).map(lambda rows: [dict(zip(NAMES, row, strict=True)) for row in rows])
