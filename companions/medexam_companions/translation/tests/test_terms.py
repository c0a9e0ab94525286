"""Which terms are found, in which spelling, and which are missed when a translation loses them."""

import pytest

from medexam_companions.translation import QuestionText, find_terms, missing_terms


def text(stem):
    return QuestionText("q", stem, ())


def spellings(stem, kind):
    return [term.spelling for term in find_terms(text(stem)) if term.kind == kind]


@pytest.mark.parametrize(
    ("stem", "kind", "found"),
    [
        ("3,5 y 3.5", "number", ["3.5"]),
        ("1.000 y 1,000 y 12.500.000", "number", ["1000", "12500000"]),
        ("0,125", "number", ["0.125"]),
        ("CD4, 5-HT y HbA1c", "number", ["5"]),
        ("500 mg, 500mg y 2 g/dl", "dose", ["500 mg", "2 g/dl"]),
        ("10 UI, 10 IU, 250 mcg y 37 ºC", "dose", ["10 iu", "250 µg", "37 °c"]),
        ("120 mmHg y 5 %", "dose", ["120 mmhg", "5 %"]),
        ("500 мг", "dose", ["500 mg"]),
        ("3 meses y 5 graves", "dose", []),
        ("Ca2+, Ca²⁺, H₂O, NaCl y CO2", "formula", ["Ca2+", "H2O", "NaCl", "CO2"]),
        ("Como NO, SI, VIH, La, In, Pb", "formula", []),
        ("paracetamol, Amoxicilina y atorvastatina", "drug", ["paracetamol", "amoxicilin", "atorvastatin"]),
        ("coronavirus, histidina, gravedad", "drug", []),
    ],
)
def test_terms_have_one_spelling(stem, kind, found) -> None:
    assert spellings(stem, kind) == found


@pytest.mark.parametrize(
    "names",
    [
        ("fenitoína", "phenytoin", "fenitoina", "фенитоин"),
        ("amoxicilina", "amoxicillin", "amoxicillina"),
        ("metotrexato", "methotrexate", "metotrexato"),
        ("acenocumarol", "acenocoumarol"),
        ("estreptomicina", "streptomycin"),
        ("ciclosporina", "cyclosporine", "cyclosporin"),
        ("hidroclorotiazida", "hydrochlorothiazide", "idroclorotiazide"),
    ],
)
def test_a_drug_is_found_again_in_all_languages(names) -> None:
    source, *others = names
    assert find_terms(text(f"Se da {source}"))
    assert [name for name in others if missing_terms(text(f"Se da {source}"), text(name))] == []


@pytest.mark.parametrize(
    ("source", "translation", "missing"),
    [
        ("Se dan 2,5 mg de warfarina", "2.5 mg of warfarin are given", []),
        ("Se dan 2,5 mg de warfarina", "25 mg of warfarin are given", ["number 2.5", "dose 2.5 mg"]),
        ("Se dan 500 mg", "500 g are given", ["dose 500 mg"]),
        ("adrenalina", "epinephrine", []),
        ("ibuprofeno", "naproxen", ["drug ibuprofen"]),
        ("Entra Na+", "Na + enters", []),
        ("Entra Na+", "K+ enters", ["formula Na+"]),
    ],
)
def test_what_a_translation_loses_is_named(source, translation, missing) -> None:
    assert [f"{term.kind} {term.spelling}" for term in missing_terms(text(source), text(translation))] == missing
