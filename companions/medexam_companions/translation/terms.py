"""What must survive a translation, since another one changes the right answer: numbers, doses, formulas and drugs.

A term is found by its form alone and written in one spelling for all languages, so that `3,5 g` and `3.5 g`, or
`fenitoína` and `phenytoin`, are the same. A number that a translator writes as a word counts as missing, and a drug
under a name that the shipped list does not know as the same: what is missing is worth a look, not proven wrong.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

from medexam_companions.translation.layout import QuestionText, render_layout

Kind = Literal["number", "dose", "formula", "drug"]
KINDS: tuple[Kind, ...] = ("number", "dose", "formula", "drug")

_NUMBER = re.compile(r"(?<![\w.,])[-\u2212]?\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")
_ELEMENTS = (
    "He|Li|Be|Ne|Na|Mg|Al|Si|Cl|Ar|Ca|Sc|Ti|Cr|Mn|Fe|Co|Ni|Cu|Zn|Ga|Ge|As|Se|Br|Kr|Rb|Sr|Zr|Mo|Tc|Ru|Rh|Pd|Ag|Cd|In|Sn|"
    "Sb|Te|Xe|Cs|Ba|La|Ce|Gd|Pt|Au|Hg|Tl|Pb|Bi|Po|Rn|Ra|Th|H|B|C|N|O|F|P|S|K|I|U"
)
_FORMULA = re.compile(rf"(?<![\w])(?P<body>(?:(?:{_ELEMENTS})\d{{0,3}})+)(?P<charge>\d?[+-])?(?![\w])")
_TWO_LETTERS = re.compile(r"[A-Z][a-z]")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻\u2212", "01234567890123456789+--")
_SPACED = (
    (re.compile(r"[°º]\s+C\b"), "°C"),
    (re.compile(r"\bmm\s+(?:de\s+)?Hg\b"), "mmHg"),
    (re.compile(r"(?<=\d)\s+,\s*(?=\d)"), ","),
)
"""What translators tear apart."""
_WORD = re.compile(r"[^\W\d_]{6,}")
_FOLDS = (
    *(("ph", "f"), ("th", "t"), ("ch", "c"), ("qu", "c"), ("k", "c"), ("z", "c"), ("y", "i")),
    *(("ae", "e"), ("oe", "e"), ("ou", "u"), ("h", ""), ("mf", "nf")),
)


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that must be there."""

    kind: Kind
    spelling: str
    """The same in every language."""


def find_terms(text: QuestionText) -> Counter[Term]:
    """Count every term of a question and its options, by how often it stands there."""
    counts: Counter[Term] = Counter()
    for part in (text.stem, *(words for _, words in text.options)):
        counts.update(_terms(part))
    return counts


def missing_terms(source: QuestionText, translation: QuestionText) -> tuple[Term, ...]:
    """List the terms of `source` that do not stand in `translation` at all, each once, in their order."""
    translation_terms = find_terms(translation)
    missing = [term for term in find_terms(source) if term not in translation_terms]
    if any(term.kind == "formula" for term in missing):
        # Translators write `Na +` for `Na+`.
        compact_text = "".join(render_layout(translation).translate(_SUBSCRIPTS).split())
        missing = [term for term in missing if term.kind != "formula" or term.spelling not in compact_text]
    return tuple(missing)


def fold_name(word: str) -> str:
    """Fold a drug's name to the spelling that languages share: `fenitoína`, `phenytoin` and `фенитоин` are
    `fenitoin`.
    """
    cyrillic: Mapping[str, str] = _data()["cyrillic"]
    lowered = "".join(cyrillic.get(letter, letter) for letter in word.lower())
    plain = "".join(
        character for character in unicodedata.normalize("NFD", lowered) if not unicodedata.combining(character)
    )
    for before, after in _FOLDS:
        plain = plain.replace(before, after)
    plain = re.sub(r"^es(?=[^aeiou])", "s", re.sub(r"(.)\1", r"\1", plain))
    return plain.rstrip("aeiou")


def _terms(part: str) -> Iterator[Term]:
    plain = part.translate(_SUBSCRIPTS)
    for spaced, joined in _SPACED:
        plain = spaced.sub(joined, plain)
    for number in _NUMBER.findall(plain):
        yield Term("number", _canonical(number))
    units: Mapping[str, str] = _data()["units"]
    for dose in _dose().finditer(plain):
        unit = units[dose["unit"].lower()]
        per = f"/{units[dose['per'].lower()]}" if dose["per"] else ""
        yield Term("dose", f"{_canonical(dose['number'])} {unit}{per}")
    for formula in _FORMULA.finditer(plain):
        body, charge = formula["body"], formula["charge"] or ""
        elements = len(re.findall(_ELEMENTS, body))
        if any(sign.isdigit() for sign in body) or "+" in charge or (elements > 1 and _TWO_LETTERS.search(body)):
            yield Term("formula", body + charge.replace("-", ""))
    for word in _WORD.findall(part):
        if name := _drug(word):
            yield Term("drug", name)


def _canonical(number: str) -> str:
    digits = number.lstrip("-\u2212")
    if _THOUSANDS.fullmatch(digits):
        return re.sub(r"[.,]", "", digits)
    return digits.replace(",", ".")


@cache
def _drug(word: str) -> str | None:
    drugs = _drugs()
    # English plurals are ordinary words; singular and plural are one drug.
    for spelling in (word, word.rstrip("s")):
        name = fold_name(spelling)
        name = drugs["synonyms"].get(name, name)
        if name in drugs["not_drugs"]:
            return None
        if name in drugs["names"] or (len(name) > 6 and name.endswith(drugs["stems"])):
            return str(name)
    return None


@cache
def _drugs() -> dict[str, Any]:
    terms = _data()
    return {
        "stems": tuple(fold_name(stem) for stem in terms["stems"]),
        "names": {fold_name(name) for name in terms["names"]},
        "not_drugs": {fold_name(name) for name in terms["not_drugs"]},
        "synonyms": {fold_name(synonym): fold_name(name) for synonym, name in terms["synonyms"].items()},
    }


@cache
def _dose() -> re.Pattern[str]:
    unit = "|".join(sorted(map(re.escape, _data()["units"]), key=len, reverse=True))
    return re.compile(
        rf"(?P<number>\d+(?:[.,]\d+)*)[\s-]?(?P<unit>{unit})(?:\s?/\s?(?P<per>{unit}))?(?!\w)", re.IGNORECASE
    )


@cache
def _data() -> dict[str, Any]:
    text = (resources.files("medexam_companions.translation") / "terms.yaml").read_text(encoding="utf-8")
    terms: dict[str, Any] = yaml.safe_load(text)
    return terms
