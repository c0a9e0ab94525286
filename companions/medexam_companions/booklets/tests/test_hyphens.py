"""Hyphens at the ends of lines: a word's syllables, or its spelling."""

import pytest

from medexam_companions.booklets import Vocabulary, decide, load_dictionary

BREAKS = ("La membra-", "na y la prote-", "ína de la célu-", "la: membrana, proteína, célula, síntesis, efecto.")


@pytest.fixture
def words() -> Vocabulary:
    """Of a booklet that breaks words."""
    return Vocabulary(BREAKS, load_dictionary("es"))


JOINED = (
    "aurí-culas quí-micas contra-indicación gramnega-tivas ariloxipro-panolaminas "
    "meningoen-cefalitis rápida-mente poste-rioridad ri-bosoma menin-gitidis INFEC-CIÓN CORREC-TA FAL-SA "
    "TUBER-CULOSIS CardioPulmonarExtracorpó-rea "
)
KEPT = (
    "hipotálamo-hipofisarios clínico-patológico estructura-actividad coste-efectividad IL-6 "
    "ADN-polimerasa Epstein-Barr Guillain-Barré anti-HBs VIH-SIDA NEO-PI WAIS-III E-cadherina N-terminal "
    "beta-lactámicos ácido-base "
)


@pytest.mark.parametrize(("ends", "kept"), [(JOINED, False), (KEPT, True)])
def test_syllables_are_joined_and_hyphens_of_the_spelling_kept(words, ends, kept) -> None:
    wrong = [end for end in ends.split() if decide(*end.split("-"), words)[0] is not kept]
    assert wrong == []


def test_the_booklet_itself_comes_first() -> None:
    words = Vocabulary([*BREAKS, "La prueba disco-difusión.", "La fosfolipasa y la adenilatociclasa."])
    assert decide("disco", "difusión", words)[0] is True
    assert decide("adenilato", "ciclasa", words)[0] is False


def test_a_booklet_that_breaks_no_words_keeps_what_is_unknown() -> None:
    assert decide("xeno", "trofia", Vocabulary(["Sin palabras partidas."])) == (True, "the booklet breaks no words")
