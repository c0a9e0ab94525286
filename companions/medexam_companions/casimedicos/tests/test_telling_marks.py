"""Marks that tell the right option, spans that still stand where they did without them, and scores of a set."""

import pytest

from medexam_companions.casimedicos import SpanAnswer, SpanItem, mean_scores, without_marks


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
    assert without_marks(SpanItem("1", text, "q", ())).context == rest


def test_answers_keep_their_place() -> None:
    context = "Tos (respuesta 1 falsa). Es un resfriado (respuesta 4 correcta) claro. Fin."
    start, text = context.index("Es un"), "Es un resfriado (respuesta 4 correcta) claro"
    item = without_marks(SpanItem("1", context, "¿Qué NO es?", (SpanAnswer(text, start),)))
    (answer,) = item.answers
    assert (item.context, answer.text) == ("Tos. Es un resfriado claro. Fin.", "Es un resfriado claro")
    assert item.context.startswith(answer.text, answer.start)
    behind = without_marks(SpanItem("2", "Tos (respuesta 1 falsa), y fiebre", "q", (SpanAnswer(", y fiebre", 23),)))
    assert behind.answers == (SpanAnswer(", y fiebre", 3),)
    whole = SpanItem("3", "Tos (respuesta 1 falsa).", "q", (SpanAnswer("(respuesta 1 falsa)", 4),))
    assert without_marks(whole).context == "Tos (respuesta 1 falsa)."


def test_a_set_has_percentages() -> None:
    pairs = [("biopsia", ["Biopsia."]), ("biopsia", ["biopsia intestinal", "nada"]), ("", ["nada"])]
    assert [*mean_scores(pairs).values()] == pytest.approx([3, 100 / 3, 100 * (1 + 2 / 3) / 3, 200 / 3, 50])
    assert [*mean_scores([("la tos", ["tos"])], "spanish").values()] == [1] + [100.0] * 4
    assert [*mean_scores([]).values()] == [0, None, None, None, None]
