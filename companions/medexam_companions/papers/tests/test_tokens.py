"""Tokens as table 3 of the HEAD-QA v1 paper counts them."""

import pytest

from medexam_companions.papers import count_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Los linfocitos:", 3),
        ("¿Qué trastorno podría presentar? (DSM-5):", 10),
        ("dosis de 70mg/dl, p.ej.", 7),
        ("auto-inmune y 3,5 %", 6),
        ("la hepatitis A.  Otra", 5),
        ("HDL/LDL: 1/2.", 6),
        ("etc.", 1),
    ],
)
def test_tokens_are_those_of_the_paper(text, tokens) -> None:
    assert count_tokens(text) == tokens
