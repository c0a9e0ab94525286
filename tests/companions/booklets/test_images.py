"""Which picture a question is linked to, in the words of ten years of exams."""

import pytest

from medexam.companions.booklets.images import mentions_picture, parse_links


@pytest.mark.parametrize(
    ("stem", "numbers"),
    [
        ("Pregunta vinculada a la imagen nº1 Hombre de 40 años", (1,)),
        ("Pregunta vinculada a la imagen n.º 12. Mujer de 31 años", (12,)),
        ("Pregunta vinculada a la imagen n° 3", (3,)),
        ("Pregunta vinculada a la imagen núm. 7", (7,)),
        ("PREGUNTA ASOCIADA A LA IMAGEN 25. Niño de 12 años", (25,)),
        ("Pregunta asociada a la imagen número 4:", (4,)),
        ("Preguntas relacionadas con la imagen 9", (9,)),
        ("Pregunta vinculada a las imágenes nº 5 y nº 6. Varón", (5, 6)),
        ("¿Cuál es el diagnóstico (ver imagen 8)?", (8,)),
        ("Hombre de 40 años con dolor", ()),
        ("El trastorno de la imagen corporal en 3 pacientes", ()),
    ],
)
def test_links(stem, numbers) -> None:
    assert parse_links(stem) == numbers


@pytest.mark.parametrize(
    ("stem", "speaks"),
    [
        ("que se muestra en la imagen adjunta. Dolor", True),
        ("que puede observarse en la figura. ¿Cuál", True),
        ("radiografía de ambas manos (ver imagen).", True),
        ("la siguiente fotografía", True),
        ("Trastorno de la imagen corporal", False),
        ("técnicas de imagen", False),
    ],
)
def test_mentions(stem, speaks) -> None:
    assert mentions_picture(stem) is speaks
