"""Marks that tell the right option, and spans that still stand where they did without them."""

import pytest

from medexam.datasets import SpanAnswer, SpanItem


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
    assert SpanItem("1", text, "q", ()).without_marks().context == rest


def test_answers_keep_their_place() -> None:
    context = "Tos (respuesta 1 falsa). Es un resfriado (respuesta 4 correcta) claro. Fin."
    start, text = context.index("Es un"), "Es un resfriado (respuesta 4 correcta) claro"
    item = SpanItem("1", context, "¿Qué NO es?", (SpanAnswer(text, start),)).without_marks()
    (answer,) = item.answers
    assert (item.context, answer.text) == ("Tos. Es un resfriado claro. Fin.", "Es un resfriado claro")
    assert item.context.startswith(answer.text, answer.start)
    behind = SpanItem("2", "Tos (respuesta 1 falsa), y fiebre", "q", (SpanAnswer(", y fiebre", 23),)).without_marks()
    assert behind.answers == (SpanAnswer(", y fiebre", 3),)
    whole = SpanItem("3", "Tos (respuesta 1 falsa).", "q", (SpanAnswer("(respuesta 1 falsa)", 4),))
    assert whole.without_marks().context == "Tos (respuesta 1 falsa)."


@pytest.mark.parametrize(
    ("question", "negated"), [("¿Qué NO es?", True), ("Tos. ¿Qué es? No es asma @@ Nunca es tos", False)]
)
def test_a_question_is_negated_without_its_options(question, negated) -> None:
    assert SpanItem("2", "x", question, ()).negated is negated
