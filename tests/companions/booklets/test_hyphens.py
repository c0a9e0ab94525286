"""Hyphens at the ends of lines: a word's syllables, or its spelling."""

import pytest

from medexam.companions.booklets.pages.hyphens import Vocabulary, decide, join_lines, load_dictionary

BREAKS = ("La membra-", "na y la prote-", "ína de la célu-", "la: membrana, proteína, célula, síntesis, efecto.")


@pytest.fixture
def words() -> Vocabulary:
    """Of a booklet that breaks words."""
    return Vocabulary(BREAKS, load_dictionary("es"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("aurí", "culas"),
        ("quí", "micas"),
        ("contra", "indicación"),
        ("gramnega", "tivas"),
        ("ariloxipro", "panolaminas"),
        ("meningoen", "cefalitis"),
        ("rápida", "mente"),
        ("poste", "rioridad"),
        ("ri", "bosoma"),
        ("menin", "gitidis"),
        ("INFEC", "CIÓN"),
        ("CORREC", "TA"),
        ("FAL", "SA"),
        ("TUBER", "CULOSIS"),
        ("CardioPulmonarExtracorpó", "rea"),
    ],
)
def test_syllables_are_joined(words, first, second) -> None:
    assert decide(first, second, words)[0] is False


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("hipotálamo", "hipofisarios"),
        ("clínico", "patológico"),
        ("estructura", "actividad"),
        ("coste", "efectividad"),
        ("IL", "6"),
        ("ADN", "polimerasa"),
        ("Epstein", "Barr"),
        ("Guillain", "Barré"),
        ("anti", "HBs"),
        ("VIH", "SIDA"),
        ("NEO", "PI"),
        ("WAIS", "III"),
        ("E", "cadherina"),
        ("N", "terminal"),
        ("beta", "lactámicos"),
        ("ácido", "base"),
    ],
)
def test_hyphens_of_the_spelling_are_kept(words, first, second) -> None:
    assert decide(first, second, words)[0] is True


def test_the_booklet_itself_comes_first() -> None:
    words = Vocabulary([*BREAKS, "La prueba disco-difusión.", "La fosfolipasa y la adenilatociclasa."])
    assert decide("disco", "difusión", words)[0] is True
    assert decide("adenilato", "ciclasa", words)[0] is False


def test_a_booklet_that_breaks_no_words_keeps_what_is_unknown() -> None:
    assert decide("xeno", "trofia", Vocabulary(["Sin palabras partidas."])) == (True, "the booklet breaks no words")


def test_lines_are_joined_and_every_decision_told(words) -> None:
    text, decided = join_lines(
        ["Sobre el eje hipotálamo-", "hipofisario de las prote-", "ínas y/", "o de IL-", "6:"], words
    )
    assert text == "Sobre el eje hipotálamo-hipofisario de las proteínas y/o de IL-6:"
    assert [(hyphen.text, hyphen.in_spelling) for hyphen in decided] == [
        ("hipotálamo-hipofisario", True),
        ("proteínas", False),
        ("IL-6", True),
    ]


def test_a_dash_between_words_stays_one(words) -> None:
    assert join_lines(["La vida -", "larga - es"], words)[0] == "La vida - larga - es"
