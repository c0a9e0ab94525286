"""Marks that tell the right option, and spans that still stand where they did without them."""

import pytest

from medexam.datasets import SpanAnswer, SpanItem
from medexam.datasets.telling_marks import find_marks


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("It is a cold (answer 4 correct).", "It is a cold."),
        ("Es un resfriado (respuesta 4 correcta); no asma (respuestas 1 y 2 falsas).", "Es un resfriado; no asma."),
        ("Asma (R3 incorrecta) y tos (opción 2: falsa).", "Asma y tos."),
        ("Tos (respuesta correcta 5) [5 correcta] (correcta la 3).", "Tos (correcta la 3)."),
        ("Dosis (5 mg) y vitamina (B 12), resultado correcto (en 3 días).",) * 2,
    ],
)
def test_marks_are_found_and_other_brackets_are_not(text, rest) -> None:
    for start, end in reversed(find_marks(text)):
        text = text[:start] + text[end:]
    assert text == rest


def test_answers_keep_their_place() -> None:
    context = "Tos (respuesta 1 falsa). Es un resfriado (respuesta 4 correcta) claro. Fin."
    start, text = context.index("Es un"), "Es un resfriado (respuesta 4 correcta) claro"
    item = SpanItem("1", context, "¿Qué NO es?", (SpanAnswer(text, start),)).without_marks()
    (answer,) = item.answers
    assert (item.context, answer.text) == ("Tos. Es un resfriado claro. Fin.", "Es un resfriado claro")
    assert item.context.startswith(answer.text, answer.start)
    assert item.negated
    options = SpanItem("2", "x", "Tos. ¿Qué es? No es asma @@ Nunca es tos", ())
    assert not options.negated
    whole = SpanItem("3", "Tos (respuesta 1 falsa).", "q", (SpanAnswer("(respuesta 1 falsa)", 4),))
    assert whole.without_marks().context == "Tos (respuesta 1 falsa)."
