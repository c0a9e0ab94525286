"""Which terms are found, in which spelling, and which are missed when a translation loses them."""

import pytest

from medexam.companions.translation.layout import QuestionText, text_of
from medexam.companions.translation.terms import find_terms, fold_name, missing_terms
from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec


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
        ("amoxicilina", "amoxicillin", "amoxicillina", "амоксициллин"),
        ("metotrexato", "methotrexate", "metotrexato"),
        ("acenocumarol", "acenocoumarol"),
        ("estreptomicina", "streptomycin"),
        ("ciclosporina", "cyclosporine", "cyclosporin"),
        ("hidroclorotiazida", "hydrochlorothiazide", "idroclorotiazide"),
    ],
)
def test_a_drug_folds_to_one_name_in_all_languages(names) -> None:
    # Russian writes x as ks.
    assert len({fold_name(name).replace("cs", "x") for name in names}) == 1


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


@pytest.mark.data
@pytest.mark.usefixtures("full_data")
def test_the_published_english_of_headqa_v1_keeps_nearly_all_terms() -> None:
    english = load_exam_set(DatasetSpec(name="headqa_v1", language="en", years=(2016,)))
    spanish = load_exam_set(DatasetSpec(name="headqa_v1", language="es", years=(2016,)))
    terms, lost = {}, {}
    for question, other in zip(spanish.questions, english.questions, strict=True):
        for term in find_terms(text_of(question)):
            terms[term.kind] = terms.get(term.kind, 0) + 1
        for term in missing_terms(text_of(question), text_of(other)):
            lost[term.kind] = lost.get(term.kind, 0) + 1

    assert {kind for kind, number in terms.items() if number > 50} == {"number", "dose", "formula", "drug"}
    assert all(lost.get(kind, 0) / number < 0.03 for kind, number in terms.items())
